"""Columns that rows keep, and their names: a renamed time, weight or key goes on as what it is, on every route."""

from __future__ import annotations

import random
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, UnknownColumn
from uncombine.flows.flow_steps import input_of
from uncombine.flows.graph import graph_of, leaf_columns
from uncombine.panes.selection import Rename, Select

TABLE = pa.table(
    {
        "ts": pa.array([0, 1, 61_000_000], pa.timestamp("us", "UTC")),
        "user": ["a", "b", "a"],
        "x": [1, 2, 3],
        "y": [4, 5, 6],
        "w": [1, 1, -1],
    }
)
FLOW = uc.flow(TABLE)
WEIGHED = uc.flow(TABLE, diff="w")


@pytest.mark.parametrize("seed", seeds(20))
def test_renaming_and_dropping_are_those_of_pandas(seed: int) -> None:
    r = random.Random(seed)
    frame = TABLE.to_pandas()
    flow = FLOW
    for _ in range(4):
        columns = [name for name in frame.columns if name != input_of(flow).time]
        if r.random() < 0.3 and len(columns) > 1:
            gone = r.sample(columns, r.randrange(1, len(columns)))
            frame, flow = frame.drop(columns=gone), flow.drop(*gone) if r.random() < 0.5 else flow.drop(gone)  # type: ignore[arg-type]
            continue
        some = r.sample(list(frame.columns), r.randrange(len(frame.columns) + 1))
        news = some[::-1] if r.random() < 0.3 else [f"{name}{r.randrange(9)}" for name in some]  # names change places
        names = dict(zip(some, news, strict=True))
        frame = frame.rename(columns=names)
        flow = flow.rename(names) if r.random() < 0.5 else flow.rename(**names)
    pd.testing.assert_frame_equal(flow.to_pandas().drop(columns="step"), frame, check_dtype=False)


def test_the_time_and_the_weight_go_with_their_names() -> None:
    renamed = WEIGHED.rename({"ts": "at", "w": "times", "user": "who"}).rename(at="when")
    assert (input_of(renamed).time, input_of(renamed).diff) == ("when", "times")
    sums = renamed.window("1 minute").combine(by="who", x=uc.Sum("x"))
    want = WEIGHED.window("1 minute").combine(by="user", x=uc.Sum("x"))
    assert sums.run().panes.rename_columns([*want.schema.names, "step"]).equals(want.run().panes)
    assert sorted(row["x"] for row in sums.collect()) == [-3, 1, 2]
    assert renamed.run().table().column_names == ["when", "who", "x", "y", "times"]


def test_panes_go_on_under_other_names() -> None:
    script = [uc.Elements(TABLE.slice(0, 1)), uc.Elements(TABLE.slice(1, 1)), uc.Watermark(None)]
    early = uc.flow(TABLE.schema).window("1 minute", "every 1 row", "retracting").combine(x=uc.Sum("x"))
    renamed = early.rename(event_time="at", diff="sign", x="sum")
    result = renamed.run(script)
    assert [(row["sum"], row["sign"]) for row in result] == [(1, 1), (1, -1), (3, 1)]
    assert result.table()["sum"].to_pylist() == [3], "the weights net, whatever they are called"
    assert result.table().column_names == ["window", "sum", "at", "sign"]
    days = renamed.window("1 day").combine(total=uc.Sum("sum"), n=uc.Count())
    assert days.run(script)["total"].to_pylist() == [3]
    assert days.run(script)["n"].to_pylist() == [1]


def test_joins_and_unions_read_the_new_names() -> None:
    left = FLOW.rename(ts="when", user="who").drop("w")
    right = FLOW.drop("w").rename(ts="at", user="name", x="z")
    both = left.join(right, on={"who": "name"}, within=("0 s", "0 s"))
    assert sorted((row["who"], row["x"], row["z"]) for row in both.collect()) == [("a", 1, 1), ("a", 3, 3), ("b", 2, 2)]
    minutes = uc.union(left, right).window("1 minute").combine(n=uc.Count())
    assert [row["n"] for row in minutes.collect()] == [4, 2]


def test_a_table_is_keyed_by_the_new_names(tmp_path: Any) -> None:
    duckdb = pytest.importorskip("duckdb")
    minutes = FLOW.window("1 minute").combine(by="user", total=uc.Sum("x")).rename(user="who", event_time="at")
    minutes.to_table(f"duckdb:///{tmp_path}/a.db#t")
    with duckdb.connect(f"{tmp_path}/a.db") as connection:
        rows = connection.sql("SELECT who, total FROM t ORDER BY total").fetchall()
    assert rows == [("a", 1), ("b", 2), ("a", 3)]


