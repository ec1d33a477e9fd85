"""Live tables without an engine: the net of a batch, the layout of a table, and a table of DuckDB."""

from __future__ import annotations

import io
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from live_tables import (
    KEYS,
    LAYOUT,
    LENGTH_KEYS,
    LENGTHS,
    NESTED,
    ROWS,
    VALUES,
    adapted,
    batch_of,
    changes,
    finds,
    follows,
    holds,
    refuses,
    row,
    taken_over,
    writer_of,
)
from opened import run_script
from seeds import seeds

import uncombine as uc
from uncombine.errors import (
    InvalidArgument,
    LibraryMissing,
    OutOfRange,
    TableMismatch,
    TableUnreachable,
    TypeMismatch,
    UnknownColumn,
)
from uncombine.tables import CHANGE, Keeper, Layout, changes_of, table_flow, target, target_of
from uncombine.tables.duckdb import DuckDB
from uncombine.tables.watching import watched

SCORES = pa.table({"ts": [0, 1, 2], "user": ["ada", "bob", "ada"], "score": [3, 5, 4]})


def net_of(rows: pa.Table, keys: list[str]) -> dict[Any, tuple[int, tuple[Any, ...]]]:
    """The change of each key, row by row."""
    weights: Counter[tuple[Any, ...]] = Counter()
    for one in rows.to_pylist():
        weights[tuple(one[name] for name in rows.column_names if name != "diff")] += one["diff"]
    out: dict[Any, tuple[int, tuple[Any, ...]]] = {}
    for one, weight in sorted(weights.items(), key=lambda item: item[1]):
        if weight:
            key = one[: len(keys)]
            out[key] = out.get(key, (0, ()))[0] + weight, one
    return out


@pytest.mark.parametrize("seed", seeds(20))
def test_the_net_of_a_batch_is_that_of_a_dictionary(seed: int) -> None:
    r = random.Random(seed)
    held, rows = dict[Any, Any](), list[dict[str, Any]]()
    for key in [(a, b) for a in ("x", None, "") for b in (1, 2)]:
        if r.random() < 0.5:
            held[key] = r.randrange(3)
    for _ in range(r.choice([0, 1, 8, 200])):
        key = r.choice(["x", None, ""]), r.choice([1, 2])
        if key in held:
            rows.append({"a": key[0], "b": key[1], "v": held.pop(key), "diff": -1})
        if r.random() < 0.6:
            held[key] = r.randrange(3)
            rows.append({"a": key[0], "b": key[1], "v": held[key], "diff": 1})
    r.shuffle(rows)
    schema = pa.schema({"a": pa.string(), "b": pa.int64(), "v": pa.int64(), "diff": pa.int64()})
    given = pa.Table.from_pylist(rows, schema)
    found = changes_of(given, Layout(schema, ("a", "b"), "diff"))
    got = {(one["a"], one["b"]): (one[CHANGE], (one["a"], one["b"], one["v"])) for one in found.to_pylist()}
    assert len(got) == found.num_rows
    assert got == net_of(given, ["a", "b"])


