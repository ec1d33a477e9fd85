"""The source of a flow that Spark runs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from ..errors import TypeMismatch
from ..panes.flow import Flow, Source
from .inputs import Input
from .routes import route
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
        return route(flow, self.input).df()

    def explain(self, flow: Flow) -> str:
        return route(flow, self.input).explain()
