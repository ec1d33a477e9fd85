"""The source of a flow that Spark runs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from ..errors import TypeMismatch
from ..panes.flow import Flow, Source
from ..panes.stage import GroupingStage
from ..panes.stages import EVENT_TIME
from .inputs import DataFrameInput, Input, column
from .routes import route
from .routes.live import united
from .sql_types import arrow_type, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, eq=False)
class SparkSource(Source):
    """The rows of an input on Spark: a DataFrame, or files."""

    input: Input

    @cached_property
    def schema(self) -> pa.Schema:
        return self.input.schema

    @property
    def streaming(self) -> bool:  # type: ignore[override]
        return self.input.streaming

    def describe(self) -> str:
        return self.input.describe()

    def held(self, field: pa.Field) -> pa.Field:
        with suppress(TypeMismatch):  # a column that never goes to Spark may have any type
            return field.with_type(arrow_type(spark_type(field.type, field.name), field.name))
        return field

    def df(self, flow: Flow) -> DataFrame:
        flow = whole(flow)
        return route(flow, self._input(flow)).df()

    def explain(self, flow: Flow) -> str:
        flow = whole(flow)
        return route(flow, self._input(flow)).explain()

    def _input(self, flow: Flow) -> Input:
        return flow.source.input if isinstance(flow.source, SparkSource) else self.input


def whole(flow: Flow) -> Flow:
    """The flow over one DataFrame, if final panes are made of a union of flows; other flows unchanged."""
    if not flow.source.inputs or flow.source.streaming or flow.settings.replay:
        return flow
    source = SparkSource(DataFrameInput(united([_rows(given) for given in flow.source.inputs])))
    return replace(flow, source=source, source_schema=source.schema)


def _rows(flow: Flow) -> DataFrame:
    """The rows of a flow of a union: a grouping of all rows gives none for no rows, as in other ways to run it."""
    if not flow.stages or not isinstance(flow.stages[-1], GroupingStage):
        return flow.df
    panes = replace(flow, transforms=()).df
    source = SparkSource(DataFrameInput(panes.where(column(EVENT_TIME).isNotNull())))
    return Flow(source, replace(flow.settings, time=EVENT_TIME), source.schema, (), flow.transforms).df
