"""The watermark of Spark that a DataFrame declares, if nothing in it uses that: a flow has a watermark of its own.

Guarded by tests/sparkops/scans/test_watermark.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..spark_private import execution, messages

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PLAIN = ("Project", "Filter", "SubqueryAlias", "Repartition", "RepartitionByExpression")
_PLAIN_MESSAGES = ("project", "filter", "subquery_alias", "with_columns", "with_columns_renamed", "drop", "repartition")
"""The steps that keep no state, by which a row could be late."""


def unused_watermark(df: DataFrame) -> str | None:
    """The column that `withWatermark` names, in a stream of which no later step keeps state; None without one."""
    if not df.isStreaming:
        return None
    plan = execution(df)
    if plan is None:
        return _of_messages(df)
    node = plan.analyzed()
    while (kind := node.nodeName()) in _PLAIN:
        node = node.child()
    return str(node.eventTime().name()) if kind == "EventTimeWatermark" else None


def _of_messages(df: DataFrame) -> str | None:
    """The same for a DataFrame of Spark Connect, by the messages that its client sends."""
    for message, _ in messages(df):
        kind = message.WhichOneof("rel_type")
        if kind not in _PLAIN_MESSAGES:
            return str(message.with_watermark.event_time) if kind == "with_watermark" else None
    return None


__all__ = ["unused_watermark"]