def test_a_row_that_comes_back_is_no_change() -> None:
    rows = [row("a", 1, -1), row("a", 2), row("a", 2, -1), row("a", 1), row("b", 1), row("b", 1, -1)]
    assert batch_of(*rows).rows == 0


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([row("a", 1), row("a", 2)], "2 rows are left for {'k': 'a'"),
        ([row("a", 1), row("b", 1), row("b", 1)], "2 rows are left for {'k': 'b'"),
        ([row("a", 1, 2)], "2 rows are left"),
        ([row("a", 1, -1), row("a", 2, -1), row("a", 3)], "2 retractions are left"),
    ],
)
def test_keys_that_rows_share_are_refused(rows: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        batch_of(*rows)


def test_types_of_a_table_are_those_of_databases() -> None:
    rows = pa.table(
        {
            "k": pa.array(["a"]).dictionary_encode(),
            "s": pa.array(["x"], pa.large_string()),
            "t": pa.array([1], pa.timestamp("ms", "Europe/Berlin")),
            "u": pa.array([2**63], pa.uint64()),
            "d": pa.array([-3], pa.duration("s")),
        }
    )
    found = changes_of(rows, Layout(rows.schema, ("k",)))
    assert found.schema.types == [
        pa.string(), pa.string(), pa.timestamp("us", "UTC"), pa.decimal128(20, 0), pa.duration("us"), pa.int8(),
    ]  # fmt: skip
    assert int(found["u"][0].as_py()) == 2**63
    assert found["d"].cast(pa.int64()).to_pylist() == [-3_000_000]


@pytest.mark.parametrize("kind", [pa.duration("s"), pa.duration("ms"), pa.timestamp("s")], ids=str)
def test_a_value_that_microseconds_do_not_hold(kind: pa.DataType) -> None:
    rows = pa.table({"k": [1], "v": pa.array([2**62], kind)})
    with pytest.raises(OutOfRange, match=r"a value of column 'v' does not fit into .*\[us\], in which a table has it"):
        changes_of(rows, Layout(rows.schema, ("k",)))


def lists(rows: pa.Table) -> pa.Array:
    return pa.array([[]] * len(rows), pa.list_(pa.int64()))


def grouped(**options: Any) -> Any:
    return uc.flow(SCORES).window(uc.Fixed("1 minute"), **options).combine(by="user", total=uc.Sum("score"))


def test_the_layout_of_a_grouping() -> None:
    flow, layout = table_flow(grouped(allowed_lateness="1 hour"))
    assert flow.stages[-1].grouping.retracting  # type: ignore[attr-defined]
    assert layout.schema.names == ["user", "window_start", "window_end", "total", "event_time"]
    assert layout.keys == ("user", "window_start", "window_end")
    assert layout.diff == "diff"
    assert table_flow(grouped().select("user", "total"), ["user"])[1].schema.names == ["user", "total"]


@pytest.mark.parametrize(
    ("flow", "keys", "error", "words"),
    [
        (grouped(mode="accumulating", allowed_lateness="1 hour"), None, InvalidArgument, "use mode='retracting'"),
        (grouped(mode="discarding", allowed_lateness="1 hour"), None, InvalidArgument, "does not say which rows"),
        (grouped(late="duplicate"), None, InvalidArgument, "would replace the row .*: use late='drop'"),
        (grouped(mode="retracting").where(uc.col("diff") > 0), None, InvalidArgument, "would keep rows and drop"),
        (grouped(mode="retracting").select("user", "window"), None, UnknownColumn, "column 'diff' is no longer"),
        (grouped().select("user", "total"), None, UnknownColumn, "'window' of the last grouping is no longer there"),
        (grouped(), ["usr"], UnknownColumn, "did you mean 'user'"),
        (grouped(), [], InvalidArgument, "must name at least one column"),
        (grouped(), ["pane"], InvalidArgument, "names 'pane', which no table has"),
        (uc.flow(SCORES), None, InvalidArgument, "give keys="),
        (uc.flow(SCORES).window(uc.Fixed("1 minute")), None, InvalidArgument, "add .combine"),
        (grouped().with_columns(window_end=uc.col("total")), None, InvalidArgument, "two columns 'window_end'"),
        (grouped().with_columns(all=lists), "all", TypeMismatch, "give its parts"),
    ],
)
def test_flows_that_are_no_tables(flow: Any, keys: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        table_flow(flow, keys)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("shop.db", "is one of duckdb:path.db#table"),
        ("mysql://me:secret@host/db#t", "is one of .* but is 'mysql': ..."),
        ("duckdb:shop.db", "names no table"),
        ("duckdb:///shop.db#t", "to others: write 'duckdb:/shop.db#t' or 'duckdb:shop.db#t'"),
        ("duckdb:///shop.db?publish=seen.db#t", r"'duckdb:/shop.db\?publish=seen.db#t' or"),
        ("duckdb://shop.db#t", "is 'duckdb:' and the path"),
        ("duckdb:?publish=b.db#t", "is 'duckdb:' and the path"),
        ("duckdb:///:memory:#t", "is 'duckdb:' and the path"),
        ("duckdb::memory:#t", "is 'duckdb:' and the path"),
        ("duckdb:a.db?publsh=b.db#t", "has no option 'publsh': did you mean 'publish'"),
        ("duckdb:a.db?publish=#t", "names another file, which gets a copy of a.db"),
        ("duckdb:a.db?publish=./a.db#t", r"but is './a.db': write 'duckdb:a.db\?publish=seen.db#table'"),
        ("duckdb:a.db?publish_every=5 s#t", "publish_every= of a URL of DuckDB needs publish="),
        ("duckdb:a.db?publish=b.db&publish_every=5#t", "'5' is not a length of time"),
        ("duckdb:a.db?publish=b.db&publish_every=0 s#t", "publish_every must be longer than zero"),
        ("postgresql://me:secret@host/db", "names no table"),
        ("postgresql:host#t", "is a URL such as"),
        ("parquet:s3://bucket/t", "write delta: for a table in an object store"),
        ("postgresql://host/db#_uncombine_staged", "is one of the library's own"),
        ("duckdb:a.db#main._UNCOMBINE_BATCHES", "is one of the library's own"),
        (7, "but is none of them"),
    ],
)
def test_urls_that_name_no_table(url: Any, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words) as told:
        target_of(url)
    assert "secret" not in str(told.value)


