"""The native route: groupings that Spark's own aggregation runs in the JVM, with the same results.

Counts, extremes, booleans and sums of integers and decimals are equal to the last bit. Plain sums and means of floats
promise a tolerance, and keep it for every order in which the values are added, so Spark's own keep it too. Exact ones
are not native, nor are means of integers, which are correctly rounded, nor deviations: those of Spark lose digits where
the mean is far from zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from ...combiners import BoolAnd, BoolOr, Combiner, Count, Max, Mean, Min, Sum
from ...combiners.expressions.expr import Expr
from ...flows.flow import Flow
from ...flows.graph import groupings_of
from ...panes.grouping.pane_columns import WINDOW
from ...windows import Fixed, Global, Sliding
from ...windows.times import FIRST, LAST
from ..inputs import DataFrameInput, Input, TimedInput, column
from ..session import setting
from ..sql_types import spark_type
from .base import Route
from .final_columns import final_pane

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


Equivalent = Callable[["Column"], "Column"]

_ORDERED = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_string,
    pa.types.is_boolean,
)

_SUM_DIGITS = 28
"""Spark's sums have ten digits more than their decimals, and at most 38."""


@dataclass(frozen=True, eq=False)
class NativePlan:
    """The columns of Spark's own aggregation, and their texts, by result."""

    rows: DataFrame
    columns: dict[str, Column]
    equivalents: dict[str, str]


@dataclass(frozen=True, eq=False)
class Native(Route):
    """Runs a flow over bounded input as Spark's own aggregation."""

    in_python: ClassVar[bool] = False
    plan: NativePlan

    def df(self) -> DataFrame:
        flow, columns = self.flow, self.plan.columns
        grouping = groupings_of(flow)[0]
        keys = [column(name).alias(name) for name in grouping.by]
        # BETWEEN drops null times and times outside the years 1 to 9999, which the tasks count as bad rows.
        rows = self.plan.rows.where(column(grouping.time).between(_instant(FIRST), _instant(LAST)))
        if isinstance(grouping.window, Global):
            grouped = rows.groupBy(*keys).agg(*(column.alias(name) for name, column in columns.items()))
            window: Column = F.lit(None).cast(spark_type(WINDOW, "window"))
            at: Column = F.col(_LATEST)  # without keys Spark gives a result even for no rows; it has no time
        else:
            named = {name: column.alias(name) for name, column in columns.items()}
            begin, size = _begin(grouping.window, column(grouping.time))
            boxed = not all(map(_is_narrow, (flow.source_schema.field(name).type for name in grouping.by)))
            key = F.struct(begin.alias(_BEGIN)) if boxed else begin
            grouped = rows.groupBy(*keys, key.alias(_BEGIN)).agg(*named.values())
            start_micros = F.col(f"{_BEGIN}.{_BEGIN}") if boxed else F.col(_BEGIN)
            start, last, end = (_shown(F.timestamp_micros(start_micros + more)) for more in (0, size - 1, size))
            window = F.struct(start.alias("start"), end.alias("end"))
            at = last if grouping.timestamp == "end_of_window" else start
        return grouped.select(
            *(column(name) for name in grouping.by),
            window.alias("window"),
            *(column(name) for name in grouping.combiners),
            at.alias("event_time"),
            F.lit(1).cast("bigint").alias("diff"),
            final_pane().alias("pane"),
        )

    def explain(self) -> str:
        return self.explanation(
            "Spark's own aggregation: every combiner has an equivalent there, and no row crosses to Python.",
            *(f"{name}: {sql}" for name, sql in self.plan.equivalents.items()),
        )


_LATEST = "uncombine_latest"

_BEGIN = "uncombine_begin"
"""The beginning of a window, by which rows are grouped: the end follows from it, so that Spark need not hash both."""


def native_plan(flow: Flow, input: Input) -> NativePlan | str:
    """The flow as Spark's own aggregation, or the reason why it cannot be native."""
    if isinstance(input, TimedInput):
        return "the tasks compute the event times (time=)"
    if not isinstance(input, DataFrameInput):
        return "files are read faster by the tasks themselves"
    if not input.native:
        return "native='never' was given"
    if len(flow.stages) != 1:
        return "the flow has several stages"
    stage = flow.stages[0]
    if stage.transforms or flow.transforms:
        return "map(), where() and the like are functions of Arrow tables"
    grouping = groupings_of(flow)[0]
    if grouping.changelog:
        return "the input is a changelog (diff=)"
    if reason := _no_window(flow):
        return reason
    columns: dict[str, Column] = {}
    equivalents: dict[str, str] = {}
    for name, combiner in grouping.combiners.items():
        equivalent = _equivalent(combiner, flow.source_schema)
        if equivalent is None:
            return f"{name}={combiner!r} has no exact equivalent"
        columns[name], equivalents[name] = equivalent
    whole_sums = any(
        isinstance(combiner, Sum) and not pa.types.is_floating(flow.schema.field(name).type)
        for name, combiner in grouping.combiners.items()
    )
    if whole_sums and setting(input.spark, "spark.sql.ansi.enabled") == "false":
        return "with spark.sql.ansi.enabled=false a sum that is too large wraps around without an error"
    if isinstance(grouping.window, Global):
        columns[_LATEST] = F.max(column(grouping.time))
    return NativePlan(rows=input.df, columns=columns, equivalents=equivalents)


