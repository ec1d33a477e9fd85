"""The rows that a live table's query leaves out, in a table of their own: each once, over restarts and crashes."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from live_tables import in_order
from postgres_server import PostgresServer
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from streams import changed

import uncombine as uc
from uncombine.errors import InvalidArgument, NoSuchStep, TableMismatch
from uncombine.sparkops.tables.left_out_table import LAYOUT
from uncombine.tables import Keeper
from uncombine.tables.sql import SqlWriter

NOW = {"availableNow": True}
SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "x": pa.int64()})


@pytest.fixture(autouse=True)
def _quick(spark: SparkSession) -> Any:
    with changed(spark):
        yield


def file_of(folder: Path, number: int, r: random.Random) -> None:
    """Rows around a minute of their own, of which some are late, unreadable or without a time."""
    lines = ["ts,k,x"]
    for _ in range(r.randrange(1, 30)):
        minute = max(0, number + r.choice([0, 0, 0, 1, -2, -3]))
        time = r.choice([f"2024-05-01T12:{minute:02}:{r.randrange(60):02}Z"] * 9 + [""])
        lines.append(f"{time},{r.choice('abc')},{r.choice([1, 2, 3, 4, 5, 6, 7, 'many'])}")
    folder.mkdir(exist_ok=True)
    (folder / f"{number:03}.csv").write_text("\n".join(lines) + "\n")


def flow_over(spark: SparkSession, folder: Path) -> uc.Flow:
    """A file a batch."""
    files = uc.Files(folder, schema=SCHEMA, order="name", max_files_per_batch=1)
    source = uc.flow(files, spark=spark, streaming=True, watermark="30 seconds")
    minutes = source.window("1 minute", mode="retracting").combine(by="k", total=uc.Sum("x"))
    return minutes.window("5 minutes").combine(n=uc.Count(), most=uc.Max("total"))


def told(rows: pa.Table) -> Counter[str]:
    """The rows of a table of rows that were left out, with their batches and without their places."""
    found = rows.drop_columns(["place"]).to_pylist()
    return Counter(repr({**row, "row": _plain(row["row"] and json.loads(row["row"]))}) for row in found)


def _plain(row: dict[str, Any] | None) -> dict[str, Any] | None:
    """A row without nulls, and without times, which JSON has as texts."""
    times = ("ts", "event_time", "window", "pane")
    return row and {name: value for name, value in row.items() if value is not None and name not in times}


def beside(spark: SparkSession, flow: uc.Flow, checkpoint: Path) -> Counter[str]:
    """The same rows as a function of batches gets them."""
    found = list[dict[str, Any]]()

    def taken(_: Any, left_out: Any, batch: int) -> None:
        for row in left_out.toArrow().to_pylist():
            found.append({**row, "batch": batch, "row": _plain(row["row"])})

    writer = flow.foreach_batch(taken).option("checkpointLocation", str(checkpoint)).trigger(**NOW)
    writer.start().awaitTermination()
    order = [name for name in LAYOUT.rows.names if name != "place"]
    return Counter(repr({name: row[name] for name in order}) for row in found)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["duckdb", "parquet", "postgresql"])
def test_a_table_has_each_row_that_was_left_out_once(
    kind: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over restarts, and a crash between the two tables, which both take the batch that is run again once."""
    server = PostgresServer(tmp_path / "postgres") if kind == "postgresql" else None
    if server is not None:
        server.start()
    try:
        urls = {
            "duckdb": [f"duckdb:{tmp_path}/a.db?publish={tmp_path}/seen.db#{name}" for name in ("totals", "bad")],
            "parquet": [f"parquet:{tmp_path}/totals", f"parquet:{tmp_path}/bad"],
            "postgresql": [] if server is None else [server.url(name) for name in ("totals", "bad")],
        }[kind]
        r, folder = random.Random(kind), tmp_path / "in"
        flow = flow_over(spark, _begun(folder, r))
        options: dict[str, Any] = {"checkpoint": tmp_path / "c", "trigger": NOW, "left_out": urls[1]}
        for life in range(3):
            with monkeypatch.context() as patch:
                if life == 1:
                    patch.setattr(Keeper, "take", _fails(Keeper.take))
                    patch.setattr(SqlWriter, "_taken", _fails(SqlWriter._taken))
                live = flow.to_table(urls[0], **options)
                if life == 1:
                    with pytest.raises(StreamingQueryException, match="the second table is not reached"):
                        live.awaitTermination()
                    if kind == "duckdb":  # in one file both take a batch or none
                        for place in ("a.db", "seen.db"):
                            with duckdb.connect(str(tmp_path / place), read_only=True) as db:
                                numbers = "SELECT table_name, batch FROM _uncombine_batches ORDER BY ALL"
                                assert db.execute(numbers).fetchall() == [("bad", 2), ("totals", 2)]
                else:
                    live.awaitTermination()
            for number in range(2 * life + 2, 2 * life + 4):
                file_of(folder, number, r)
        live = flow.to_table(urls[0], **options)
        live.awaitTermination()
        got = {"rows": told(live.left_out.arrow()), "table": in_order(live.arrow())}
        assert len(got["rows"]) > 5
        alone = flow.to_table(f"duckdb:{tmp_path}/alone.db#t", checkpoint=tmp_path / "alone", trigger=NOW)
        alone.awaitTermination()
        assert got["table"] == in_order(alone.arrow())
        assert got["rows"] == beside(spark, flow, tmp_path / "beside")
    finally:
        if server is not None:
            server.stop("immediate")


def _begun(folder: Path, r: random.Random) -> Path:
    for number in range(2):
        file_of(folder, number, r)
    return folder


