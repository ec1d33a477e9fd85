"""The checkpoint of a changed flow, made on Spark of the checkpoint of the flow as it was.

Guarded by tests/sparkops/checkpoints/test_evolved_checkpoints.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import flat
from ...errors import InvalidArgument, StateMismatch
from ...files.files import Files
from ...flows.evolution.changed_seed import WINDOW_STORES, write_changed
from ...flows.evolution.former_marks import closed_windows, former_marks, former_positions, processing_time
from ...flows.evolution.other_windows import FIRST, FormerWindows, first_times, require_none_expired
from ...flows.evolution.plan import Planned, in_mode_of, planned
from ...flows.fingerprint.differences import number_of
from ...flows.flow import Flow
from ...flows.histories import past_of, tell_bad
from ...panes.state.manifest import Manifest, extra_of
from ...panes.state.operator_state import OperatorState
from ...panes.state.seed import Seed, SeedStep
from ...panes.watermarks.stored_watermarks import read_extra
from ...windows import time_column
from ...windows.times import MAX_TIME
from ..routes.history import History
from ..routes.streaming import StreamRoute
from ..source import spark_source
from .contents import Checkpoint, checkpoint
from .history_seeds import listed
from .new_checkpoint import SparkWork, new_checkpoint, require_ended
from .positions import EVOLVED, with_shards
from .seeds import operators
from .shards import StoredShards


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
    filtered = isinstance(history, Files) and history.filter is not None
    plan = plan.told(history is not None, sum(one.counts["dropped"] for one in steps), filtered)
    rows, size = sum(sum(one.rows.values()) for one in steps), sum(one.bytes for one in steps)
    past = past_of(flow, history, None) if plan.computed else None
    if past is not None:
        _check_windows(former, plan, past)
    if target is None:
        return plan, rows, size, None
    with new_checkpoint(spark, path, former.batch, target) as old:
        seed = _made(old, flow, route, plan, past, target, shards)
    return plan, rows, size, seed


def _check_windows(former: Checkpoint, plan: Planned, past: Flow) -> None:
    """Raise if the windows of the last step change and some have expired."""
    spark, last = former.spark, number_of(plan.former_last)
    every = [StoredShards(spark, former.path, number, former.batch) for number in operators(spark, former.path)]
    steps = [(one, manifests) for one in every for manifests in one.steps()]
    shards, manifests = next((one, found) for one, found in steps if _number(found) == last)
    states = [Manifest.read(manifest).state for manifest in manifests.values()]

    def start() -> int:
        rows = shards.mapped(_FirstStart(), "start long", manifests).collect()  # few: one for each shard
        return min((int(row["start"]) for row in rows), default=MAX_TIME)

    def first() -> int | None:
        times = [flat(one.source.engine.df(one).toArrow()[FIRST]).drop_null() for one in first_times(past)]
        return min((int(time_column(some)[0].min()) for some in times if len(some)), default=None)

    mark, closed = max(state.watermark for state in states), max(state.closed for state in states)
    require_none_expired(plan, FormerWindows(mark, start, closed), first)


def _number(manifests: Mapping[int, bytes]) -> int:
    """The number of the step that these manifests are of."""
    return number_of(read_extra(extra_of(next(iter(manifests.values()))))["made_by"])


@dataclass(frozen=True)
class _FirstStart:
    """Finds the start of the first window of a shard."""

    def __call__(self, shard: int, state: OperatorState, manifest: bytes) -> Iterator[pa.RecordBatch]:
        stores = [store for name in WINDOW_STORES if (store := state.stores.get(name)) is not None]
        tables = [chunk.living()[1] for store in stores for chunk in store.chunks]
        starts = [int(np.asarray(table["num.start"]).min()) for table in tables if table.num_rows]
        yield pa.RecordBatch.from_pydict({"start": [min(starts, default=MAX_TIME)]})


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
        tell_bad(computed)
    return write_changed(old, plan, computed, folder, SparkWork(route.input.spark), positions, shards)


__all__ = ["evolve_checkpoint"]
