"""The sides of a comparison on Spark: each is a DataFrame, also of rows that this process has.

Guarded by tests/sparkops/comparison/test_spark_comparison.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from ...errors import TypeMismatch
from ...files.files import Files
from ...flows.flow import Flow
from ...flows.flow_steps import weight_of
from ...flows.settings import Settings
from ...local.compared_sides import LocalSide, is_of_spark, local_side
from ...tables.comparison.common_types import common_schema
from ...tables.comparison.local_comparison import in_schema
from ...tables.comparison.options import ComparisonOptions
from ...tables.comparison.sides import ComparedSide, aligned, weight_name
from ...tables.layout import is_pane
from ..files_input import FilesInput
from ..inputs import DataFrameInput, column
from ..source import SparkSource, frame_of, spark_source
from ..sql_types import dataframe_of, passed, spark_schema, spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MOST_DIGITS = 38
"""The most digits of a decimal of Spark."""

WEIGHT = "w"
"""The column of weights of numbered rows."""


@dataclass(frozen=True, kw_only=True)
class SparkSide(ComparedSide):
    """A side whose rows Spark has."""

    df: DataFrame

    def numbered(self, schema: pa.Schema) -> DataFrame:
        """The rows in columns c0, c1, ... of the types of a schema, with their weights."""
        own = self.columns
        columns: list[Column] = []
        for place, field in enumerate(schema):
            value = self._column(field.name)
            if own.field(field.name).type != field.type:
                value = value.cast(spark_type(field.type, f"column {field.name!r}"))
            columns.append(value.alias(f"c{place}"))
        weight = F.lit(1) if self.weight is None else column(self.weight)
        return self.df.select(*columns, weight.cast("bigint").alias(WEIGHT))

    def _column(self, name: str) -> Column:
        if self.splits_window and name not in self.schema.names:
            window, _, end = name.partition("_")
            return column(window).getField(end)
        return column(name)


def spark_sides(
    values: Sequence[Any], options: ComparisonOptions
) -> tuple[SparkSide, SparkSide, pa.Schema, ComparisonOptions]:
    """Both sides, and the options that fit them; rows that this process has go to the session of the other side.

    Nothing is run or sent before the columns are known to fit.
    """
    spark = next(_session(value) for value in values if is_of_spark(value))
    sides, schema, options = aligned([_side(value, spark, options) for value in values], options, MOST_DIGITS)
    old, new = (_on_spark(side, spark) for side in sides)
    return old, new, schema, options


def _session(value: Any) -> SparkSession:
    if not isinstance(value, Flow):
        session: SparkSession = value.sparkSession
        return session
    source = spark_source(value)
    assert source is not None
    return source.input.spark


def _side(value: Any, spark: SparkSession, options: ComparisonOptions) -> ComparedSide:
    if isinstance(value, Flow) and is_of_spark(value):
        df, weight = frame_of(value), weight_of(value)
        df = df.drop(*(field.name for field in value.schema if is_pane(field)))
        schema = _schema(df)
        return SparkSide(schema=schema, weight=weight if weight in schema.names else None, is_flow=True, df=df)
    if isinstance(value, Files):
        value = _of_files(value, spark)
    if is_of_spark(value):
        schema = _schema(value)
        return SparkSide(schema=schema, weight=weight_name(schema, options.diff), df=value)
    return local_side(value, options)


def _on_spark(side: ComparedSide, spark: SparkSession) -> SparkSide:
    if not isinstance(side, LocalSide):
        assert isinstance(side, SparkSide)
        return side
    simple = common_schema(side.schema, side.schema, MOST_DIGITS)  # Spark has fewer types than Arrow
    rows = passed(in_schema(side.read(), simple))
    df = dataframe_of(spark, rows, spark_schema(rows.schema))
    of_side = {name: getattr(side, name) for name in ("weight", "is_flow", "splits_window", "about_panes")}
    return SparkSide(schema=_schema(df), df=df, **of_side)


def _schema(df: DataFrame) -> pa.Schema:
    """The columns of a DataFrame; raises for one of a type that Arrow lacks."""
    schema = DataFrameInput(df).schema
    if missing := [name for name in df.columns if name not in schema.names]:
        raise TypeMismatch(f"column {missing[0]!r} has a type that Arrow lacks: leave it out of the comparison")
    return schema


def _of_files(files: Files, spark: SparkSession) -> DataFrame:
    """The rows of files, which the tasks of Spark read."""
    listing = files.listed()
    form = files.described(listing)
    input = FilesInput(
        spark=spark, paths=listing.paths, format=form, streaming=False, options={}, planner=None, files=files
    )
    source = SparkSource(input)
    return Flow(source=source, settings=Settings("ts"), source_schema=source.schema).df  # whose times nobody reads


__all__ = ["WEIGHT", "SparkSide", "spark_sides"]
