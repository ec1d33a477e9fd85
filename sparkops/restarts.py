"""A restart, looked at before it happens: the steps of a flow beside those that wrote a checkpoint.

The state of each step names the pipeline that wrote it, so it is asked, one shard for each step. What cannot be read is
left to the first batch, in which every shard compares for itself.

Guarded by tests/sparkops/test_restart_checks.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..errors import StateMismatch
from ..flows.fingerprint.differences import (
    Change,
    check_same,
    flow_changes,
    free_changes,
    number_of,
    refusal,
    unknown_parts,
    words_of,
)
from ..flows.fingerprint.flow import Fingerprint
from ..flows.flow import Flow
from ..flows.flow_steps import stages_of
from ..flows.transform_names import transform_names
from ..panes.state.manifest import extra_of
from ..panes.state.seed import Seed
from ..panes.watermarks.stored_watermarks import read_extra
from .query_log import last_commit
from .routes.base import Route
from .routes.streaming import StreamRoute

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class StepRestart:
    """A step of a flow, and what a restart would do to it."""

    number: int
    words: str
    changes: Sequence[Change]
    """The changes that its state does not survive."""
    free: Sequence[str]
    """The changes after which it goes on, earlier rows as they were."""

    def lines(self) -> Iterator[str]:
        """The step in words."""
        yield f"stage {self.number}, {self.words}: {'refused' if self.changes else 'goes on'}"
        yield from (f"  {change.text}" for change in self.changes)
        yield from (f"  {text}: earlier rows stay as they were" for text in self.free)


@dataclass(frozen=True)
class Restart:
    """The steps of a flow that would be started from a checkpoint, and what would become of each."""

    steps: Sequence[StepRestart]
    unknown: Sequence[str] = ()
    """The parts that the version which wrote the checkpoint did not note, so that they are taken for unchanged."""

    @property
    def refusal(self) -> str | None:
        """The sentence with which the restart would be refused; None if the query would go on."""
        return refusal([f"in stage {one.number}: " for one in self.steps], [one.changes for one in self.steps])


def checked_route(route: Route, checkpoint: str, same: Sequence[str], start: Seed | None = None) -> Route:
    """The route, which takes the steps of `same` as unchanged; raises if its state cannot go on from the checkpoint."""
    check_same(same, step_names(route.flow))
    if not isinstance(route, StreamRoute):  # it has no state
        return route
    restart = restart_of(route, checkpoint, same)
    if restart is not None and restart.refusal is not None:
        raise StateMismatch(restart.refusal)
    if restart is not None and restart.unknown:
        warnings.warn(
            f"the checkpoint {checkpoint!r} is of a version that did not note {', '.join(restart.unknown)}: they are "
            "taken for unchanged, and noted from now on",
            stacklevel=4,
        )
    begun = replace(route, same=tuple(same), start=start)
    begun.check_start()
    return begun


def restart_of(route: StreamRoute, checkpoint: str, same: Sequence[str] = ()) -> Restart | None:
    """Say what a restart from a checkpoint would do; None where no batch has ended or its state is not read."""
    spark = route.input.spark
    several = len(route.graph.results) > 1
    stored = stored_fingerprints(spark, checkpoint, several) if last_commit(spark, checkpoint) >= 0 else []
    if not stored:
        return None
    now = [route.fingerprint(step) for step in route.graph.steps]
    before = {number_of(one): one for one in stored}
    steps = [
        StepRestart(
            number=number_of(one),
            words=words_of(one),
            changes=changed,
            free=free_changes(before[number_of(one)], one) if number_of(one) in before and not changed else (),
        )
        for one, changed in zip(now, flow_changes(stored, now, same), strict=True)
    ]
    return Restart(steps, list(dict.fromkeys(part for one in stored for part in unknown_parts(one))))


def step_names(flow: Flow) -> list[str]:
    """The names of the steps of a flow, as `explain` prints them."""
    return [*transform_names(flow).values(), *(f"stage {number + 1}" for number in range(stages_of(flow)))]


def stored_fingerprints(spark: SparkSession, checkpoint: str, several: bool = False) -> list[Fingerprint]:
    """The fingerprint of each step that wrote a checkpoint; none where Spark cannot read its state.

    If flows run together several steps share an operator.
    """
    try:
        operators = spark.read.format("state-metadata").load(checkpoint).select("operatorId").collect()
        numbers = sorted({int(row["operatorId"]) for row in operators})
        manifests = [one for number in numbers for one in _manifests(spark, checkpoint, number, several)]
    except Exception:  # of Spark's many kinds, and of the JVM, such as a folder that was moved
        return []
    found = [read_extra(extra_of(manifest))["made_by"] for manifest in manifests]
    return list({one["stage"]: one for one in found}.values())


def _manifests(spark: SparkSession, checkpoint: str, operator: int, every: bool) -> list[bytes]:
    """The manifests of all shards of an operator, or of one: Spark looks into one partition after the other for it."""
    reader = spark.read.format("statestore").option("operatorId", operator).option("stateVarName", "manifest")
    rows = reader.load(checkpoint).select("value.value")
    return [bytes(row[0]) for row in (rows.collect() if every else rows.take(1))]


__all__ = ["Restart", "StepRestart", "checked_route", "restart_of", "step_names", "stored_fingerprints"]
