"""The choice of the route of a flow: one flow, several ways to run it on Spark, and the same rows from each.

A flow over bounded rows ends with final results, so it needs no state between bundles: Spark combines its rows itself
where Spark's aggregates are equal to the last bit (`Native`), or tasks in Python do (`FinalPanes`). A stream and a
replay go through shards in order of processing time (`StreamRoute`, `Replay`), and so does, all at once, a bounded flow
with steps that are no groupings (`AtOnce`). A flow without steps is its rows (`NativeRows`, `NoStages`). The choice
looks at the flow and its input and reads no row; `explain()` says which route it is and why no faster one fits. Not
promised: that a later version takes the same route, or that sums of floats are equal to the last bit on all of them.

Guarded by tests/sparkops/test_flow.py, tests/sparkops/test_files.py and tests/sparkops/test_flows.py.
"""

from __future__ import annotations

from ...errors import InvalidArgument
from ...flows.flow import Flow
from ...flows.flow_steps import stages_of
from ...flows.graph import groupings_of
from ...flows.left_out import LEFT_OUT
from ..inputs import Input
from .base import Route
from .final import FinalPanes, NoStages
from .live import Live
from .native import Native, native_plan
from .native_rows import NativeRows, rows_by_spark
from .replay import AtOnce, Replay
from .streaming import StreamRoute


def route_with_left_out(flow: Flow, input: Input) -> Live:
    """The route that shows the rows that steps leave out beside the result, in the column `left_out`."""
    check_left_out(flow, input)
    if flow.source.streaming:
        return StreamRoute(flow, input, beside=True)
    if flow.settings.replay:
        return Replay(flow, input, beside=True)
    return AtOnce(flow, input, beside=True)


def route(flow: Flow, input: Input) -> Route:
    """Choose the route on which Spark runs a flow over an input."""
    live = flow.source.streaming or flow.settings.replay
    if not (flow.stages or (live and flow.source.inputs)):
        rows = rows_by_spark(flow, input)
        return NoStages(flow, input) if rows is None else NativeRows(flow=flow, input=input, rows=rows)
    if live:
        return StreamRoute(flow, input) if flow.source.streaming else Replay(flow, input)
    if len(groupings_of(flow)) < len(flow.stages):
        return AtOnce(flow, input)
    plan = native_plan(flow, input)
    return (
        FinalPanes(flow=flow, input=input, why_not_native=plan)
        if isinstance(plan, str)
        else Native(flow=flow, input=input, plan=plan)
    )


def check_left_out(flow: Flow, input: Input) -> None:
    """Raise if a flow can have no rows beside its result."""
    if stages_of(flow) == 0 and not flow.source.inputs and not input.may_lose:
        raise InvalidArgument(
            "left_out has the rows that steps leave out, and messages and rows of files that cannot be read: this flow "
            "has no step: add one, such as window(...).combine(...)"
        )
    if LEFT_OUT in map(str.casefold, flow.schema.names):
        raise InvalidArgument(f"{LEFT_OUT!r} is the column of rows that were left out: give the result another name")
