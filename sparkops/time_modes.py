"""The time mode of a query: its choice of batches without data, which Spark keeps in the checkpoint and never changes.

Guarded by tests/sparkops/test_time_modes.py.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException

from ..errors import StateMismatch, level_of_user
from ..files.data_paths import escaped_name
from ..flows.flow import Flow
from ..flows.graph import Graph, graph_of, graph_together
from ..flows.settings import Settings
from .query_log import require_place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WITH_TIMERS = "ProcessingTime"
"""The mode with batches without data. In it Spark runs another one after each batch, so `availableNow` never ends."""


def wakes(settings: Settings, graph: Graph) -> bool:
    """True if a query needs batches without data, because timers of processing time can be due."""
    if settings.processing_time is not None or settings.wake is False:
        return False
    strategies = [leaf.settings.strategy for leaf in graph.leaves]
    by_clock = any(s is not None and (s.idle is not None or s.clock_lag is not None) for s in strategies)
    stages = [step.stage for step in graph.steps]
    return by_clock or any(stage.may_wake if settings.wake else stage.wakes for stage in stages)


def choice_of(*flows: Flow) -> bool | None:
    """True if a query of the flows wakes for timers, False if it could and does not, None if it never does."""
    graph = _graph_of(flows)
    if not any(wakes(replace(flow.settings, wake=True), graph) for flow in flows):
        return None
    return any(wakes(flow.settings, graph) for flow in flows)


def _graph_of(flows: Sequence[Flow]) -> Graph:
    return graph_of(flows[0]) if len(flows) == 1 else graph_together(flows)


def _timers(flows: Sequence[Flow]) -> list[str]:
    """The parts of flows by which they need batches without data."""
    graph = _graph_of(flows)
    strategies = [leaf.settings.strategy for leaf in graph.leaves]
    of_sources = {
        f"{type(one).__name__}({'idle_after=' if one.idle is not None else ''})"
        for one in strategies
        if one is not None and (one.idle is not None or one.clock_lag is not None)
    }
    return [*sorted(of_sources), *(f"step {step.number}" for step in graph.steps if step.stage.wakes)]


def check_choice(wakes: bool, spark: SparkSession, checkpoint: str) -> None:
    """Raise if a query cannot go on from a checkpoint because it was written in the other time mode."""
    stored = stored_choice(spark, checkpoint)
    if stored is not None and stored != wakes:
        raise StateMismatch(
            f"the checkpoint {checkpoint!r} was written {'with' if stored else 'without'} batches without data, and "
            f"Spark keeps this choice: give uc.flow() tuning=uc.Tuning(wake={stored}) to go on from it"
        )


def stored_choice(spark: SparkSession, checkpoint: str) -> bool | None:
    """True if the steps of a checkpoint have batches without data, as Spark wrote it; None if there are no steps."""
    files = f"{escaped_name(checkpoint)}/state/*/_metadata/v2/*"
    try:
        files_text = spark.read.text(files, wholetext=True).collect()
    except AnalysisException:  # there are no such files yet
        return None
    modes = {mode for row in files_text if (mode := _mode(row[0])) is not None}
    return WITH_TIMERS in modes if modes else None  # all steps of a query have the same


def _mode(text: str) -> str | None:
    """The time mode in the facts of an operator: the number of their format, and JSON within JSON."""
    facts: Mapping[str, Any] = json.loads(text.partition("\n")[2])
    mode = json.loads(facts.get("operatorPropertiesJson") or "{}").get("timeMode")
    return None if mode is None else str(mode)


def as_stored(flow: Flow, spark: SparkSession, checkpoint: str) -> Flow:
    """The flow of a query in the time mode of its checkpoint."""
    (one,) = all_as_stored([flow], spark, checkpoint)
    return one


def all_as_stored(flows: Sequence[Flow], spark: SparkSession, checkpoint: str) -> list[Flow]:
    """The flows of a query in the time mode of its checkpoint, which Spark would refuse to go on with in another.

    Raises where Spark can have no checkpoint.
    """
    require_place(spark, checkpoint)
    choice = choice_of(*flows)
    stored = None if choice is None else stored_choice(spark, checkpoint)
    if stored is None:
        return list(flows)
    if choice and not stored:
        warnings.warn(
            f"the checkpoint {checkpoint!r} was written without batches without data, so timers of processing time, "
            f"here of {' and '.join(_timers(flows))}, fire with the next data, also those of another source: that is "
            "enough as long as some come, and uc.flow(tuning=uc.Tuning(wake=False)) says so; a new checkpoint has such "
            "batches",
            stacklevel=level_of_user(),
        )
    return [replace(flow, settings=replace(flow.settings, wake=stored)) for flow in flows]


__all__ = ["all_as_stored", "as_stored", "check_choice", "choice_of", "stored_choice", "wakes"]
