"""Columns that are the same in all final panes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from ...panes.flow import Flow
from ...panes.late_rows import LATE
from ...panes.operators.grouping.pane_columns import PANE
from ...panes.shard.final_panes import FINAL_PANE
from ..sql_types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column


def no_late_rows(flow: Flow) -> list[Column]:
    """The column of late rows, where it is asked for and nothing can be late."""
    if flow.stages[-1].grouping.late != "emit":
        return []
    return [F.lit(None).cast(spark_type(flow.schema.field(LATE).type, LATE)).alias(LATE)]


def final_pane() -> Column:
    """What all final panes say about themselves, which Spark leaves out of the plan where nobody asks for it."""
    fields = [F.lit(FINAL_PANE[f.name]).cast(spark_type(f.type, f.name)).alias(f.name) for f in PANE]
    return F.struct(*fields)
