"""The sides of a comparison: those that may be compared, and those whose rows this process has.

Guarded by tests/test_comparing.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from ..combiners.aggregate import as_table, weights_of
from ..combiners.rows.plain_types import plain_table
from ..errors import InvalidArgument, TypeMismatch
from ..files.files import Files, is_path
from ..flows.flow import Flow, WindowedRows, check_filters
from ..flows.flow_steps import weight_of
from ..flows.result import Result, flat_panes, warn_of_panes_that_stay
from ..flows.settings import Settings
from ..panes.grouping.grouping import DIFF
from ..tables.comparison.local_comparison import WeightedRows
from ..tables.comparison.options import ComparisonOptions
from ..tables.comparison.sides import ComparedSide, weight_name
from ..tables.layout import is_pane, require_weights, retracting_flow
from ..tables.targets import is_target
from .data_files import files_opened
from .script import Clock, Elements, Watermark


@dataclass(frozen=True, kw_only=True)
class LocalSide(ComparedSide):
    """A side whose rows this process has, or reads."""

    read: Callable[[], pa.Table]

    def rows(self) -> WeightedRows:
        """The rows, without their weights, and these."""
        rows = self.read()
        weights = None
        if self.weight is not None:
            rows, weights = rows.drop_columns([self.weight]), weights_of(rows, self.weight)
        rows = rows.drop_columns([name for name in rows.column_names if name in self.about_panes])
        return WeightedRows(flat_panes(rows) if self.splits_window else rows, weights)


def compared_value(value: Any, side: str) -> Any:
    """A side of a comparison as it is compared: paths are files, and a flow retracts what it shows again.

    Raises for what is not compared: streams, live tables, and what has no rows.
    """
    if isinstance(value, WindowedRows):
        raise InvalidArgument(f"{side} ends with window(...), which is no flow yet: add .combine(...)")
    if isinstance(value, Flow):
        return _bounded(value, side)
    if getattr(value, "isStreaming", False) is True:
        raise InvalidArgument(
            f"{side} is a streaming DataFrame, and a comparison ends with its rows: read it with spark.read, or give "
            "trigger= to compare two streams as they go"
        )
    if is_target(value) or (hasattr(value, "arrow") and hasattr(value, "awaitTermination")):
        raise InvalidArgument(
            f"{side} is a live table, which a query may change: give the rows that it has now, such as live.arrow(), "
            "or what its database reads"
        )
    if isinstance(value, pa.Schema) or _is_script(value):
        raise TypeMismatch(f"{side} is a script or a schema, which is no table: give the result of flow.run(script)")
    if is_path(value):
        value = Files(value)
    if isinstance(value, Files):
        value.check_bounded()
    return value


def compared_stream(value: Any, side: str) -> Any:
    """A stream of Spark as it is compared as it goes; raises for what is none."""
    if isinstance(value, Flow) and _is_stream(value):
        return _with_retractions(value)
    if getattr(value, "isStreaming", False) is True:
        return value
    raise InvalidArgument(
        f"trigger= compares two streams on Spark, and {side} is none: give a streaming flow or DataFrame, or leave "
        "trigger= out to compare rows that end"
    )


def is_of_spark(value: Any) -> bool:
    """True for a side whose rows Spark has: a DataFrame, or a flow over one."""
    return hasattr(value, "isStreaming") or (isinstance(value, Flow) and value.source.engine.has_streams)


def local_side(value: Any, options: ComparisonOptions) -> LocalSide:
    """A side whose rows this process has."""
    if isinstance(value, Flow):
        schema = _without_panes(value.schema)
        return LocalSide(
            schema=schema,
            weight=_weight(schema, weight_of(value) or DIFF),
            is_flow=True,
            read=lambda: value.run().panes.select(schema.names),
        )
    if isinstance(value, Result):
        warn_of_panes_that_stay(value)
        rows = value.panes.select(_without_panes(value.panes.schema).names)
        return LocalSide(
            schema=rows.schema, weight=_weight(rows.schema, value.weight), is_flow=True, read=partial(_same, rows)
        )
    if isinstance(value, Files):
        source: Any = files_opened(value, Settings("ts")).make(None, None)  # whose times nobody reads
        return LocalSide(schema=source.schema, weight=weight_name(source.schema, options.diff), read=source.whole)
    rows = plain_table(as_table(value))
    return LocalSide(schema=rows.schema, weight=weight_name(rows.schema, options.diff), read=partial(_same, rows))


def _without_panes(schema: pa.Schema) -> pa.Schema:
    """The columns of a flow or its result that are compared."""
    return pa.schema([field for field in schema if field.name != "step" and not is_pane(field)])


def _weight(schema: pa.Schema, name: str) -> str | None:
    return name if name in schema.names else None


def _bounded(flow: Flow, side: str) -> Flow:
    if _is_stream(flow):
        raise InvalidArgument(
            f"{side} is a flow whose rows have no end, and a comparison ends with its rows: compare a flow over "
            "bounded rows, or flow.run(script), or give trigger= to compare two streams as they go"
        )
    return _with_retractions(flow)


def _is_stream(flow: Flow) -> bool:
    return bool(flow.source.streaming and flow.source.engine.has_streams)


def _with_retractions(flow: Flow) -> Flow:
    require_weights(flow, "a comparison")
    flow = retracting_flow(flow)
    check_filters(flow)
    return flow


def _same(table: pa.Table) -> pa.Table:
    return table


def _is_script(value: Any) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(entry, Elements | Watermark | Clock) for entry in value)


__all__ = ["LocalSide", "compared_stream", "compared_value", "is_of_spark", "local_side"]
