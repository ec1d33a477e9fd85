"""The seed of a changed flow, made in this process of the seed of the flow as it was.

Guarded by tests/flows/evolution/test_evolution.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ..combiners.rows.columns import flat
from ..flows.evolution.changed_seed import WINDOW_STORES, FirstStart, ShownFile, write_changed
from ..flows.evolution.former_marks import closed_windows, former_marks, former_positions, processing_time
from ..flows.evolution.other_windows import FIRST, FormerWindows, first_times, require_none_expired
from ..flows.evolution.plan import Planned, planned
from ..flows.fingerprint.differences import number_of
from ..flows.flow import Flow
from ..flows.graph import graph_of
from ..flows.histories import past_of, tell_bad
from ..panes.grouping.grouping import DIFF
from ..panes.rows.net_rows import net_rows
from ..panes.state.seed import Seed, SeedFile, SeedStep, require_free, write_corrections
from ..windows import time_column
from ..windows.times import MAX_TIME
from .history_run import HistoryRun, net_panes
from .run_seeds import fingerprints, seed_step


def plan_here(former: Seed, flow: Flow, history: bool, renames: Mapping[str, str]) -> Planned:
    """The plan for a flow of this process whose state was made by another one."""
    graph = graph_of(flow)
    lacking = {number_of(step.made_by): step.pieces[0].since for step in former.steps}
    was = [step.made_by for step in former.steps]
    late = sum(piece.counts.dropped for step in former.steps for piece in step.pieces)
    return planned(was, graph, fingerprints(flow, graph), history, renames, lacking).told(history, late)


def check_windows_here(former: Seed, flow: Flow, plan: Planned, history: Any) -> None:
    """Raise if the windows of the last step change and some have expired."""
    was = next((step for step in former.steps if number_of(step.made_by) == number_of(plan.former_last)), None)
    if not plan.computed or was is None:
        return
    files = [file for file in was.files if file.store in WINDOW_STORES]
    windows = FormerWindows(
        watermark=max(piece.watermark for piece in was.pieces),
        start=lambda: min(HereWork().numbers(FirstStart(former.folder), files), default=MAX_TIME),
        closed=max(piece.closed for piece in was.pieces),
    )
    require_none_expired(plan, windows, lambda: _first_time(past_of(flow, history, None)))


def _first_time(past: Flow) -> int | None:
    """The first event time of the rows of a history; None without rows."""
    times = (flat(flow.run()[FIRST]).drop_null() for flow in first_times(past))
    return min((int(time_column(some)[0].min()) for some in times if len(some)), default=None)


def evolve_here(former: Seed, flow: Flow, plan: Planned, history: Any, folder: str) -> Seed:
    """Write the seed of the flow as it is now."""
    require_free(folder)
    check_windows_here(former, flow, plan, history)
    computed = list[SeedStep]()
    if plan.computed:
        marks = former_marks(former, graph_of(flow))
        closed = closed_windows(former, plan)
        now = processing_time(former)
        run = HistoryRun(past_of(flow, history, None, now), marks, now, closed)
        run.play()
        for one, (step, shard) in zip(plan.steps, run.shards.items(), strict=True):
            shown = [net_panes(step, run.panes[step])] if step in run.panes else []
            panes = tuple(write_corrections(folder, 0, shown))
            computed.append(replace(seed_step(one.step, shard, one.made_by, folder), corrections=panes))
        tell_bad(computed)
    return write_changed(former, plan, computed, folder, HereWork(), former_positions(former, graph_of(flow)))


class HereWork:
    """Works on the files of seeds in this process."""

    def numbers(self, of: Callable[[SeedFile], int], files: Sequence[SeedFile]) -> list[int]:
        return list(map(of, files))

    def files(self, change: Callable[[SeedFile], SeedFile | None], files: Sequence[SeedFile]) -> list[SeedFile]:
        return [made for file in files if (made := change(file)) is not None]

    def net(self, panes: Callable[[ShownFile], pa.Table], files: Sequence[ShownFile], folder: str) -> list[SeedFile]:
        if not files:
            return []
        return write_corrections(folder, 0, [net_rows(pa.concat_tables(map(panes, files)), DIFF)])


__all__ = ["check_windows_here", "evolve_here", "plan_here"]
