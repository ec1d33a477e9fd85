"""The state that a query had before it was started again, for those who ask before its first rows.

A new process has seen no batch of the query, so the checkpoint says it. It is read once for a run: that is a job of
Spark. Spark Connect does not say where the checkpoint is.

Guarded by tests/sparkops/checkpoints/test_before_start.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from pyspark.errors import PySparkException

from ...errors import UncombineError
from ..measuring.batch_numbers import FlowProgress, Progress, SourceProgress, StageProgress
from ..measuring.last_batches import LAST_BATCHES
from ..naming import UNNAMED
from ..spark_private import checkpoint_of
from .contents import Checkpoint, StoredStep, checkpoint

_read: dict[str, Progress | None] = {}
"""The states of checkpoints that were read, by the ids of runs."""

_since: dict[str, datetime] = {}
"""The times since which runs wait: Spark forgets its first reports after a while."""


def before_start(query: Any, flow: str = UNNAMED) -> Progress | None:
    """The last batch before this run, with its state: as this process has seen it, else as the checkpoint says."""
    known, run = LAST_BATCHES.of(str(query.id)), str(query.runId)
    if known is not None and known.state_known:
        return known
    if run not in _read:
        _read[run] = None
        place = checkpoint_of(query)
        with suppress(UncombineError, PySparkException):  # no batch is done yet, or its state is not kept any more
            _read[run] = None if place is None else _stored(checkpoint(place))
    stored = _read[run]
    return None if stored is None else Progress(stored.batch, 0.0, {flow: FlowProgress(stored.stages)})


def waiting(query: Any, batch: int, since: datetime) -> Progress | None:
    """The progress of a query that waits for the first batch of its run, after this one; None if there was none."""
    if batch < 0:
        return None
    before = before_start(query)
    since = _since.setdefault(str(query.runId), since)
    return Progress(batch, 0.0, {} if before is None else before.flows, waiting_since=since)


def _stored(found: Checkpoint) -> Progress:
    sources = found.sources().to_pylist()  # few
    stages = (_stage(step, [row for row in sources if row["step"] == step.number]) for step in found.steps)
    return Progress(found.batch, 0.0, {UNNAMED: FlowProgress(tuple(stages))})


def _stage(step: StoredStep, sources: list[Mapping[str, Any]]) -> StageProgress:
    return StageProgress(
        windows_held=sum(step.rows.values()),
        state_bytes=step.bytes,
        watermark=step.watermark,
        output_watermark=step.output_watermark,
        shards=step.shards,
        sources=tuple(
            SourceProgress(
                input=row["input"],
                name=row["source"],
                watermark=row["watermark"],
                last_report=row["last_report"],
                idle=row["idle"],
                offset=row["offset"],
                end=row["end"],
            )
            for row in sorted(sources, key=lambda row: not row["holds"])
        ),
    )


__all__ = ["before_start", "waiting"]
