"""The contents of a checkpoint of a flow, read from Spark's state store without running the flow.

Guarded by tests/cli/test_command_line.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ..errors import InvalidArgument, UnreadableFile
from ..flows.fingerprint.differences import check_same
from ..flows.flow import Flow
from ..panes.state.manifest import bytes_of, checked_head, extra_of
from ..panes.watermarks.stored_watermarks import read_extra
from ..windows.times import MAX_TIME, MIN_TIME, time_text
from .query_log import is_checkpoint
from .restarts import Restart, restart_of, step_names
from .routes.streaming import StreamRoute
from .session import session
from .source import spark_source
from .time_modes import as_stored


@dataclass(frozen=True)
class StoredStage:
    """A step of a flow as a checkpoint holds it, over all its shards."""

    stage: str
    """The number of the step, such as "1 of 2"."""
    made_by: Mapping[str, Any]
    """The parts of the flow on which the state depends."""
    strategies: Sequence[str]
    shards: int
    """The number of shards with state."""
    held: Mapping[str, int] = field(default_factory=dict)
    """The number of rows in each store; that of windows is `windows`."""
    state_bytes: int = 0
    watermark: int = MIN_TIME
    """The least watermark of all shards, in microseconds."""

    @property
    def shown_watermark(self) -> str:
        """The watermark as a text."""
        return time_text(self.watermark)


@dataclass(frozen=True)
class StoredFlow:
    """The contents of a checkpoint: the last batch that was committed, and its steps."""

    path: str
    last_batch: int | None
    stages: Sequence[StoredStage]


def read_checkpoint(path: str) -> StoredFlow:
    """Read what a checkpoint holds, in the running session of Spark or in one for this alone."""
    if not Path(path).is_dir():
        raise InvalidArgument(f"there is no folder {path!r}")
    running = SparkSession.getActiveSession()
    spark = session("uncombine checkpoint", cores=1) if running is None else running
    try:
        return stored_flow(spark, path)
    finally:
        if running is None:
            spark.stop()


def stored_flow(spark: SparkSession, path: str) -> StoredFlow:
    """Read what a checkpoint holds; the query may be running."""
    folder = Path(path)
    if not (folder / "commits").is_dir():
        raise InvalidArgument(
            f"{path!r} is no checkpoint of a streaming query that has ended a batch: it has no folder 'commits'"
        )
    batches = [int(name.name) for name in (folder / "commits").iterdir() if name.name.isdigit()]
    last = max(batches, default=None)
    operators = sorted(int(name.name) for name in (folder / "state").glob("*") if name.name.isdigit())
    stages = [_stage(manifests) for number in operators if (manifests := _manifests(spark, path, number))]
    return StoredFlow(path=path, last_batch=last, stages=sorted(stages, key=lambda one: one.stage))


def _manifests(spark: SparkSession, path: str, operator: int) -> list[bytes]:
    """The manifest of each shard of an operator."""
    reader = spark.read.format("statestore").option("operatorId", operator).option("stateVarName", "manifest")
    try:
        return [bytes(row.value) for row in reader.load(path).select("value.value").collect()]
    except Exception as error:  # of Spark's many kinds, and of the JVM
        first = str(error).strip().partition("\n")[0]
        raise UnreadableFile(
            f"Spark cannot read the state of operator {operator} in {path!r}: {first}", path
        ) from error


def _stage(manifests: Sequence[bytes]) -> StoredStage:
    row_counts: dict[str, int] = {}
    least = MAX_TIME
    for written in manifests:
        head = checked_head(written)
        least = min(least, head["watermark"])
        for name, parts in head.items():
            if isinstance(parts, list) and all(isinstance(part, dict) and "alive" in part for part in parts):
                row_counts[name] = row_counts.get(name, 0) + sum(part["alive"] for part in parts)
    extra = read_extra(extra_of(manifests[0]))
    made_by = extra["made_by"]
    strategies = extra["strategies"] if "strategies" in extra else [extra["strategy"]]
    size = sum(map(bytes_of, manifests))
    row_counts.pop("percentiles", None)
    return StoredStage(
        stage=made_by["stage"],
        made_by=made_by,
        strategies=strategies,
        shards=len(manifests),
        held=row_counts,
        state_bytes=size,
        watermark=least,
    )


def check_restart(flow: Flow, checkpoint: str, same: Sequence[str] = ()) -> Restart:
    """Say what a restart of a streaming flow from a checkpoint would do, without starting it."""
    source = spark_source(flow) if flow.source.streaming else None
    route = None if source is None else source.route(as_stored(flow, source.input.spark, checkpoint))
    if not isinstance(route, StreamRoute):
        raise InvalidArgument("a checkpoint is that of a stream with steps on Spark, and this flow is none")
    check_same(same, step_names(flow))
    if not is_checkpoint(route.input.spark, checkpoint):
        raise InvalidArgument(
            f"{checkpoint!r} is no checkpoint of a streaming query: it has no file 'metadata', which a query writes as "
            "it starts, so give the folder of write_stream(checkpoint=)"
        )
    return restart_of(route, checkpoint, same) or Restart(())


__all__ = ["StoredFlow", "StoredStage", "check_restart", "read_checkpoint", "stored_flow"]