def test_urls_of_duckdb() -> None:
    want = DuckDB(path="/data/a.db", table="t", schema="s")
    for url in ("duckdb:/data/a.db#s.t", "duckdb:////data/a.db#s.t", "duckdb:/data/a%2Edb#s.t"):
        assert target_of(url) == want
    copied = DuckDB(path="a b.db", table="t", publish="../c?d.db", publish_every=uc.windows.span("90 s"))
    assert target_of("duckdb:a b.db?publish=../c%3Fd.db&publish_every=1 min 30 s#t") == copied
    assert target_of("duckdb:a%20b.db?publish_every=90%20s&publish=..%2Fc%3Fd.db#t") == copied


@pytest.mark.parametrize("url", ["duckdb:{}/none/a.db#t", "duckdb:{}/a.db?publish={}/none/b.db#t"])
def test_a_folder_that_is_not_there(url: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"needs the folder .*/none, which is not there: make it first"):
        grouped().to_table(url.replace("{}", str(tmp_path)))


def test_a_missing_library_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(LibraryMissing, match=r"pip install 'uncombine\[duckdb\]'"):
        grouped().to_table("duckdb:shop.db#t")


@pytest.mark.parametrize("seed", seeds(3))
def test_a_table_follows_the_batches(seed: int, tmp_path: Path) -> None:
    assert follows(f"duckdb:///{tmp_path}/a.db#t", seed) > 50


@pytest.mark.weekly
def test_a_table_refuses_what_does_not_fit(tmp_path: Path) -> None:
    refuses(f"duckdb:///{tmp_path}/a.db#t")


def test_a_table_becomes_that_of_a_changed_flow(tmp_path: Path) -> None:
    adapted(f"duckdb:///{tmp_path}/a.db#t")


@pytest.mark.weekly
def test_a_table_is_taken_over_from_the_maker_of_a_seed(tmp_path: Path) -> None:
    taken_over(f"duckdb:///{tmp_path}/a.db#t")


@pytest.mark.weekly
def test_hard_names_and_values(tmp_path: Path) -> None:
    holds(f'duckdb:///{tmp_path}/a%23b.db#main.a "t" %2E%2523 😀', VALUES | NESTED | LENGTHS)
    finds(f"duckdb:///{tmp_path}/keys.db#t", KEYS | LENGTH_KEYS)
    assert (tmp_path / "a#b.db").exists()


@pytest.mark.parametrize("url", ["duckdb:a.db#t", "delta:a"])
def test_names_that_a_target_takes_for_one(url: str) -> None:
    schema = pa.schema({"k": pa.int64(), "K": pa.int64()})
    with pytest.raises(InvalidArgument, match="'k' and 'K' for one"):
        writer_of(url, Layout(schema, ("k",)))