def _no_window(flow: Flow) -> str | None:
    grouping = groupings_of(flow)[0]
    window = grouping.window
    if not isinstance(window, Fixed | Sliding | Global) or getattr(window, "per_key_phase", False):
        return f"{window!r} has no exact equivalent"
    if isinstance(window, Sliding) and int(window.size) < int(window.period):
        return f"{window!r} has gaps"
    if isinstance(window, Sliding) and int(window.size) > int(window.period):
        return f"{window!r} has rows in several windows, which tasks combine once for all of them"
    kind = flow.source_schema.field(grouping.time).type
    if kind != pa.timestamp("us", "UTC"):
        return f"{grouping.time!r} is {kind}, and Spark's windows of it have another type"
    allowed = ("latest", "end_of_window") if isinstance(window, Global) else ("end_of_window", "start_of_window")
    if grouping.timestamp not in allowed:
        return f"timestamp={grouping.timestamp!r} has no exact equivalent"
    return None


def _begin(window: object, time: Column) -> tuple[Column, int]:
    """The microsecond in which the window of a time begins, and the size of the window, which has no other one."""
    assert isinstance(window, Fixed | Sliding)
    size = int(window.size)
    micros = F.unix_micros(time)
    return micros - F.pmod(micros - F.lit(int(window.offset) % size).cast("bigint"), F.lit(size).cast("bigint")), size


def _is_narrow(kind: pa.DataType) -> bool:
    """True for a type of which Spark keeps a few groups in a map for the processor's cache, and finds others as fast.

    Texts take longer where there are more groups than that map has places for. Beside a struct Spark does not use it.
    """
    return bool(pa.types.is_integer(kind) or pa.types.is_temporal(kind) or pa.types.is_boolean(kind))


def _instant(micros: int) -> Column:
    return F.timestamp_micros(F.lit(micros))


def _shown(time: Column) -> Column:
    """The time in results, which is never before the first or after the last time that can be shown."""
    return F.least(F.greatest(time, _instant(FIRST)), _instant(LAST))


def _equivalent(combiner: Combiner, schema: pa.Schema) -> tuple[Column, str] | None:
    """Spark's column for a combiner, and its text, if their results are equal, or both within its tolerance."""
    source = getattr(combiner, "input", None)
    if isinstance(combiner, Count) and source is None:
        return F.count(F.lit(1)), "count(1)"
    name = source.args[0] if isinstance(source, Expr) and source.op == "col" else source
    if not isinstance(name, str) or type(combiner) not in _TABLE:
        return None
    if name not in schema.names or repr(combiner) != f"{type(combiner).__name__}({name!r})":
        return None
    kind = schema.field(name).type
    fits, function = _TABLE[type(combiner)]
    if not any(fit(kind) for fit in fits):
        return None
    if isinstance(combiner, Sum) and pa.types.is_int64(kind):
        return _whole_sum(name), f"{function}({name}), in two halves of 32 bits"
    result: Column = getattr(F, function)(column(name)).cast(spark_type(combiner.compile(schema).output, name))
    if not pa.types.is_floating(kind):
        return result, f"{function}({name})"
    if isinstance(combiner, Min | Max):  # of zeros of both signs the result is zero without a sign
        return (result + F.lit(0.0)).cast(spark_type(kind, name)), f"{function}({name})"
    if isinstance(combiner, Count):
        return result, f"{function}({name})"
    return result, f"{function}({name}), within the tolerance of {combiner!r}: floats are added in order of arrival"


def _whole_sum(name: str) -> Column:
    """The sum of 64-bit integers, if it fits them, also where a sum of some of them does not.

    Each half of 32 bits has a sum of its own, as 2**31 rows at most can overflow it. An error says what the sum is.
    """
    low = F.sum(column(name).bitwiseAND(F.lit((1 << 32) - 1)))
    high = F.sum(F.shiftright(column(name), 32)) + F.shiftright(low, 32)
    fits = high.between(-(1 << 31), (1 << 31) - 1)
    digits = high.cast("decimal(38,0)") * F.lit(1 << 32).cast("decimal(11,0)") + low.bitwiseAND(F.lit((1 << 32) - 1))
    message = F.concat(F.lit("a sum is "), digits.cast("string"), F.lit(_OUTSIDE))
    whole = F.shiftleft(high, 32).bitwiseOR(low.bitwiseAND(F.lit((1 << 32) - 1)))
    return F.when(high.isNull() | fits, whole).otherwise(F.raise_error(message).cast("bigint"))


_OUTSIDE = ", outside int64: cast the column to a decimal or to float64"


def _anything(_: pa.DataType) -> bool:
    return True


def _few_digits(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind)) and kind.precision <= _SUM_DIGITS


_TABLE: dict[type, tuple[tuple[Callable[[pa.DataType], bool], ...], str]] = {
    Count: ((_anything,), "count"),
    Sum: ((pa.types.is_integer, pa.types.is_floating, _few_digits), "sum"),
    Mean: ((pa.types.is_floating,), "avg"),
    Min: (_ORDERED, "min"),
    Max: (_ORDERED, "max"),
    BoolAnd: ((pa.types.is_boolean,), "bool_and"),
    BoolOr: ((pa.types.is_boolean,), "bool_or"),
}
