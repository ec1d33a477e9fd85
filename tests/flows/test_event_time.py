"""Event times that an expression computes, or a format: the rows are those of a source that has the times."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch, UnknownColumn

MS = 1_704_067_200_000
"""The first millisecond of 2024."""

ROWS: list[dict[str, Any]] = [
    {"ms": MS + 5_000, "user": "ada", "x": 1},
    {"ms": None, "user": "ada", "x": 2},
    {"ms": MS + 61_000, "user": "bob", "x": 4},
    {"ms": 2**62, "user": "bob", "x": 8},
    {"ms": MS + 59_999, "user": "ada", "x": 16},
]
GOOD = [row for row in ROWS if row["x"] in (1, 4, 16)]
TIME = uc.col("ms").cast_time("ms")


def totals(flow: uc.Flow) -> uc.Flow:
    return flow.window("1 minute").combine(by="user", total=uc.Sum("x"))


def shown(flow: uc.Flow, *script: Any) -> tuple[Counter[Any], Counter[Any], int]:
    """The panes, the rows that were left out, and the number of bad rows."""
    result = flow.run(*script)
    panes = Counter((row["user"], row["window"]["start"], row["total"]) for row in result.to_pylist())
    left_out = Counter((row["why"], row["row"]["x"], row["row"]["event_time"]) for row in result.left_out.to_pylist())
    return panes, left_out, result.counts()["bad"]


def minute(n: int) -> datetime:
    return datetime(2024, 1, 1, 0, n, tzinfo=UTC)


WANTED = (
    Counter([("ada", minute(0), 17), ("bob", minute(1), 4)]),
    Counter([("bad", 2, None), ("bad", 8, None)]),
    2,
)


@pytest.mark.parametrize("form", ["rows", "arrow", "pandas", "parquet", "csv", "json", "script", "schema"])
@pytest.mark.parametrize("options", [{"time": TIME}, {"time": "ms", "time_format": "ms"}], ids=["expression", "format"])
def test_rule_11_a_value_that_is_no_time_is_a_bad_row_of_every_source(
    form: str, options: dict[str, Any], tmp_path: Path
) -> None:
    table = pa.Table.from_pylist(ROWS)
    script = [uc.Elements(ROWS[:2]), uc.Elements(ROWS[2:]), uc.Watermark(None)]
    given: Any = {"rows": ROWS, "arrow": table, "script": script, "schema": table.schema}.get(form, tmp_path)
    match form:
        case "pandas":
            given = pd.DataFrame(ROWS).astype({"ms": "Int64"})
        case "parquet":
            pq.write_table(table, tmp_path / "a.parquet")
        case "csv":
            (tmp_path / "a.csv").write_text(table.to_pandas().to_csv(index=False).replace(".0,", ","))
        case "json":
            (tmp_path / "a.json").write_text("\n".join(map(json.dumps, ROWS)))
    if form == "csv":  # through floats, pandas writes 2**62 as 4.611686018427388e+18
        given = uc.Files(tmp_path, schema=table.schema)
        (tmp_path / "a.csv").write_text(
            "ms,user,x\n" + "\n".join(f"{r['ms'] or ''},{r['user']},{r['x']}" for r in ROWS)
        )
    flow = totals(uc.flow(given, **options))
    assert shown(flow, *([script] if form == "schema" else [])) == WANTED
    assert flow.source_schema.names == ["ms", "user", "x", "event_time"]
    assert "  time: col('ms').cast_time('ms')" in flow.explain().splitlines()
    # A script takes the place of the rows of any source, and its rows are those before the computation.
    assert shown(flow, script) == WANTED


def test_a_time_of_arrival_is_a_column() -> None:
    with pytest.raises(InvalidArgument, match=r"takes the name of a column, and not .*: let uc.Files read it with"):
        uc.flow(ROWS, time="ms", time_format="ms", watermark="1 minute", processing_time=TIME)  # type: ignore[call-overload]


def test_a_row_with_a_bad_time_is_shown_with_what_it_had() -> None:
    days = [{"day": day, "user": "ada", "x": x} for x, day in enumerate(["31.01.2024", "31.02.2024"], 1)]
    result = totals(uc.flow(days, time="day", time_format="%d.%m.%Y")).run()
    assert result["total"].to_pylist() == [1]
    assert [row["row"] for row in result.left_out.to_pylist()] == [
        {"day": "31.02.2024", "user": "ada", "x": 2, "event_time": None}
    ]


def test_the_expression_may_take_the_place_of_its_column() -> None:
    rows = [{"event_time": "31.01.2024", "user": "ada", "x": 1}, {"event_time": "?", "user": "ada", "x": 2}]
    flow = uc.flow(rows, time="event_time", time_format="%d.%m.%Y")
    assert flow.schema == pa.schema({"event_time": pa.timestamp("us", "UTC"), "user": pa.string(), "x": pa.int64()})
    result = totals(flow).run([uc.Elements(rows), uc.Watermark(None)])
    assert (result["total"].to_pylist(), result.counts()["bad"]) == ([1], 1)


def test_any_expression_of_times_is_one_and_fails_for_single_rows_alone() -> None:
    rows = [{"a": "2024-01-01", "user": "ada", "x": 1}, {"a": "later", "user": "ada", "x": 2}] * 20
    for time in (
        uc.col("a").cast(pa.timestamp("us")),
        uc.col("a").cast(pa.date32()),
        uc.when(uc.col("x") > 0, uc.col("a").cast_time(), None),
    ):
        result = totals(uc.flow(rows, time=time)).run()
        assert (result["total"].to_pylist(), result.counts()["bad"]) == ([20], 20)


def test_files_are_combined_in_threads_and_read_no_more_columns_than_before(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(ROWS).append_column("more", pa.array(["?"] * 5))
    for i in range(3):
        pq.write_table(table, tmp_path / f"{i}.parquet")
    flow = totals(uc.flow(tmp_path, time=TIME))
    assert "rows are combined in threads" in flow.explain()
    assert [row["total"] for row in flow.run().sort_by("total").to_pylist()] == [12, 51]
    reader = flow.source.readers(["event_time", "x"])[0]  # type: ignore[attr-defined]
    assert next(reader).column_names == ["event_time", "x"]


def test_retractions_have_the_times_of_their_rows() -> None:
    """With old rows in the feed, and with keys."""
    feed = [
        {"id": 1, "ms": MS, "user": "ada", "x": 1, "kind": "+I"},
        {"id": 1, "ms": MS, "user": "ada", "x": 1, "kind": "-U"},
        {"id": 1, "ms": MS + 60_000, "user": "ada", "x": 2, "kind": "+U"},
        {"id": 2, "ms": None, "user": "bob", "x": 4, "kind": "+I"},
    ]
    wanted = Counter({("ada", minute(1), 2): 1})
    for keys in (None, "id"):
        for given in (feed, [uc.Elements(feed[:1]), uc.Elements(feed[1:]), uc.Watermark(None)]):
            flow = uc.flow(given, time=TIME, changelog=uc.changelog.Flink("kind", keys=keys))
            assert flow.schema.names == ["id", "ms", "user", "x", "event_time", "diff"]
            result = totals(flow).run()
            net = Counter((row["user"], row["window"]["start"], row["total"]) for row in result.table().to_pylist())
            assert (net, result.counts()["bad"]) == (wanted, 1)


def test_messages_in_texts_have_times_too() -> None:
    def message(x: int, ms: Any) -> dict[str, Any]:
        return {"value": json.dumps({"op": "c", "after": {"x": x, "ms": ms, "user": "ada"}})}

    row = pa.schema({"x": pa.int64(), "ms": pa.int64(), "user": pa.string()})
    form = uc.changelog.Debezium(json=True, schema=row)
    flow = uc.flow([message(1, MS), message(2, None)], time=TIME, changelog=form)
    result = totals(flow).run()
    assert (result["total"].to_pylist(), result.counts()["bad"]) == ([1], 1)


def test_unions_joins_and_steps_take_the_times() -> None:
    one = uc.flow(GOOD, time=TIME, name="one")
    other = uc.flow([{"ts": minute(0), "user": "eve", "x": 3}], name="other")
    union = totals(uc.union(one, other)).run()
    assert sorted(union["total"].to_pylist()) == [3, 4, 17]
    joined = one.join(uc.flow(GOOD, time=TIME, name="two"), on="user", within=("0 s", "1 minute")).run()
    assert sorted(row["x_right"] - row["x_left"] for row in joined.to_pylist()) == [0, 0, 0, 15]
    first = uc.flow(ROWS, time=TIME).distinct("user").run()
    assert sorted(zip(first["user"].to_pylist(), first["x"].to_pylist(), strict=True)) == [("ada", 1), ("bob", 4)]
    moved = totals(uc.flow(GOOD, time=TIME).with_time(uc.col("event_time") + pd.Timedelta("1 h"))).run()
    assert {row["window"]["start"].hour for row in moved.to_pylist()} == {1}


def test_watermarks_and_replays_follow_the_times() -> None:
    rows = [{**row, "seen": MS * 1000 + i} for i, row in enumerate(GOOD)]
    source = uc.flow(rows, time=TIME, watermark="1 minute", processing_time="seen", max_future=None)
    result = totals(source.replay(close_at_end=True)).run()
    assert sorted(result["total"].to_pylist()) == [4, 17]
    bounded = uc.flow(rows, time=TIME, watermark=uc.PerSource("user", "1 second"), processing_time="seen")
    assert totals(bounded).run().num_rows == 2


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        (
            {"time": uc.col("x")},
            TypeMismatch,
            "time= takes an expression of times, but col('x') is int64: write x.cast",
        ),
        ({"time": uc.coalesce(5).cast_time("s")}, InvalidArgument, "is the same for all rows: name a column in it"),
        ({"time": uc.col("y").cast_time()}, UnknownColumn, "needs column 'y', which the input does not have"),
        ({"time": TIME, "time_format": "ms"}, InvalidArgument, "time_format= is for a column that time= names"),
        ({"time": "ms", "time_format": "hours"}, InvalidArgument, "a time is read by a unit of numbers"),
        ({"time": "ms", "time_format": "%Y"}, TypeMismatch, "numbers count a unit since 1970: write cast_time('s')"),
        ({"time": TIME, "watermark": uc.IngressTime()}, InvalidArgument, "gives rows their event times: leave"),
    ],
)
def test_wrong_use_is_refused_before_any_row_is_read(options: dict[str, Any], error: Any, says: str) -> None:
    for given in (ROWS, pa.schema({"ms": pa.int64(), "user": pa.string(), "x": pa.int64()})):
        with pytest.raises(error, match=re.escape(says)):
            uc.flow(given, **options)


def test_a_column_of_that_name_is_not_hidden() -> None:
    with pytest.raises(InvalidArgument, match="the rows have another column of that name"):
        uc.flow([{"ms": 1, "event_time": 2}], time=TIME)


def test_a_column_that_is_no_time_says_how_it_becomes_one() -> None:
    schema = pa.schema({"ts": pa.int64(), "user": pa.string(), "x": pa.int64()})
    with pytest.raises(TypeMismatch, match=re.escape("or give uc.flow() time_format=, such as 'ms' for numbers")):
        totals(uc.flow(schema))


def test_scripts_are_not_drawn_for_times_that_are_computed() -> None:
    with pytest.raises(InvalidArgument, match=re.escape("computes its times (time=)")):
        uc.testing.check_flow(totals(uc.flow(ROWS, time=TIME)), lambda rows: rows)
