"""The seed of a history, computed in this process: the state that a flow has after rows that nobody has shown.

Guarded by tests/flows/test_histories.py.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import uuid4

from ..flows.flow import Flow
from ..flows.graph import graph_of
from ..flows.histories import past_of, tell_bad
from ..panes.state.seed import Seed, SeedMaker, require_free
from .history_run import HistoryRun, net_panes
from .run_seeds import seed_of


def seed_of_history(flow: Flow, history: Any, until: datetime | str | int | None, folder: str) -> Seed:
    """Write the state that a flow has after the rows of its past, and the panes that it then shows, as a seed."""
    require_free(folder)
    run = HistoryRun(past_of(flow, history, until))
    run.play()
    corrections = {step: [net_panes(step, tables)] for step, tables in run.panes.items()}
    of_past, of_flow = run.graph.steps, graph_of(flow)
    shards = {step: run.shards[past] for step, past in zip(of_flow.steps, of_past, strict=True)}
    shown = {step: corrections.get(past, ()) for step, past in zip(of_flow.steps, of_past, strict=True)}
    maker = SeedMaker(owner=uuid4().hex, batch=0)
    seed = seed_of(flow, of_flow, shards, maker, folder, shown)
    tell_bad(seed.steps)
    return seed


__all__ = ["seed_of_history"]
