"""The columns of panes: the column `pane`, the rows of output, and the records that outstanding panes are kept as."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ...combiners import Plan
from ...combiners.rows.plain_types import plain_type
from ...triggers import UserTrigger, percentiles, walk
from ...windows.times import UTC_MICROS
from ..state.pane_type import PANE
from .grouping import Grouping

TIMINGS = ("EARLY", "ON_TIME", "LATE")

CAUSES = ("processing", "rows", "watermark", "expiry", "late", "signal")
"""The phases of a step in which windows fire. "late" is that of rows which came too late."""

VALUE = "value."
"""A result of a combiner has this before its name in a record."""

WINDOW = pa.struct([("start", UTC_MICROS), ("end", UTC_MICROS)])
"""The type of the column `window`."""


def record_type(grouping: Grouping, plan: Plan) -> pa.StructType:
    """The type of a pane without its key, as a window keeps it while the pane is outstanding.

    Texts that are always the same are places in `TIMINGS` and `CAUSES`. Percentiles of the watermark and the tags of
    user triggers have a column only where the trigger has some.
    """
    numbers = ("start", "end", "event_time", "index", "nonspeculative")
    fields = [pa.field(name, pa.int64()) for name in numbers]
    fields += [pa.field("timing", pa.int8()), pa.field("is_last", pa.bool_()), pa.field("cause", pa.int8())]
    fields += [pa.field("watermark", UTC_MICROS), pa.field("processing_time", UTC_MICROS)]
    if percentiles(grouping.effective_trigger):
        fields.append(pa.field("percentile", pa.float64()))
    if _may_tag(grouping):
        fields.append(pa.field("tags", pa.string()))
    return pa.struct([*fields, *(field.with_name(VALUE + field.name) for field in plan.outputs)])


def few_values(grouping: Grouping) -> dict[tuple[str, ...], Sequence[str] | Sequence[int]]:
    """The columns of the output, and fields of them, that have few values, with these values."""
    few: dict[tuple[str, ...], Sequence[str] | Sequence[int]] = {("diff",): (1, -1), ("pane", "timing"): TIMINGS}
    if not percentiles(grouping.effective_trigger):
        few["pane", "watermark_percentile"] = ()
    if not _may_tag(grouping):
        few["pane", "trigger"] = CAUSES
    return few


def _may_tag(grouping: Grouping) -> bool:
    """True if a trigger of the user may give panes a text of its own."""
    return any(isinstance(trigger, UserTrigger) for trigger in walk(grouping.effective_trigger))


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
