"""Columns that are the same in all final panes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from ...panes.grouping.final_panes import FINAL_PANE
from ...panes.state.pane_type import PANE
from ..sql_types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column


def final_pane() -> Column:
    """The pane info of all final panes, as a constant, which Spark drops from the plan if the query does not use it."""
    fields = [F.lit(FINAL_PANE[f.name]).cast(spark_type(f.type, f.name)).alias(f.name) for f in PANE]
    return F.struct(*fields)
