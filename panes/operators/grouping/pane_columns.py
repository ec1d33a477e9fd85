"""The columns of panes: the column `pane`, the rows of output, and the records that outstanding panes are kept as."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ....combiners import Plan
from ....combiners.rows.plain_types import plain_type
from ....windows.times import UTC_MICROS

TIMINGS = ("EARLY", "ON_TIME", "LATE")

PANE = pa.struct(
    [
        ("index", pa.int64()),
        ("nonspeculative_index", pa.int64()),
        ("timing", pa.string()),
        ("is_first", pa.bool_()),
        ("is_last", pa.bool_()),
        ("watermark", UTC_MICROS),
        ("watermark_percentile", pa.float64()),
        ("processing_time", UTC_MICROS),
        ("trigger", pa.string()),
    ]
)
"""The type of the column `pane`: number, timing, clocks and cause of a pane."""

WINDOW = pa.struct([("start", UTC_MICROS), ("end", UTC_MICROS)])
"""The type of the column `window`."""


def record_type(plan: Plan) -> pa.StructType:
    """The type of a pane without its key, as a window keeps it while the pane is outstanding."""
    return pa.struct(
        [
            pa.field("start", pa.int64()),
            pa.field("end", pa.int64()),
            *plan.outputs,
            pa.field("event_time", pa.int64()),
            pa.field("pane", PANE),
        ]
    )


def output_schema(by: Sequence[str], plan: Plan, schema: pa.Schema) -> pa.Schema:
    """The schema of a grouping's output, for an input of this schema with the key columns `by`."""
    return pa.schema(
        [
            *(_key(schema.field(name)) for name in by),
            pa.field("window", WINDOW),
            *plan.outputs,
            pa.field("event_time", UTC_MICROS),
            pa.field("diff", pa.int64()),
            pa.field("pane", PANE),
        ]
    )


def _key(field: pa.Field) -> pa.Field:
    kind = plain_type(field.type)
    return field.with_type(kind.value_type if pa.types.is_dictionary(kind) else kind).with_nullable(True)
