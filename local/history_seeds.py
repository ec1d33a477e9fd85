"""The seed of a history, computed in this process: the state that a flow has after rows that nobody has shown.

Guarded by tests/flows/test_histories.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

import pyarrow as pa

from ..flows.flow import Flow
from ..flows.graph import Feed, Step, graph_of
from ..flows.histories import past_of
from ..panes.rows.net_rows import net_rows
from ..panes.state.seed import Seed, SeedMaker, require_free
from .run_seeds import seed_of
from .script_run import LocalRun


class HistoryRun(LocalRun):
    """A run over the past, whose panes are kept as the steps gave them."""

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow)
        self.panes: dict[Step, list[pa.Table]] = {}

    def _show_panes(self, place: int, feed: Feed, panes: pa.Table) -> None:
        assert isinstance(feed.origin, Step)
        if panes.num_rows:
            self.panes.setdefault(feed.origin, []).append(panes)


def seed_of_history(flow: Flow, history: Any, until: datetime | str | int | None, folder: str) -> Seed:
    """Write the state that a flow has after the rows of its past, and the panes that it then shows, as a seed."""
    require_free(folder)
    run = HistoryRun(past_of(flow, history, until))
    run.play_tables()
    corrections = {step: [net_panes(step, tables)] for step, tables in run.panes.items()}
    of_past, of_flow = run.graph.steps, graph_of(flow)
    shards = {step: run.shards[past] for step, past in zip(of_flow.steps, of_past, strict=True)}
    shown = {step: corrections.get(past, ()) for step, past in zip(of_flow.steps, of_past, strict=True)}
    maker = SeedMaker(owner=uuid4().hex, batch=0)
    return seed_of(flow, of_flow, shards, maker, folder, shown)


def net_panes(step: Step, tables: Sequence[pa.Table]) -> pa.Table:
    """The panes of a step that are left after their retractions."""
    panes, diff = pa.concat_tables(tables), step.stage.output().diff
    return panes if diff is None else net_rows(panes, diff)


__all__ = ["net_panes", "seed_of_history"]
