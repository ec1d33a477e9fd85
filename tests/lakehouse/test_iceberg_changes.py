"""Iceberg tables as rows with weights: what is left after each snapshot is what pyiceberg says that it has."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from lakehouse_histories import NOON, IcebergHistory, follows, read
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import FileScanTask
from pyiceberg.typedef import Record
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, StateMismatch, VersionsLost


def history(tmp_path: Path, seed: int = 1) -> IcebergHistory:
    made = IcebergHistory(tmp_path / "i", random.Random(seed))
    made.table().append(made.rows(6))
    return made


@pytest.mark.parametrize("seed", seeds(16))
def test_rule_88_each_snapshot_is_the_sum_of_changes(tmp_path: Path, seed: int) -> None:
    made = IcebergHistory(tmp_path / "i", random.Random(seed))
    for _ in range(5):
        made.commit()
    follows(made)


def test_a_rewritten_file_gives_only_the_rows_that_differ(tmp_path: Path) -> None:
    made = history(tmp_path)
    before = made.version
    made.table().delete("id = 2")
    assert [(row["id"], row["diff"]) for row in read(made.url, start=before)] == [(2, -1)]


def test_a_table_without_snapshots_has_no_rows(tmp_path: Path) -> None:
    made = IcebergHistory(tmp_path / "i", random.Random(1))
    assert read(made.url) == read(made.url, start="earliest") == []


def test_a_column_with_a_new_name_ends_a_stream_and_a_new_flow_reads_it(tmp_path: Path) -> None:
    made = history(tmp_path)
    first, rows = made.version, uc.TableChanges(made.url).opened("diff")
    with made.table().update_schema() as update:
        update.rename_column("n", "m")
    table = made.rows(1).rename_columns(["id", "ts", "k", "m", "x", "tags", "at"])
    made.table().append(table)
    with pytest.raises(StateMismatch, match="changes column 'n', or drops it"):
        rows.versions.changes(first, made.version)
    assert {row["m"] for row in read(made.url, end=first)} == {row["n"] for row in made.content(first).to_pylist()}


def test_what_is_gone_is_said_before_anything_starts(tmp_path: Path) -> None:
    made = history(tmp_path)
    first, rows = made.version, uc.TableChanges(made.url).opened("diff")
    made.table().delete("id = 2")
    made.table().append(made.rows(1))
    made.table().maintenance.expire_snapshots().by_id(first).commit()
    with pytest.raises(VersionsLost, match=r"has lost the changes of version \d+ .*has expired"):
        rows.versions.changes(first, made.version)
    with pytest.raises(InvalidArgument, match="has no snapshot"):
        uc.flow(uc.TableChanges(made.url, start=first), time=NOON)
    for file in (tmp_path / "i/warehouse/shop/orders/data").rglob("*.parquet"):
        file.unlink()
    with pytest.raises(VersionsLost, match="is gone"):
        uc.flow(uc.TableChanges(made.url), time=NOON)


def test_a_table_that_was_rolled_back_is_refused(tmp_path: Path) -> None:
    made = history(tmp_path)
    first = made.version
    made.table().append(made.rows(1))
    later, rows = made.version, uc.TableChanges(made.url).opened("diff")
    with pytest.raises(StateMismatch, match="was rolled back behind snapshot"):
        rows.versions.after(later, first)


def test_rows_that_a_position_delete_takes_are_retracted_and_equality_deletes_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = history(tmp_path)
    first = made.version
    made.table().append(made.rows(1))
    second, versions = made.version, uc.TableChanges(made.url).opened("diff").versions
    rows = uc.TableChanges(made.url).opened("diff")
    table = made.table()
    (whole, *_) = list(table.scan(snapshot_id=first).plan_files())
    positions = tmp_path / "deletes.parquet"
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"file_path": [whole.file.file_path], "pos": pa.array([0], pa.int64())}), positions)
    deletes = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=str(positions),
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=positions.stat().st_size,
    )
    plans = {first: [whole], second: [FileScanTask(whole.file, {deletes})]}
    monkeypatch.setattr(rows.versions, "_plan", lambda table, version: plans[version])
    monkeypatch.setattr(rows.versions, "_appended", lambda table, snapshot: None)
    (part,) = rows.versions.changes(first, second)
    stored = pq.read_table(whole.file.file_path).to_pylist()
    assert [(row["id"], row["diff"]) for one in rows(part, ["id", "diff"]) for row in one.to_pylist()] == [
        (stored[0]["id"], -1)
    ]

    def refuse(self: object) -> None:
        raise ValueError("PyIceberg does not yet support equality deletes: https://...")

    monkeypatch.setattr("pyiceberg.table.DataScan.plan_files", refuse)
    with pytest.raises(InvalidArgument, match="has equality deletes in snapshot"):
        versions.snapshot(first)