@pytest.mark.parametrize(
    "kind", [pa.timestamp("ns"), pa.decimal256(60, 2), pa.duration("ns"), pa.list_(pa.duration("us"))], ids=str
)
def test_types_that_duckdb_does_not_have(kind: pa.DataType, tmp_path: Path) -> None:
    with pytest.raises(TypeMismatch, match=r"column 'v' is .*, a type that DuckDB does not have"):
        writer_of(f"duckdb:///{tmp_path}/a.db#t", Layout(pa.schema({"k": pa.int64(), "v": kind}), ("k",)))


def test_rows_that_somebody_adds(tmp_path: Path) -> None:
    """The rows of one key are more than the changes: the message said "-1 of 2 changes"."""
    writer = writer_of(f"duckdb:///{tmp_path}/a.db#t")
    writer.start()
    writer.apply(0, batch_of(row("a", 1)))
    writer.close()
    with duckdb.connect(str(tmp_path / "a.db")) as db:
        db.execute("INSERT INTO t SELECT t.* FROM t, range(2)")
    with pytest.raises(TableMismatch, match="has several rows of one key: something else has added some; delete"):
        writer.apply(1, batch_of(row("a", 1, -1), row("a", 2), row("b", 1)))
    assert writer.read().num_rows == 3
    writer.close()


def test_tables_of_others(tmp_path: Path) -> None:
    url, path = f"duckdb:///{tmp_path}/a.db#t", str(tmp_path / "a.db")
    with duckdb.connect(path) as db:
        db.execute("CREATE TABLE t AS SELECT 'a' AS k, 1 AS n")
    with pytest.raises(TableMismatch, match="has rows that were not written here"):
        writer_of(url).start()
    with duckdb.connect(path) as db:
        db.execute("DELETE FROM t")
    with pytest.raises(TableMismatch, match="has no column 'window_start', which the flow has"):
        writer_of(url).start()
    with duckdb.connect(path) as db:
        db.execute("DROP TABLE t")
    first = writer_of(url)
    assert first.start() == -1
    first.close()
    with duckdb.connect(path) as db:
        db.execute("DROP TABLE t")
    with pytest.raises(TableMismatch, match="is gone"):
        writer_of(url).start()
    again = writer_of(url, owner="you")
    assert again.start() == -1
    with pytest.raises(TableMismatch, match="already exists"):
        writer_of(url.replace("#t", "#T")).start()
    with pytest.raises(TableMismatch, match="is written with another checkpoint"):
        writer_of(url).apply(0, batch_of(row("a", 1)))
    again.close()


def test_a_flow_is_written_once(tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path}/a.db#t"
    grouped().to_table(url)
    with pytest.raises(TableMismatch, match="is there already"):
        grouped().to_table(url)
    with duckdb.connect(str(tmp_path / "a.db")) as db:
        assert db.sql('SELECT "user", total FROM t ORDER BY "user"').fetchall() == [("ada", 7), ("bob", 5)]


def test_the_result_of_a_script_is_written_once(tmp_path: Path) -> None:
    """It is the table that a live table has after these batches: of a grouping that retracts, if no mode is given."""
    script = [
        uc.Elements([{"ts": 0, "user": "ada", "score": 3}, {"ts": 1, "user": "bob", "score": 5}]),
        uc.Watermark("1970-01-01T00:02:00Z"),
        uc.Elements([{"ts": 2, "user": "ada", "score": 4}]),
    ]
    late = {"window": uc.Fixed("1 minute"), "allowed_lateness": "1 hour", "by": "user", "total": uc.Sum("score")}
    url = f"duckdb:///{tmp_path}/a.db#t"
    result = run_script(script, **late)
    assert result.panes["total"].to_pylist() == [3, 5, 7]
    result.to_table(url)
    with duckdb.connect(str(tmp_path / "a.db")) as db:
        assert db.sql('SELECT "user", total FROM t ORDER BY "user"').fetchall() == [("ada", 7), ("bob", 5)]
    with pytest.raises(TableMismatch, match="is there already"):
        result.to_table(url)
    with pytest.raises(InvalidArgument, match=r"use mode='retracting'"):
        run_script(script, mode="accumulating", **late).to_table(f"duckdb:///{tmp_path}/b.db#t")
    with pytest.raises(UnknownColumn, match="did you mean 'user'"):
        result.to_table(f"parquet:{tmp_path}/p", keys="usr")
    with pytest.raises(InvalidArgument, match=r"a whole result of flow\.run\(\)"):
        uc.Result(result.panes).to_table(url)
    assert not (tmp_path / "p").exists()


