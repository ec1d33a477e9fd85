"""The result of a run in this process in the place of an Arrow table."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import uncombine as uc

SCRIPT = [uc.Elements([{"ts": 0, "k": "a", "x": 5}, {"ts": 1, "k": "b", "x": 7}]), uc.Watermark(None)]


def of(total: uc.Combiner) -> uc.Result:
    return uc.flow(SCRIPT).window(uc.Fixed("1 minute")).combine(by="k", total=total).run()


ONE, SAME, OTHER = of(uc.Sum("x")), of(uc.Sum("x")), of(uc.Max("x") + 1)


def test_equal_results_are_equal_tables() -> None:
    assert ONE.equals(SAME)
    assert ONE.equals(SAME.panes)
    assert ONE.equals(other=SAME, check_metadata=True)
    assert not ONE.equals(OTHER)
    assert ONE == SAME == ONE.panes
    with pytest.raises(TypeError):
        ONE.equals(5)


def table_methods() -> set[str]:
    """The methods of an Arrow table that take another one, as its documentation says."""
    text = {name: getattr(pa.Table, name).__doc__ or "" for name in dir(pa.Table) if not name.startswith("_")}
    takes = re.compile(r"^ *(other|right_table) : (pyarrow\.)?Table$", re.MULTILINE)
    return {name for name, doc in text.items() if takes.search(doc.partition("Returns")[0])}


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "equals": lambda left, right: left.equals(right),
    "join": lambda left, right: left.join(right, "k", right_suffix="_2").num_rows,
    "join_asof": lambda left, right: left.join_asof(right, on="step", by="k", tolerance=1),
}


@pytest.mark.parametrize("name", sorted(table_methods()))
def test_a_method_that_takes_a_table_takes_a_result(name: str) -> None:
    """By reflection, so that a method of a new pyarrow is not forgotten."""
    simple = ["k", "total", "step"]
    left, right = (uc.Result(result.panes.select(simple)) for result in (ONE, OTHER))
    right = uc.Result(right.panes.rename_columns(["k", "other", "step"])) if name == "join_asof" else right
    assert CALLS[name](left, right) == CALLS[name](left.panes, right.panes)


NOON = 1_453_291_200_000_000
TIMES = pa.table(
    {
        "ts": pa.array([NOON + i * 7_000_000 for i in range(20)] + [None], pa.timestamp("us", "UTC")),
        "k": ["a", "b", "c"] * 7,
        "x": range(21),
    }
)


def numbers(value: Any) -> list[float]:
    """All numbers in a value, however deep."""
    match value:
        case dict():
            return [number for part in value.values() for number in numbers(part)]
        case list():
            return [number for part in value for number in numbers(part)]
        case bool():
            return []
        case int() | float():
            return [value]
        case _:
            return []


FLOWS: dict[str, Callable[[uc.Flow], uc.Flow]] = {
    "rows": lambda flow: flow,
    "grouped": lambda flow: flow.window("1 minute", "early every 1 row", "retracting").combine(
        by="k", last=uc.Max("ts")
    ),
    "sessions": lambda flow: flow.window("sessions 8 seconds").combine(
        by="k", first=uc.Min("ts"), all=uc.CollectList("ts")
    ),
    "global": lambda flow: flow.combine(by="k", middle=uc.Median("ts")),
    "distinct": lambda flow: flow.distinct("k", within="10 seconds"),
    "in order": lambda flow: flow.in_order(by="k"),
    "joined": lambda flow: flow.join(flow, on="k", within=("0 s", "10 s")),
    "united": lambda flow: uc.union(flow, flow.window("1 minute").combine(by="k", x=uc.Sum("x"))),
}


@pytest.mark.parametrize("name", FLOWS)
def test_no_number_of_a_result_is_a_time(name: str) -> None:
    """Times are times in all columns, also inside of them: nobody must know that they are kept as microseconds."""
    result = FLOWS[name](uc.flow(TIMES)).run()
    assert result.num_rows > 2
    for table in (result.panes, result.to_arrow(flat=True), result.table(), result.left_out):
        assert max(map(abs, numbers(table.to_pylist())), default=0) < 1_000


NUMBERS = {"ApproxCountDistinct", "Correlation", "Count", "CountDistinct", "Histogram", "Kurtosis", "Skewness"}
"""The combiners whose results over times are counts, or shares that have no unit."""

ARGUMENTS = [("x",), ("x", 0.5), ("x", (0.5,)), ("x", 2), ("x", "w"), ("x", (0, 10)), ("x", "x")]


def plain(kind: pa.DataType) -> set[str]:
    """The types of the values of a type."""
    if pa.types.is_list(kind):
        return plain(kind.value_type)
    if pa.types.is_struct(kind):
        return {name for field in kind if field.name != "count" for name in plain(field.type)}
    return {str(kind)}


@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.duration("us"), pa.date32(), pa.time64("us")])
def test_results_over_times_are_times_and_lengths_of_time(kind: pa.DataType) -> None:
    schema = pa.schema({"x": kind, "w": pa.int64()})
    tried = 0
    for name in uc.combiners.__all__:
        made = getattr(uc.combiners, name)
        if not (isinstance(made, type) and issubclass(made, uc.Combiner)) or name in NUMBERS:
            continue
        for arguments in ARGUMENTS:
            try:
                output = made(*arguments).compile(schema).output
            except (uc.UncombineError, TypeError):
                continue
            tried += 1
            assert plain(output) & {"int64", "double"} == set(), (name, arguments)
    assert tried >= 15
