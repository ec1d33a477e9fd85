"""Joins that Spark's own join runs in the JVM, with the same rows as the operator.

Guarded by tests/sparkops/test_join.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from ...combiners.rows.key_codes import has_floats
from ...flows.flow import Flow
from ...flows.flow_steps import input_of
from ...panes.grouping.stage import GroupingStage
from ...panes.join.compiled import CompiledJoin, Side, kept_type
from ...panes.join.join import Join
from ...panes.join.stage import JoinStage
from ...panes.join_asof.join_asof import JoinAsof
from ...windows.times import FIRST, LAST
from ..inputs import column
from ..sql_types import arrow_type, spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_HOW = {"left": "left_outer", "right": "right_outer", "full": "full_outer", "semi": "left_semi", "anti": "left_anti"}


def native_join(stage: JoinStage, inputs: Sequence[Flow], frames: Sequence[DataFrame]) -> DataFrame | str:
    """The rows of a join of DataFrames by Spark, or the reason why its own join does not fit."""
    if not isinstance(stage.join, Join):
        return "it matches rows as of a time" if isinstance(stage.join, JoinAsof) else "it looks up what is valid"
    if any(not _counts_once(flow) for flow in inputs):
        return "an input has weights (diff=)"
    left, right = (_columns_of(frame) for frame in frames)
    compiled = stage.operator(left, right).compiled
    for side in compiled.sides:
        kind = side.schema.field(side.time).type
        if kind != pa.timestamp("us", "UTC"):
            return f"the {side.name} time {side.time!r} is {kind}"
    return _joined(compiled, *(_numbered(side, frame) for side, frame in zip(compiled.sides, frames, strict=True)))


def _counts_once(flow: Flow) -> bool:
    """True if each row of the flow stands for one row; the final panes of a grouping do."""
    if flow.stages:
        return all(isinstance(stage, GroupingStage) for stage in flow.stages) or input_of(flow).diff is None
    if flow.source.inputs:
        return all(map(_counts_once, flow.source.inputs))
    return flow.settings.diff is None


def _columns_of(frame: DataFrame) -> pa.Schema:
    return pa.schema([(field.name, arrow_type(field.dataType, field.name)) for field in frame.schema])


def _numbered(side: Side, frame: DataFrame) -> DataFrame:
    """The columns that the join needs, under names that no other column has; rows with bad times are dropped."""
    mine = side.name
    bounds = [F.timestamp_micros(F.lit(instant)) for instant in (FIRST, LAST)]
    kinds = [kept_type(side.schema.field(name).type) for name in side.keys]
    return frame.where(column(side.time).between(*bounds)).select(
        column(side.time).alias(f"{mine}_time"),
        *(_normal(column(name), kinds[i]).alias(f"{mine}_key{i}") for i, name in enumerate(side.keys)),
        *(column(name).alias(f"{mine}_value{i}") for i, name in enumerate(side.values)),
    )


def _normal(key: Column, kind: pa.DataType) -> Column:
    """A key with -0.0 as 0.0, as the operator has it: Spark joins the two, and shows them as they are."""
    if pa.types.is_floating(kind):
        return key + F.lit(0.0).cast(spark_type(kind, "a key"))
    if not has_floats(kind):
        return key
    names = [field.name for field in kind]
    parts = key
    if len({name.casefold() for name in names}) < len(names):  # Spark cannot name one of them
        names = [f"_{i}" for i in range(len(names))]
        numbered = pa.struct([field.with_name(name) for name, field in zip(names, kind, strict=True)])
        parts = key.cast(spark_type(numbered, "a key"))
    fields = (_normal(parts[name], field.type).alias(field.name) for name, field in zip(names, kind, strict=True))
    return F.when(key.isNotNull(), F.struct(*fields))


def _joined(compiled: CompiledJoin, left: DataFrame, right: DataFrame) -> DataFrame:
    join = compiled.join
    keys = range(len(compiled.left.keys))
    matches = [F.col(f"left_key{i}") == F.col(f"right_key{i}") for i in keys]
    if join.within is not None:
        apart = F.unix_micros("right_time") - F.unix_micros("left_time")
        matches.append(apart.between(F.lit(compiled.left.low), F.lit(compiled.left.high)))
    how = _HOW.get(join.how, "inner")
    rows = left.join(right, reduce(lambda one, other: one & other, matches), how)
    sides = ["left", "right"] if join.pairs else ["left"]
    times = [F.col(f"{name}_time") for name in sides]
    columns: list[Column] = [
        F.coalesce(*(F.col(f"{name}_key{i}") for name in sides)) if join.pairs else F.col(f"left_key{i}") for i in keys
    ]
    for side in compiled.sides[: len(sides)]:
        columns += [F.col(f"{side.name}_value{i}") for i in range(len(side.values))]
    columns += [F.greatest(*times) if join.pairs else times[0], F.lit(1).cast("bigint")]
    names = compiled.output_schema.names
    return rows.select(*(value.alias(name) for value, name in zip(columns, names, strict=True)))


__all__ = ["native_join"]