def test_a_failure_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    writer = writer_of(f"duckdb:///{tmp_path}/a.db#t")
    writer.start()
    writer.apply(0, batch_of(row("a", 1)))

    def broken() -> Any:
        yield from batch_of(row("b", 2)).batches()
        raise OSError("the network is gone")

    with pytest.raises(OSError, match="the network is gone"):
        writer.apply(1, uc.tables.Changes(LAYOUT, 2, broken))
    assert writer.read()["k"].to_pylist() == ["a"]
    assert writer.apply(1, batch_of(row("b", 2)))
    writer.close()


def test_a_file_that_another_process_has_open(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    code = f"import duckdb, sys; db = duckdb.connect({str(path)!r}); print('open', flush=True); sys.stdin.read()"
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    other.stdout.readline()
    pauses = list[float]()

    def wait(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            other.communicate()

    writer = writer_of(f"duckdb:///{path}#t")
    keeper = Keeper(writer, wait=wait)
    try:
        with pytest.raises(TableUnreachable, match="because another process has it open"):
            writer.start()
        for work in (lambda one: one.start(), lambda one: one.take(0, batch_of())):
            with pytest.raises(TableUnreachable, match="because another process has it open"):
                work(Keeper(writer, patience=0))
        assert pauses == []
        assert keeper.start() == -1  # as soon as the other one has closed it
        assert pauses == [0.05, 0.1, 0.2]
        assert keeper.take(0, batch_of(row("a", 1)))
    finally:
        keeper.close()
        other.communicate()


def test_a_reader_waits_for_the_process_that_writes(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    writer = writer_of(f"duckdb:///{path}#t")
    writer.start()
    writer.apply(0, batch_of(row("a", 1)))
    writer.close()
    code = f"import duckdb, sys; db = duckdb.connect({str(path)!r}); print('open', flush=True); sys.stdin.read()"
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    other.stdout.readline()
    keeper = Keeper(writer, wait=lambda seconds: other.communicate())
    assert keeper.read()["k"].to_pylist() == ["a"]
    with duckdb.connect(str(path), read_only=True):  # an error while it is open for writing
        pass
    assert keeper.start(patient=True) == 0
    keeper.close()


def test_a_closed_keeper_waits_no_more(tmp_path: Path) -> None:
    class Away(target.Writer):
        def facts(self) -> None:
            raise NotImplementedError

        def start(self) -> int:
            raise NotImplementedError

        def apply(self, batch: int, changes: Any) -> bool:
            raise TableUnreachable("away")

        def once(self, changes: Any) -> None:
            raise NotImplementedError

        def read(self, limit: int | None = None) -> pa.Table:
            raise NotImplementedError

    keeper = Keeper(Away("t", LAYOUT, "me"))
    keeper.close()
    with pytest.raises(TableUnreachable):
        keeper.take(0, batch_of())


def test_a_table_is_shown_when_it_changes() -> None:
    out = io.StringIO()
    tables = iter([pa.table({"k": ["a"], "n": [1]})] * 2 + [pa.table({"k": ["a", "b\nc"], "n": [None, 2]})])
    ended = iter([False, False, True])

    def wait(seconds: float) -> bool:
        time.sleep(seconds)
        return next(ended)

    watched(lambda limit: next(tables), wait, "table 't'", rows=5, every=0.01, out=out)
    assert out.getvalue() == "table 't'\nk  n\na  1\n\ntable 't'\nk    n\na\nb c  2\n\n"
    with pytest.raises(InvalidArgument, match="rows= must be"):
        watched(lambda limit: pa.table({}), lambda every: True, "", rows=0)


def test_the_changes_of_a_batch_come_again(tmp_path: Path) -> None:
    rows = pa.Table.from_pylist([row("a", 1)], ROWS)
    given = changes(rows)
    assert given.reader().read_all().equals(given.reader().read_all())
