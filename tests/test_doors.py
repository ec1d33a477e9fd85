"""One way in: a flow over anything that has rows gives the same result, and what has none is refused in a sentence."""

from __future__ import annotations

import datetime
import pathlib
from collections.abc import Callable
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch, UncombineError, UnknownColumn

ROWS = [
    {"ts": datetime.datetime(2016, 1, 20, 12, second // 60, second % 60, tzinfo=datetime.UTC), "k": k, "x": x}
    for second, k, x in ((26, "a", 5), (7, "b", 2), (150, "a", 1), (151, "a", 7))
]
TABLE = pa.Table.from_pylist(ROWS, pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "x": pa.int64()}))
WANT = [("a", 0, 5), ("a", 2, 8), ("b", 0, 2)]


def totals(flow: uc.Flow) -> uc.Flow:
    return flow.window(uc.Fixed("2 minutes")).combine(by="k", total=uc.Sum("x"))


def facts(panes: pa.Table) -> list[tuple[str, int, int]]:
    return sorted((row["k"], row["window"]["start"].minute, row["total"]) for row in panes.to_pylist())


class LazyFrame:
    """A lazy frame, as Polars and narwhals have one."""

    def collect(self) -> Any:
        return Stream()


class Stream:
    """Anything that gives Arrow."""

    def __arrow_c_stream__(self, requested: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested)


def files_in(folder: pathlib.Path, format: str) -> str:
    path = folder / f"rows.{format}"
    if format == "csv":
        path.write_text(TABLE.to_pandas().to_csv(index=False))
    elif format == "json":
        path.write_text("\n".join(f'{{"ts": "{r["ts"].isoformat()}", "k": "{r["k"]}", "x": {r["x"]}}}' for r in ROWS))
    elif format == "arrow":
        pyarrow.feather.write_feather(TABLE, path)
    else:
        pq.write_table(TABLE, path)
    return str(path)


SCRIPT = [uc.Elements(ROWS[:2]), uc.Elements(TABLE.slice(2)), uc.Watermark(None)]
HERE: dict[str, Callable[[pathlib.Path], Any]] = {
    "dicts": lambda _: ROWS,
    "texts as times": lambda _: [{**row, "ts": row["ts"].isoformat()} for row in ROWS],
    "arrow": lambda _: TABLE,
    "batch": lambda _: TABLE.to_batches()[0],
    "pandas": lambda _: TABLE.to_pandas(),
    "a stream": lambda _: Stream(),
    "a lazy frame": lambda _: LazyFrame(),
    "columns": lambda _: TABLE.to_pydict(),
    "columns of arrays": lambda _: {
        "ts": TABLE["ts"].cast("string").to_pylist(),
        "k": TABLE["k"],
        "x": TABLE["x"].to_numpy(),
    },
    "columns of series": lambda _: dict(TABLE.to_pandas().items()),
    "a dataset": lambda folder: pa.dataset.dataset(files_in(folder, "parquet")),
    "a scanner": lambda folder: pa.dataset.dataset(files_in(folder, "parquet")).scanner(columns=["ts", "k", "x"]),
    "a reader": lambda _: TABLE.to_reader(),
    "a generator of rows": lambda _: (row for row in ROWS),
    "a generator of batches": lambda _: (TABLE.slice(i, 1).to_batches()[0] for i in range(4)),
    "tables": lambda _: [TABLE.slice(0, 1), TABLE.slice(1)],
    "a generator of paths": lambda folder: pathlib.Path(files_in(folder, "parquet")).parent.glob("*.parquet"),
    "duckdb": lambda _: duckdb.sql("SELECT * FROM here", connection=_connected()),
    "script": lambda _: SCRIPT,
    **{form: lambda folder, form=form: files_in(folder, form) for form in ("parquet", "arrow", "csv", "json")},  # type: ignore[misc]
    "a path": lambda folder: pathlib.Path(files_in(folder, "parquet")),
    "paths": lambda folder: [files_in(folder, "parquet")],
    "files": lambda folder: uc.Files(files_in(folder, "csv"), format="csv", delimiter=","),
}


def _connected() -> duckdb.DuckDBPyConnection:
    return duckdb.connect().register("here", TABLE)


@pytest.mark.parametrize("name", HERE)
def test_everything_with_rows_gives_the_same(name: str, tmp_path: pathlib.Path) -> None:
    flow = totals(uc.flow(HERE[name](tmp_path)))
    assert facts(flow.run().panes) == WANT
    assert facts(flow.run(SCRIPT).panes) == WANT


