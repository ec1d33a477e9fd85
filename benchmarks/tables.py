"""Live tables: a batch of changes compared with a bare write of the same rows, in wall-clock time.

A table holds five million rows, of 50,000 keys in 100 windows. A batch retracts and replaces 100,000 of them, which is
netted and applied: any rows, or rows of the last ten windows, as in most streams. The bare write brings the same
100,000 rows: as one Arrow insert into a table of DuckDB with as many rows, as one COPY into a table of PostgreSQL with
as many rows and the same unique index, or as one merge of delta-rs by the same keys. An upsert by hand puts the rows
in the place of those of their keys, in one transaction without a number or a check: in DuckDB one DELETE ... USING and
one INSERT, in PostgreSQL one COPY into a temporary table and one UPDATE ... FROM. A copy for readers of a file of
DuckDB is compared with DuckDB's own copy of a database.
"""

from __future__ import annotations

import itertools
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import files
from harness import Row

import uncombine as uc
from uncombine.tables import Changes, Layout, changes_of, target_of
from uncombine.tables.postgresql import FILL
from uncombine.tables.publishing import PublishedCopy

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from postgres_server import PostgresServer

TITLE = "Live tables"

HELD, KEYS, CHANGED, FEW = 5_000_000, 50_000, 100_000, 10
RECENT = HELD - 10 * KEYS
RUNS = 5
T = TypeVar("T")
WINDOW = pa.struct({"start": pa.timestamp("us", "UTC"), "end": pa.timestamp("us", "UTC")})
ROWS = pa.schema(
    {
        "k": pa.int64(),
        "window": WINDOW,
        "total": pa.int64(),
        "mean": pa.float64(),
        "event_time": pa.timestamp("us", "UTC"),
        "diff": pa.int64(),
    }
)
LAYOUT = Layout(ROWS, ("k", "window_start", "window_end"), "diff")
MINUTE = 60_000_000
DURABLE = "-c listen_addresses='' -c shared_buffers=512MB -c max_wal_size=4GB -c checkpoint_timeout=1h"


def rows() -> Iterator[Row]:
    folder = Path(tempfile.mkdtemp(prefix="uncombine-bench-"))
    server = PostgresServer(folder / "postgres", DURABLE)
    server.start()
    try:
        yield from _large(
            f"duckdb:///{folder}/ours.db#t", "DuckDB", "a bare Arrow insert", 3, _DuckDB(folder / "bare.db")
        )
        yield from _copied(folder)
        yield from _large(server.url("ours"), "PostgreSQL", "a bare COPY", 3, _PostgreSQL(server.url()))
        yield from _large(f"delta:{folder}/ours", "Delta", "a bare merge of delta-rs", 1.5, _Delta(folder / "bare"))
        yield from _few(folder, server)
    finally:
        server.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)


def values(rows: np.ndarray, versions: np.ndarray, diff: int) -> pa.Table:
    """Rows of the table in a version each."""
    start = rows // KEYS * MINUTE
    times = [pa.array(found).cast(pa.timestamp("us", "UTC")) for found in (start, start + MINUTE, start + MINUTE - 1)]
    window = pa.StructArray.from_arrays(times[:2], fields=list(WINDOW))
    total = rows * 7 + versions
    columns = [rows % KEYS, window, total, total / 3, times[2], np.full(len(rows), diff)]
    return pa.table(
        [c if isinstance(c, pa.Array) else pa.array(c, f.type) for c, f in zip(columns, ROWS, strict=True)], schema=ROWS
    )


class Batches:
    """Batches that retract random rows of a table and give them again in the next version."""

    def __init__(self) -> None:
        self.random, self.versions = np.random.default_rng(1), np.zeros(HELD, np.int64)

    def next(self, count: int, first: int = 0) -> pa.Table:
        """A batch of so many rows, not before the first one."""
        rows = np.sort(self.random.choice(HELD - first, count, replace=False)) + first
        old = values(rows, self.versions[rows], -1)
        self.versions[rows] += 1
        return pa.concat_tables([old, values(rows, self.versions[rows], 1)]).combine_chunks()


def netted(rows: pa.Table) -> Changes:
    return Changes.of(LAYOUT, [changes_of(rows, LAYOUT)])


