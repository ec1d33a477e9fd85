"""The choice of the route of a flow."""

from __future__ import annotations

from ...panes.chain import groupings_of
from ...panes.flow import Flow
from ..inputs import Input
from .base import Route
from .final import FinalPanes, NoStages
from .native import Native, native_plan
from .replay import AtOnce, Replay
from .streaming import Streaming


def route(flow: Flow, input: Input) -> Route:
    """Choose the route on which Spark runs a flow over an input."""
    live = flow.source.streaming or flow.settings.replay
    if not (flow.stages or (live and flow.source.inputs)):
        return NoStages(flow, input)
    if live:
        return Streaming(flow, input) if flow.source.streaming else Replay(flow, input)
    if len(groupings_of(flow)) < len(flow.stages):
        return AtOnce(flow, input)
    plan = native_plan(flow, input)
    return FinalPanes(flow, input, plan) if isinstance(plan, str) else Native(flow, input, plan)
