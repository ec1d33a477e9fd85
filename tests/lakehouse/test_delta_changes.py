"""Delta tables as rows with weights: what is left after each version is what deltalake says that the version has."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from lakehouse_histories import NOON, DeltaHistory, counted, follows, read
from moto_server import bucket
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, StateMismatch, UnreadableFile, VersionsLost

ROWS = pa.table({"id": [1, 2, 3], "k": ["a", "b", "a"], "n": [1, 2, 3]})


@pytest.mark.parametrize("feed", [False, True], ids=["files", "feed"])
@pytest.mark.parametrize("seed", seeds(40))
def test_rule_88_each_version_is_the_sum_of_changes(tmp_path: Path, seed: int, feed: bool) -> None:
    history = DeltaHistory(tmp_path / "t", random.Random(seed), feed)
    for _ in range(6):
        history.commit()
    follows(history)


def test_a_feed_says_what_deltalake_reads_of_it(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t", random.Random(3), feed=True)
    history.table().update(updates={"n": "n + 1"}, predicate="id < 3")
    history.table().delete("id = 1")
    weights = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}
    feed = pa.table(history.table().load_cdf(1)).to_pylist()
    names = history.schema.names
    expected = [{name: row[name] for name in names} | {"diff": weights[row["_change_type"]]} for row in feed]
    found = uc.flow(uc.TableChanges(history.url, start=0)).run().to_pylist()
    assert counted(found, "diff", names) == counted(expected, "diff", names) != {}


def test_rule_88_a_compaction_changes_no_row_and_a_rewritten_file_only_those_that_differ(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, ROWS)
    write_deltalake(path, ROWS, mode="append")
    table = DeltaTable(path)
    table.optimize.compact()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert read(f"delta:{path}", start=1) == []  # also where the files that were compacted are gone
    table.update(updates={"n": "9"}, predicate="id = 2")
    changed = read(f"delta:{path}", start=DeltaTable(path).version() - 1)
    assert sorted((row["id"], row["n"], row["diff"]) for row in changed) == [
        (2, 2, -2),
        (2, 9, 2),
    ]


def test_the_end_of_one_run_is_the_start_of_the_next(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for _ in range(4):
        write_deltalake(path, ROWS.slice(0, 1), mode="append")
    assert [len(read(f"delta:{path}", start=start, end=end)) for start, end in ((-1, 1), (1, 3), (3, 3))] == [2, 2, 0]
    commits = [
        datetime.fromtimestamp(commit["timestamp"] / 1000, UTC) for commit in reversed(DeltaTable(path).history())
    ]
    assert len(read(f"delta:{path}", start=commits[1])) == 2
    assert len(read(f"delta:{path}", end="2001-01-01T00:00:00Z")) == 0
    rows = read(f"delta:{path}", start=1, columns=["_commit_version", "_commit_timestamp"])
    assert [(row["_commit_version"], row["_commit_timestamp"]) for row in rows] == [(2, commits[2]), (3, commits[3])]


def test_what_is_gone_is_said_before_anything_starts(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, ROWS)
    DeltaTable(path).update(updates={"n": "9"}, predicate="id = 2")
    DeltaTable(path).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert len(read(f"delta:{path}")) == 3
    with pytest.raises(VersionsLost, match=r"has lost the changes of version 1 .* is gone.*begin again"):
        uc.flow(uc.TableChanges(f"delta:{path}", start=0), time=NOON)
    DeltaTable(path).create_checkpoint()
    (tmp_path / "t/_delta_log/00000000000000000000.json").unlink()
    (tmp_path / "t/_delta_log/00000000000000000001.json").unlink()
    assert len(read(f"delta:{path}")) == 3
    with pytest.raises(VersionsLost, match=r"version 0 .it is not in the log"):
        uc.flow(uc.TableChanges(f"delta:{path}", start="earliest"), time=NOON)


def test_a_table_that_is_made_again_is_another_one(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, ROWS)
    rows = uc.TableChanges(f"delta:{path}").opened("diff")
    for file in sorted(path.rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()
    write_deltalake(path, ROWS)
    write_deltalake(path, ROWS, mode="append")
    with pytest.raises(StateMismatch, match="was made again"):
        rows.versions.changes(-1, 1)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (ROWS.drop_columns(["n"]), "changes column 'n', or drops it"),
        (ROWS.set_column(2, "n", pa.array(["x", "y", "z"])), "changes column 'n', or drops it"),
    ],
    ids=["dropped", "of another type"],
)
def test_a_column_that_does_not_go_on_ends_a_stream(tmp_path: Path, table: pa.Table, words: str) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, ROWS)
    rows = uc.TableChanges(f"delta:{path}").opened("diff")
    write_deltalake(path, table, mode="overwrite", schema_mode="overwrite")
    for changes in (lambda: rows.versions.changes(0, 1), lambda: rows.versions.snapshot(1)):
        with pytest.raises(StateMismatch, match=words):
            changes()
    if "n" in table.column_names:
        with pytest.raises(UnreadableFile, match="cannot be read with the columns of the table"):
            read(f"delta:{path}", start=0)
    else:
        assert read(f"delta:{path}", start=0) == []


def test_a_live_table_is_the_source_of_another_flow(tmp_path: Path) -> None:
    flow = uc.flow([{"ts": "2024-05-01T12:00:00Z", "k": "a", "n": 3}, {"ts": "2024-05-01T12:00:01Z", "k": "b", "n": 4}])
    flow.window("1 hour").combine(by="k", n=uc.Sum("n")).to_table(f"delta:{tmp_path}/t")
    again = uc.flow(uc.TableChanges(f"delta:{tmp_path}/t"), time="window_start")
    assert again.combine(total=uc.Sum("n")).run()["total"].to_pylist() == [7]


def test_tables_of_object_stores_are_read_by_the_credentials_of_the_environment(tmp_path: Path) -> None:
    with bucket() as root:
        path = f"{root}/orders"
        write_deltalake(path, ROWS, partition_by=["k"], configuration={"delta.enableChangeDataFeed": "true"})
        DeltaTable(path).update(updates={"n": "9"}, predicate="id = 2")
        DeltaTable(path).delete("id = 1")
        found = [(row["id"], row["n"], row["diff"]) for row in read(f"delta:{path}", start=0)]
        assert sorted(found) == [(1, 1, -1), (2, 2, -1), (2, 9, 1)]
        assert sorted(row["id"] for row in read(f"delta:{path}")) == [2, 3]
        with pytest.raises(InvalidArgument, match="is not there: name the folder"):
            uc.flow(uc.TableChanges(f"delta:{root}/nothing"))


@pytest.mark.parametrize(
    ("options", "more", "words"),
    [
        ({"time": "_commit_timestamp"}, {}, "gives a retraction another event time"),
        ({"watermark": uc.IngressTime()}, {}, "gives a retraction another event time"),
        ({"changelog": uc.changelog.Debezium()}, {}, "changelog= reads messages"),
        ({"diff": "n"}, {}, "has a column 'n' of its own"),
        ({"streaming": True}, {}, "streaming=True needs spark="),
        ({}, {"start": 7}, "has no version 7: it has those up to 0"),
        ({}, {"end": 7}, "has no version 7"),
        ({}, {"start": "latest"}, "start='latest' is for a stream"),
        ({}, {"max_versions_per_batch": 2}, "max_versions_per_batch= is for a stream"),
    ],
)
def test_what_would_be_wrong_is_refused(
    tmp_path: Path, options: dict[str, Any], more: dict[str, Any], words: str
) -> None:
    write_deltalake(str(tmp_path / "t"), ROWS)
    with pytest.raises(InvalidArgument, match=words):
        uc.flow(uc.TableChanges(f"delta:{tmp_path}/t", **more), **{"time": NOON} | options)


def test_the_time_of_a_commit_can_be_the_processing_time(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "t"), ROWS)
    flow = uc.flow(uc.TableChanges(f"delta:{tmp_path}/t"), time=NOON, processing_time="_commit_timestamp")
    assert flow.schema.names == ["id", "k", "n", "diff", "event_time"]  # a retraction comes with another commit
    assert flow.run().num_rows == ROWS.num_rows