def _large(url: str, name: str, against: str, target: float, bare: Any) -> Iterator[Row]:
    """Rows of a target: large batches, the part of netting in them, and a batch of few rows."""
    place = target_of(url)
    place.check(LAYOUT)
    writer, batches = place.writer(LAYOUT, "bench"), Batches()
    writer.start()
    everything = values(np.arange(HELD), np.zeros(HELD, np.int64), 1)
    writer.apply(0, netted(everything))
    bare.fill(LAYOUT.flat(everything).cast(LAYOUT.schema))
    del everything
    number = itertools.count(1)

    def applied(given: pa.Table) -> tuple[float, float, pa.Table]:
        """The seconds of netting and of applying a batch, and the rows that it brings."""
        net, changes = _timed(lambda: netted(given))
        apply, _ = _timed(lambda: writer.apply(next(number), changes))
        return net, apply, changes.reader().read_all().select(LAYOUT.schema.names)

    runs = itertools.count()
    by_hand = getattr(bare, "upsert", None)
    for first, words in ((0, ""), (RECENT, " in the last windows")):
        times: list[tuple[float, ...]] = []
        for _ in range(RUNS + 1):
            net, apply, rows = applied(batches.next(CHANGED, first))
            other, _ = _timed(lambda rows=rows: bare.write(rows, next(runs)))  # type: ignore[misc]
            least, _ = _timed(lambda rows=rows: by_hand(rows)) if by_hand else (0.0, None)  # type: ignore[misc]
            few = applied(batches.next(FEW, first))
            times.append((net, apply, other, few[0] + few[1], least))
        net, apply, other, small, least = (statistics.median(part) for part in zip(*times[1:], strict=True))
        yield Row(f"{name}: 100 k changed keys of 5 M{words}", net + apply, other, target, against, "s")
        if by_hand:
            yield Row(f"{name}: 100 k changed keys of 5 M{words}", net + apply, least, None, "an upsert by hand", "s")
        yield Row(f"{name}: the netting of these", net, net + apply, 0.2, "the whole batch", "s")
        yield Row(f"{name}: 10 changed keys of 5 M{words}", small, 0.1, None, "100 ms", "s")
    writer.close()
    bare.close()


def _copied(folder: Path) -> Iterator[Row]:
    """A copy for readers of the file of the large table."""
    import duckdb

    path = folder / "ours.db"
    copy = PublishedCopy(path, folder / "seen.db", 0, "bench", nullcontext)
    times: list[tuple[float, float]] = []
    for run in range(RUNS):
        ours, _ = _timed(copy.start)
        with duckdb.connect() as db:
            db.execute(f"ATTACH '{path}' AS one (READ_ONLY)")
            db.execute(f"ATTACH '{folder}/by hand {run}.db' AS other")
            bare, _ = _timed(lambda db=db: db.execute("COPY FROM DATABASE one TO other"))  # type: ignore[misc]
        times.append((ours, bare))
    ours, bare = (statistics.median(part) for part in zip(*times, strict=True))
    size = f"{path.stat().st_size >> 20} MB"
    yield Row(f"DuckDB: a copy of {size} with 5 M rows for readers", ours, bare, None, "COPY FROM DATABASE", "s")


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    start = time.perf_counter()
    done = work()
    return time.perf_counter() - start, done


class _DuckDB:
    def __init__(self, path: Path) -> None:
        import duckdb

        self.db = duckdb.connect(str(path))

    def fill(self, rows: pa.Table) -> None:
        self.db.execute("CREATE TABLE t AS SELECT * FROM rows")
        self.db.execute("CREATE TABLE u AS SELECT * FROM rows")

    def upsert(self, rows: pa.Table) -> None:
        same = " AND ".join(f"u.{name} = rows.{name}" for name in LAYOUT.keys)
        self.db.execute("BEGIN")
        self.db.execute(f"DELETE FROM u USING rows WHERE {same}")
        self.db.execute("INSERT INTO u SELECT * FROM rows")
        self.db.execute("COMMIT")

    def write(self, rows: pa.Table, run: int) -> None:
        self.db.execute("INSERT INTO t SELECT * FROM rows")

    def close(self) -> None:
        self.db.close()