def _fails(take: Any) -> Any:
    """A part of the way of batch 3 into its tables, which fails for the live table after the other one has it."""

    def failing(self: Any, *arguments: Any) -> Any:
        name = getattr(self, "writer", self).name
        if "bad" not in name and 3 in arguments:
            raise RuntimeError("the second table is not reached")
        return take(self, *arguments)

    return failing


def test_a_table_belongs_to_a_query_from_its_start(spark: SparkSession, tmp_path: Path) -> None:
    files = uc.Files(_begun(tmp_path / "in", random.Random(1)), schema=SCHEMA)
    source = uc.flow(files, spark=spark, streaming=True, watermark="30 seconds")
    place: dict[str, Any] = {"target": f"duckdb:{tmp_path}/a.db#n", "checkpoint": tmp_path / "c", "trigger": NOW}
    sessions = source.window("sessions 1 minute").combine(by="k", n=uc.Sum("x"))
    live = sessions.to_table(**place)
    live.awaitTermination()
    with pytest.raises(NoSuchStep, match="give left_out= to to_table"):
        live.left_out
    with pytest.raises(TableMismatch, match=r"/bad has the batches up to -1, but the checkpoint goes on with batch 1"):
        sessions.to_table(**place, left_out=f"parquet:{tmp_path}/bad")
    other = {**place, "target": f"duckdb:{tmp_path}/b.db#n", "checkpoint": tmp_path / "other"}
    both = sessions.to_table(**other, left_out=f"duckdb:{tmp_path}/b.db#bad")
    both.awaitTermination()
    assert in_order(both.arrow()) == in_order(live.arrow())
    lines = [line for file in sorted((tmp_path / "in").iterdir()) for line in file.read_text().splitlines()[1:]]
    found = both.left_out.arrow().to_pylist()
    bad = [line for line in lines if line.startswith(",") or line.endswith("many")]
    assert sorted(row["text"] for row in found if row["why"] == "unreadable") == sorted(
        line for line in bad if line.endswith("many")
    )
    assert Counter(row["why"] for row in found) == Counter(
        "unreadable" if line.endswith("many") else "bad" for line in bad
    )
    assert {json.loads(row["row"])["ts"] for row in found if row["why"] == "bad"} <= {None}


def test_tables_that_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    flow, url = flow_over(spark, _begun(tmp_path / "in", random.Random(1))), f"duckdb:{tmp_path}/a.db#totals"
    with pytest.raises(InvalidArgument, match=r"names table 'totals' of .*, the table of the result"):
        flow.to_table(url, checkpoint=tmp_path / "c", left_out=url)
    for first, second in (("", "?publish={}/seen.db"), ("?publish={}/seen.db", "?publish={}/other.db")):
        urls = [f"duckdb:{tmp_path}/a.db{one.format(tmp_path)}#{name}" for one, name in ((first, "t"), (second, "u"))]
        with pytest.raises(InvalidArgument, match="whose copy has both: give both tables the same publish="):
            flow.to_table(urls[0], checkpoint=tmp_path / "c", left_out=urls[1])
    bounded = uc.flow([{"ts": 0, "x": 1}]).window("1 minute").combine(n=uc.Count())
    with pytest.raises(InvalidArgument, match=r"left_out= of to_table\(\) is for a stream: a run of a bounded flow"):
        bounded.to_table(url, left_out=f"duckdb:{tmp_path}/a.db#bad")
    assert not (tmp_path / "c").exists()
    assert not (tmp_path / "a.db").exists()


def test_a_query_gets_such_a_table_by_a_new_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    """Rows then come to their shards one by one, by their keys, where windows of a key were in several shards."""
    folder, url = tmp_path / "in", f"duckdb:{tmp_path}/a.db#totals"
    folder.mkdir()
    first = [f"2024-05-01T12:{minute:02}:10Z,{k},{minute}" for minute in range(50) for k in "abcdef"]
    (folder / "000.csv").write_text("\n".join(["ts,k,x", *first]) + "\n")
    files = uc.Files(folder, schema=SCHEMA, order="name")
    tuning = uc.Tuning(shards=4)
    source = uc.flow(files, spark=spark, streaming=True, watermark="5 minutes", tuning=tuning)
    windows = source.window("10 minutes", "early every 1 row", mode="retracting", allowed_lateness="1 hour")
    flow = windows.combine(by="k", total=uc.Sum("x"))
    flow.to_table(url, checkpoint=tmp_path / "c", trigger=NOW).awaitTermination()
    uc.evolve(tmp_path / "c", flow, to=tmp_path / "d")
    more = [f"2024-05-01T12:{minute:02}:20Z,{k},1000" for minute in range(0, 50, 7) for k in "abcdef"]
    more += ["2024-05-01T10:00:00Z,a,1", "2024-05-01T12:00:00Z,a,many"]
    (folder / "001.csv").write_text("\n".join(["ts,k,x", *more]) + "\n")
    live = flow.to_table(url, checkpoint=tmp_path / "d", trigger=NOW, left_out=f"duckdb:{tmp_path}/a.db#bad")
    live.awaitTermination()
    want: Counter[tuple[str, int]] = Counter()
    for line in [*first, *more[:-2]]:
        time, k, x = line.split(",")
        want[k, int(time[14:16]) // 10] += int(x)
    got = {(row["k"], row["window_start"].minute // 10): row["total"] for row in live.arrow().to_pylist()}
    assert got == want
    assert sorted(row["why"] for row in live.left_out.arrow().to_pylist()) == ["late", "unreadable"]