def test_a_schema_has_its_rows_by_a_script() -> None:
    flow = totals(uc.flow(TABLE.schema))
    assert facts(flow.run(SCRIPT).panes) == WANT
    with pytest.raises(InvalidArgument, match=r"run\(\) needs a script, since a source of the flow has columns and no"):
        flow.run()


@pytest.mark.parametrize("name", [name for name in HERE if name != "script"])
def test_everything_with_rows_gives_the_same_on_spark(name: str, spark: SparkSession, tmp_path: pathlib.Path) -> None:
    flow = totals(uc.flow(HERE[name](tmp_path), spark=spark))
    assert facts(flow.df.toArrow()) == WANT
    assert facts(flow.run(SCRIPT).panes) == WANT


def test_a_flow_over_spark_runs_a_script_with_its_strategy_and_changelog(spark: SparkSession) -> None:
    messages = pa.table({"ts": TABLE["ts"], "k": TABLE["k"], "x": TABLE["x"], "row_kind": ["+I", "+I", "-D", "+I"]})
    deployed = uc.flow(
        spark.createDataFrame(messages.to_pandas()), changelog=uc.changelog.Flink(), watermark="10 seconds"
    )
    result = totals(deployed).run([uc.Elements(messages.slice(0, 2)), uc.Elements(messages.slice(2))])
    assert result["total"].to_pylist() == [5, 2], "the rows reported the watermark that showed them"
    table = totals(deployed).run([uc.Elements(messages), uc.Watermark(None)]).table()
    assert facts(table) == [("a", 0, 5), ("b", 0, 2)], "a row and a retraction are no row"


def test_a_union_of_flows_of_one_script_plays_it_once() -> None:
    script = [uc.Elements(ROWS[:2], input="l"), uc.Elements(ROWS[2:], input="r"), uc.Watermark(None)]
    both = uc.union(uc.flow(script, name="l"), uc.flow(script, name="r"))
    assert facts(totals(both).run().panes) == WANT
    other = uc.union(uc.flow(script, name="l"), uc.flow(SCRIPT, name="r"))
    with pytest.raises(InvalidArgument, match=r"plays one script, and the sources .* write flow.run\(script\)"):
        totals(other).run()


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a typo": (
        lambda _: uc.flow(ROWS, watermak="1 s"),
        "no option 'watermak': did you mean 'watermark'?",
    ),
    "an option of files": (lambda _: uc.flow("a", delimiter=";"), "give uc.flow() uc.Files(path, delimiter=...)"),
    "an option of tuning": (lambda _: uc.flow(ROWS, shards=8), "give tuning=uc.Tuning(shards=...)"),
    "a step as an option": (lambda _: uc.flow(ROWS, replay=True), "write .replay() after uc.flow(...)"),
    "a flow": (lambda _: uc.flow(uc.flow(ROWS)), "uc.flow() was given a flow, which needs no other start"),
    "a session": (lambda spark: uc.flow(spark), "uc.flow() was given a session: write uc.flow(spark.table(name))"),
    "no session": (lambda _: uc.flow(ROWS, spark="local"), "spark= takes a session, such as uc.session()"),
    "one row": (
        lambda _: uc.flow({"ts": 0, "x": 1}),
        "a dict has the values of each column, but 'ts' is 0: write [row]",
    ),
    "columns of two lengths": (
        lambda _: uc.flow({"ts": [0], "x": [1, 2]}),
        "but has 1 of 'ts' and 2 of 'x': give as many",
    ),
    "a mixed column": (
        lambda _: uc.flow({"ts": [0, 1], "x": [1, "a"]}),
        "column 'x' of the dict has values of different",
    ),
    "other tables": (
        lambda _: uc.flow([TABLE, TABLE.select(["ts"])]),
        "tables of the same columns are needed, but one has ts timestamp[us, tz=UTC], k string, x int64, and another",
    ),
    "an open file": (lambda _: uc.flow(open(__file__)), "uc.flow() was given an open file: write uc.flow(path)"),  # noqa: SIM115
    "a number": (lambda _: uc.flow(3), "a list of dicts is needed, but the table is a int"),
    "no rows": (lambda _: uc.flow([uc.Watermark(None)]), "the script has no rows, so their columns are unknown"),
    "half a script": (lambda _: uc.flow([uc.Elements(ROWS), ROWS]), "entry 1 of the script must be Elements"),
    "mixed values": (lambda _: uc.flow([{"ts": 0, "x": 1}, {"ts": 0, "x": "a"}]), "column 'x' of the rows has values"),
    "no time": (lambda _: uc.flow([{"x": 1}]), "time= needs column 'ts'"),
    "a script on Spark": (
        lambda spark: uc.flow(SCRIPT, spark=spark),
        "a script and a schema have rows in this",
    ),
    "a schema on Spark": (lambda spark: uc.flow(TABLE.schema, spark=spark), "a script and a schema have rows in this"),
    "its own session": (lambda spark: uc.flow(spark.range(1), spark=spark), "a DataFrame has its own session"),
    "no stream": (lambda spark: uc.flow(spark.range(1), streaming=True), "streaming=True needs a streaming DataFrame"),
    "rows in a stream": (lambda spark: uc.flow(ROWS, spark=spark, streaming=True), "streaming=True is for files"),
    "a stream here": (lambda _: uc.flow("/no", streaming=True), "streaming=True needs spark="),
    "replay without": (lambda _: uc.flow(ROWS).replay(), "replay() needs watermark="),
    "replay without times": (lambda _: uc.flow(ROWS, watermark="1 s").replay(), "replay() needs processing_time="),
    "replay late": (lambda _: totals(seen()).replay(), "replay() comes before steps that keep state"),
    "replay of nothing": (lambda _: uc.flow(TABLE.schema, watermark="1 s", processing_time="ts").replay(), "has none"),
    "replay of a union": (lambda _: uc.union(seen(), seen()).replay(), "write it after each uc.flow(...)"),
    "a checkpoint here": (lambda _: totals(uc.flow(ROWS)).to_table("duckdb:a.db#t", checkpoint="c"), "writes once"),
    "a trigger at once": (lambda _: totals(uc.flow(ROWS)).to_table("duckdb:a.db#t", trigger={}), "writes once"),
    "a DataFrame here": (
        lambda _: totals(uc.flow(ROWS)).df,
        "write flow.run().to_pandas(flat=True), or give",
    ),
    "Spark's rows here": (lambda spark: uc.flow(ROWS, spark=spark).run(), "run() of a flow over Spark takes a script"),
    "clocks of no stream": (
        lambda spark: totals(uc.flow(spark.createDataFrame(TABLE), watermark=uc.IngressTime())),
        "watermark=IngressTime() needs a stream or a replay",
    ),
}


