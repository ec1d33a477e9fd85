"""The rows of a script, replayed on Spark through a flow that was built without it.

Guarded by tests/sparkops/test_testing.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from ..flows.flow import Flow
from ..local.script import Elements, Entry, tables_of
from .inputs import DataFrameInput
from .source import SparkSource
from .sql_types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def replayed(spark: SparkSession, flow: Flow, script: Sequence[Entry]) -> pa.Table:
    """The rows that a replay on Spark gives for the rows of a script; the input ends after the last of them."""
    return _on_spark(spark, flow, script, {}).df.toArrow()


def _on_spark(spark: SparkSession, flow: Flow, script: Sequence[Entry], known: dict[int, SparkSource]) -> Flow:
    """The flow with the rows of the script as its sources."""
    settings = replace(flow.settings, replay=True, close_at_end=True)
    if flow.source.inputs:
        inputs = tuple(_on_spark(spark, given, script, known) for given in flow.source.inputs)
        return replace(flow, source=replace(flow.source, inputs=inputs), settings=settings)  # type: ignore[type-var]
    if id(flow.source) not in known:
        schema, name = flow.source.schema, flow.settings.name
        own = [entry for entry in script if isinstance(entry, Elements) and entry.input in (None, name)]
        tables = [table for table in tables_of(own, [flow.settings.time], schema) if table is not None]
        rows = pa.concat_tables([schema.empty_table(), *tables])
        known[id(flow.source)] = SparkSource(DataFrameInput(spark.createDataFrame(rows, spark_schema(schema))))
    return replace(flow, source=known[id(flow.source)], settings=settings)


__all__ = ["replayed"]
