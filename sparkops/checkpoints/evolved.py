"""The checkpoint of a changed flow, made on Spark of the checkpoint of the flow as it was.

Guarded by tests/sparkops/checkpoints/test_evolved_checkpoints.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...errors import InvalidArgument, StateMismatch
from ...flows.evolution.changed_seed import write_changed
from ...flows.evolution.former_marks import closed_windows, former_marks, former_positions, processing_time
from ...flows.evolution.plan import Planned, in_mode_of, planned
from ...flows.flow import Flow
from ...flows.histories import past_of
from ...panes.state.seed import Seed, SeedStep
from ..routes.history import History
from ..routes.streaming import StreamRoute
from ..source import spark_source
from .contents import checkpoint
from .history_seeds import listed
from .new_checkpoint import SparkWork, new_checkpoint, require_ended
from .positions import EVOLVED, with_shards

if TYPE_CHECKING:
    pass


def evolve_checkpoint(
    path: str, flow: Flow, target: str | None, history: Any, shards: int | None, renames: Mapping[str, str]
) -> tuple[Planned, int, int, Seed | None]:
    """The plan, the rows and bytes of the state as it was, and the seed in the new checkpoint."""
    source = spark_source(flow)
    if source is None or not flow.source.streaming:
        raise InvalidArgument(
            "evolve() of a checkpoint takes the flow of a stream on Spark, as it is now: give uc.flow() spark= and "
            "streaming=True, or a DataFrame of spark.readStream"
        )
    spark = source.input.spark
    former = checkpoint(path, spark=spark)
    require_ended(spark, path)
    if shards is not None:
        flow = with_shards(flow, shards)
    steps = former.steps
    if not steps:
        raise StateMismatch(
            f"the query of the checkpoint {path!r} has stored no state yet, so there is nothing to evolve: let it run "
            "until its sources have had rows, or evolve the checkpoint that it was made of"
        )
    flow = in_mode_of(flow, [one.made_by for one in steps])
    route = StreamRoute(flow, source.route_input)
    graph = route.graph
    now = [route.fingerprint(step) for step in graph.steps]
    lacking = {one.number: one.since for one in steps}
    plan = planned([one.made_by for one in steps], graph, now, history is not None, renames, lacking)
    if shards is not None:
        plan = replace(plan, notes=(f"shards: {shards} from now on, among which the rows are divided again",))
    plan = plan.told(history is not None, sum(one.counts["dropped"] for one in steps))
    rows, size = sum(sum(one.rows.values()) for one in steps), sum(one.bytes for one in steps)
    if target is None:
        return plan, rows, size, None
    past = past_of(flow, history, None) if plan.computed else None  # a query has clocks that are before now
    with new_checkpoint(spark, path, former.batch, target) as old:
        seed = _made(old, flow, route, plan, past, target, shards)
    return plan, rows, size, seed


def _made(
    old: Seed, flow: Flow, route: StreamRoute, plan: Planned, past: Flow | None, target: str, shards: int | None
) -> Seed:
    """Write the seed of the changed flow into a new checkpoint."""
    graph = route.graph
    positions = former_positions(old, graph)
    folder, computed = f"{target}/{EVOLVED}", list[SeedStep]()
    if past is not None:
        past = listed(past, positions, flow)
        marks = tuple(former_marks(old, graph))
        run = History(past, route.input, folder=folder, marks=marks, now=processing_time(old))
        made_by = [one.made_by for one in plan.steps]
        computed = replace(run, closed=closed_windows(old, plan)).steps(made_by)
    return write_changed(old, plan, computed, folder, SparkWork(route.input.spark), positions, shards)


__all__ = ["evolve_checkpoint"]