def seen() -> uc.Flow:
    return uc.flow([{**row, "seen": row["ts"]} for row in ROWS], watermark="1 minute", processing_time="seen")


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_right_is_refused_in_a_sentence(name: str, spark: SparkSession) -> None:
    make, says = REFUSED[name]
    with pytest.raises(UncombineError) as refused:
        make(spark)
    assert says in str(refused.value)
    assert isinstance(refused.value, InvalidArgument | TypeMismatch | UncombineError)


@pytest.mark.parametrize("close_at_end", [False, True])
def test_a_replay_here_is_that_of_spark(close_at_end: bool, spark: SparkSession) -> None:
    rows = [{**row, "seen": row["ts"] + datetime.timedelta(seconds=i)} for i, row in enumerate(ROWS)]

    def panes(flow: uc.Flow) -> uc.Flow:
        early = uc.AfterWatermark(early=uc.AfterCount(1))
        played = flow.replay(close_at_end=close_at_end)
        return played.window(uc.Fixed("2 minutes"), early, "retracting").combine(by="k", total=uc.Sum("x"))

    options: dict[str, Any] = {"watermark": "10 seconds", "processing_time": "seen"}
    here = panes(uc.flow(rows, **options)).run().panes.drop_columns(["step"])
    there = panes(uc.flow(rows, spark=spark, **options)).df.toArrow()
    assert sorted(map(repr, here.to_pylist())) == sorted(map(repr, there.select(here.column_names).to_pylist()))
    assert here.num_rows > len(WANT)


def test_rows_far_from_now_are_bad_rows_of_their_own_source() -> None:
    """Each source of a union has its own limit."""
    far = [{"ts": 3 * 86_400_000_000, "k": "a", "x": 1}]
    script = [uc.Elements(far, at=0, input=name) for name in "lr"] + [uc.Watermark(None)]
    known = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "x": pa.int64()})
    none, week = (uc.flow(known, name=name, max_future=limit) for name, limit in (("l", "1 day"), ("r", "7 days")))
    result = totals(uc.union(none, week)).run(script)
    assert result.counts()["bad"] == 1
    assert result["total"].to_pylist() == [1]
    assert totals(uc.flow(known, name="l", max_future=None)).run(script[:1]).counts()["bad"] == 0