class _PostgreSQL:
    """The rows of each run have keys of their own, as an insert needs them."""

    def __init__(self, url: str) -> None:
        import adbc_driver_postgresql.dbapi as adbc

        self.connection = adbc.connect(url)

    def fill(self, rows: pa.Table) -> None:
        columns = (
            "(k bigint, window_start timestamptz, window_end timestamptz, total bigint, mean double precision, "
            "event_time timestamptz)"
        )
        for name in ("bare", "upserted"):
            self._run(f"CREATE TABLE {name} {columns} WITH (fillfactor = {100 if name == 'bare' else FILL})")
            self._run(f"CREATE UNIQUE INDEX ON {name} (k, window_start, window_end) NULLS NOT DISTINCT")
        self._run(f"CREATE TEMPORARY TABLE staged {columns} ON COMMIT DELETE ROWS")
        self.write(rows, -1)
        with closing(self.connection.cursor()) as cursor:
            cursor.adbc_ingest("upserted", rows, mode="append")
        self.connection.commit()

    def upsert(self, rows: pa.Table) -> None:
        same = " AND ".join(f"u.{name} = s.{name}" for name in LAYOUT.keys)
        news = ", ".join(f"{name} = s.{name}" for name in LAYOUT.values)
        with closing(self.connection.cursor()) as cursor:
            cursor.adbc_ingest(
                "staged", rows.sort_by([(n, "ascending") for n in LAYOUT.keys]), mode="append", temporary=True
            )
        self._run(f"UPDATE upserted AS u SET {news} FROM staged AS s WHERE {same}")

    def write(self, rows: pa.Table, run: int) -> None:
        keys = pc.add(rows["k"], (run + 1) * KEYS)
        with closing(self.connection.cursor()) as cursor:
            cursor.adbc_ingest("bare", rows.set_column(0, "k", keys), mode="append")
        self.connection.commit()

    def _run(self, statement: str) -> None:
        with closing(self.connection.cursor()) as cursor:
            cursor.execute(statement)
        self.connection.commit()

    def close(self) -> None:
        self.connection.close()


class _Delta:
    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self, rows: pa.Table) -> None:
        from deltalake import DeltaTable, write_deltalake

        write_deltalake(self.path, rows)
        self.table = DeltaTable(self.path)

    def write(self, rows: pa.Table, run: int) -> None:
        keys = " AND ".join(f"t.{name} = s.{name}" for name in LAYOUT.keys)
        merge = self.table.merge(rows, keys, source_alias="s", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def close(self) -> None:
        pass


BATCHES = 12


def _few(folder: Path, server: PostgresServer) -> Iterator[Row]:
    """The time of a batch of few rows in a query, over that of the same query without a table."""
    spark = uc.session("benchmarks", cores=2)
    path = files(BATCHES * FEW, FEW, BATCHES, 120 * BATCHES)

    def totals() -> Any:
        source = uc.flow(uc.Files(path, max_files_per_batch=1), spark=spark, watermark="1 minute", streaming=True)
        return source.window(uc.Global(), uc.Always(), mode="retracting").combine(by="k", s=uc.Sum("v"), c=uc.Count())

    def floor() -> Any:
        writer = totals().write_stream(checkpoint=tempfile.mkdtemp(dir=folder))
        return writer.foreachBatch(lambda df, batch: df.collect() and None).trigger(availableNow=True).start()

    def live(url: str) -> Any:
        return totals().to_table(url, checkpoint=tempfile.mkdtemp(dir=folder), trigger={"availableNow": True})

    places: dict[str, Callable[[int], str]] = {
        "DuckDB": lambda run: f"duckdb:///{folder}/{run}.db#t",
        "PostgreSQL": lambda run: server.url(f"few{run}"),
        "Delta": lambda run: f"delta:{folder}/delta{run}",
        "Parquet": lambda run: f"parquet:{folder}/parquet{run}",
    }
    for name, url in places.items():
        times: tuple[list[float], list[float]] = ([], [])
        for run in range(3):
            found = _batches(live(url(run))), _batches(floor())
            for some, kept in zip(found, times, strict=True):
                kept += some if run else []  # the JVM compiles in the first run
        ours, bare = map(statistics.median, times)
        against = f"the query without a table, {bare:.2f} s, and 100 ms"
        yield Row(f"{name}: a batch of 10 changed keys in a query", ours, bare + 0.1, 1, against, "s")


def _batches(query: Any) -> list[float]:
    """The seconds of the batches of a query, without the first ones."""
    query.awaitTermination()
    done = [batch for batch in query.recentProgress if batch["numInputRows"]]
    return [batch["durationMs"]["triggerExecution"] / 1000 for batch in done[3:]]