def test_a_filter_by_weights_is_refused_under_any_name() -> None:
    early = WEIGHED.window("1 minute").combine(x=uc.Sum("x"))
    assert early.where(uc.col("diff") > 0).rename(diff="d").run().num_rows == 2
    for flow in (early.where(uc.col("diff") > 0).rename(diff="d"), early.rename(diff="d").where(uc.col("d") > 0)):
        with pytest.raises(InvalidArgument, match="the weights of rows that can be retracted"):
            flow.window("1 hour").combine(n=uc.Count())


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "time": (
        lambda: FLOW.drop("ts"),
        InvalidArgument,
        "drop() cannot leave out 'ts', which has the event times or the",
    ),
    "weight": (lambda: WEIGHED.drop("x", "w"), InvalidArgument, "drop() cannot leave out 'w'"),
    "new time": (lambda: FLOW.rename(ts="at").drop("at"), InvalidArgument, "drop() cannot leave out 'at'"),
    "weight of panes": (
        lambda: FLOW.combine(n=uc.Count()).rename(diff="d").drop("d"),
        InvalidArgument,
        "drop() cannot leave out 'd'",
    ),
    "no column": (lambda: FLOW.drop("z"), UnknownColumn, "drop() needs column 'z', which the input does not have"),
    "no old name": (
        lambda: FLOW.rename(usr="a"),
        UnknownColumn,
        "rename() needs column 'usr', which the input does not",
    ),
    "two of a name": (lambda: FLOW.rename(x="y"), InvalidArgument, "rename() would give two columns the name 'y'"),
    "two to a name": (
        lambda: FLOW.rename(x="z", y="z"),
        InvalidArgument,
        "rename() would give two columns the name 'z'",
    ),
    "no text": (
        lambda: FLOW.rename(x=3),
        InvalidArgument,
        "rename() takes the new names as texts, but was given 3 for",
    ),  # type: ignore[arg-type]
    "no dict": (lambda: FLOW.rename("x"), InvalidArgument, "rename() takes a dict of old and new names, but was given"),  # type: ignore[arg-type]
    "columns=": (
        lambda: FLOW.rename(columns={"x": "z"}),  # type: ignore[arg-type]
        InvalidArgument,
        "rename() takes a dict without a name before it: write rename({'x': 'z'})",
    ),
    "twice": (
        lambda: FLOW.rename({"x": "z"}, x="a"),
        InvalidArgument,
        "rename() was given 'x' twice, in the dict and by",
    ),
    "a name of ours": (
        lambda: FLOW.rename(x="uncombine_at"),
        InvalidArgument,
        "the library keeps processing times in column 'uncombine_at'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_names_that_cannot_be_right_are_refused(name: str) -> None:
    make, kind, says = REFUSED[name]
    with pytest.raises(kind) as refused:
        make()
    assert str(refused.value).startswith(says)


def test_no_column_is_read_that_no_step_needs() -> None:
    """A selection needs what comes after it, and no more."""
    for flow in (FLOW.drop("y"), FLOW.select("ts", "user", "x", "y"), FLOW.rename(user="who", x="z", y="q")):
        [step] = graph_of(flow.window("1 minute").combine(n=uc.Sum(flow.schema.names[2]))).steps
        assert leaf_columns(step, step.feeds[0], step.feeds[0].leaf) == {"ts", "x"}  # type: ignore[arg-type]
    rows = TABLE.select(["x"])
    assert Select(("y", "x")).apply(rows).column_names == ["x"]
    assert Rename({"x": "z", "y": "q"}).apply(rows).column_names == ["z"]
    assert Select(()).apply(rows).num_rows == 3


@pytest.mark.parametrize("files", [False, True])
def test_spark_renames_and_drops_alike(files: bool, spark: SparkSession, tmp_path: Any) -> None:
    if files:
        pq.write_table(TABLE, tmp_path / "a.parquet")
    there = uc.flow(str(tmp_path), spark=spark) if files else uc.flow(TABLE, spark=spark)

    def steps(flow: uc.Flow) -> uc.Flow:
        return flow.rename(user="who", ts="when", x="y", y="x").where(uc.col("y") > 1).drop("w").rename(who="WHO")

    assert steps(there).df.toArrow().to_pylist() == steps(FLOW).to_arrow().drop_columns(["step"]).to_pylist()
    assert "Rows that Spark itself selects and filters" in steps(there).explain() or files

    def sums(flow: uc.Flow) -> uc.Flow:
        return steps(flow).window("1 minute").combine(by="WHO", total=uc.Sum("y")).rename(event_time="at", diff="d")

    def days(flow: uc.Flow) -> uc.Flow:
        return sums(flow).window("1 day").combine(by="WHO", total=uc.Sum("total"))

    for flow in (sums, days):
        columns = ["WHO", "total"]
        here = sorted(map(str, flow(FLOW).to_arrow().select(columns).to_pylist()))
        assert sorted(map(str, flow(there).df.toArrow().select(columns).to_pylist())) == here
        assert len(here) == 2