def test_pandas_times_without_a_zone_are_utc() -> None:
    frame = pd.DataFrame({"ts": pd.to_datetime(["2016-01-20T12:00:26"]), "k": ["a"], "x": [5]})
    assert facts(totals(uc.flow(frame)).run().panes) == [("a", 0, 5)]


def test_a_generator_of_entries_is_a_script() -> None:
    assert facts(totals(uc.flow(entry for entry in SCRIPT)).run().panes) == WANT


def test_elements_may_be_columns() -> None:
    script = [uc.Elements(TABLE.to_pydict()), uc.Watermark(None)]
    assert facts(totals(uc.flow(TABLE.schema)).run(script).panes) == WANT


def test_all_rows_are_combined_without_a_window() -> None:
    whole = uc.flow(ROWS).combine(by="k", total=uc.Sum("x"))
    assert sorted((row["k"], row["total"]) for row in whole.collect()) == [("a", 13), ("b", 2)]
    assert repr(whole) == repr(uc.flow(ROWS).window(uc.Global()).combine(by="k", total=uc.Sum("x")))
    maxima = totals(uc.flow(ROWS)).agg(most=uc.Max("total"))
    assert [row["most"] for row in maxima.collect()] == [8]
    for endless in (uc.flow(ROWS, watermark="1 minute"), seen().replay()):
        with pytest.raises(
            InvalidArgument, match=r"^combine\(\) without a window gives its rows at the end of the input, and"
        ):
            endless.combine(n=uc.Count())
    assert seen().replay(close_at_end=True).combine(n=uc.Count()).run()["n"].to_pylist() == [4]


def test_second_names_are_the_same_methods() -> None:
    """The name of other libraries is the method itself, and completion shows it once."""
    windowed = uc.flow(ROWS).window("1 minute")
    flow = windowed.agg(n=uc.Count())
    for kind, name, ours in (
        (uc.Flow, "filter", "where"),
        (uc.Flow, "assign", "with_columns"),
        (uc.Flow, "agg", "combine"),
    ):
        assert getattr(kind, name) is getattr(kind, ours)
        assert ours in dir(flow)
        assert name not in dir(flow)
    assert type(windowed).agg is type(windowed).combine
    assert [row["n"] for row in flow.filter(uc.col("n") > 1).assign(m=uc.col("n") * 2).collect()] == [2, 2]


def test_a_function_of_a_flow_stands_in_its_chain() -> None:
    def above(flow: uc.Flow, least: int, *, column: str) -> uc.Flow:
        return flow.where(uc.col(column) > least)

    assert len(uc.flow(ROWS).pipe(above, 4, column="x").collect()) == 2
    assert uc.flow(ROWS).pipe(lambda flow: flow.schema.names) == ["ts", "k", "x"]
    with pytest.raises(InvalidArgument, match=r"pipe\(\) takes a function of a flow, but was given 'x'"):
        uc.flow(ROWS).pipe("x")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "length", [datetime.timedelta(minutes=2), pd.Timedelta("2min"), uc.span("2 minutes"), "2 minutes"]
)
def test_a_length_of_time_is_a_fixed_window(length: Any) -> None:
    flow = uc.flow(ROWS).window(length).combine(by="k", total=uc.Sum("x"))
    assert facts(flow.run().panes) == WANT
    assert repr(flow) == repr(totals(uc.flow(ROWS)))
    month = uc.flow(ROWS).window("1 month").combine(n=uc.Count())
    assert [(row["window"]["start"].day, row["window"]["end"].month, row["n"]) for row in month.collect()] == [
        (1, 2, 4)
    ]


def test_the_times_of_an_index_are_no_column() -> None:
    times = pd.to_datetime(["2024-05-01 10:00", "2024-05-01 11:00"], utc=True)
    frame = pd.DataFrame({"temp": [1.0, 2.0]}, index=times.rename("when"))
    with pytest.raises(UnknownColumn, match=r"give uc.flow\(\) frame.reset_index\(\), and time='when'"):
        uc.flow(frame)
    hours = uc.flow(frame.reset_index(), time="when").window("1 hour").combine(n=uc.Count())
    assert hours.run()["n"].to_pylist() == [1, 1]
    with pytest.raises(UnknownColumn, match="known are 'temp'"):
        uc.flow(pd.DataFrame({"temp": [1.0]}))
