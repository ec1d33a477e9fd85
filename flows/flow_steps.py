"""A flow as data: its source, and the steps that rows go through; and what follows from them.

Guarded by tests/local/test_local_flows.py and tests/sparkops/test_steps.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import pyarrow as pa

from ..combiners.expressions.expr import Expr
from ..errors import InvalidArgument
from ..panes.grouping.grouping import DIFF, Grouping
from ..panes.grouping.stage import GroupingStage
from ..panes.process.stage import ProcessStage
from ..panes.selection import without
from ..panes.stage import Stage, StageInput
from ..panes.transforms import Transform, Where, applied, name_after
from ..windows import Window
from .engine import Source
from .settings import Settings, check_ingress, check_name
from .settle import check_followed, followed


@dataclass(frozen=True, eq=False, repr=False)
class FlowSteps:
    """The source of a flow, the stages that rows go through, and the transforms after the last one."""

    source: Source[Any]
    settings: Settings
    source_schema: pa.Schema
    stages: tuple[Stage, ...] = ()
    transforms: tuple[Transform, ...] = ()
    """The transforms after the last stage."""

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the flow, as an Arrow schema."""
        schema = self.source_schema
        for stage in self.stages:
            schema = self._after(stage.transforms, schema)
            schema = stage.operator(schema).output_schema
        return self._after(self.transforms, schema)

    def output(self, name: str) -> Self:
        """The rows of one output of a step that has several, `process(outputs=)`: those emitted with `to=name`.

        It comes right after the step. The step is computed once for several outputs in flows that run together; flows
        that run by themselves compute it each.

        >>> import pyarrow as pa, uncombine as uc
        >>> class Checked:
        ...     output = pa.schema({"x": pa.int64()})
        ...     state = pa.schema({"rows": pa.int64()})
        ...     def on_row(self, row, state, ctx):
        ...         if row["x"] < 0:
        ...             ctx.emit({"why": "below 0"}, to="refused")
        ...         else:
        ...             ctx.emit({"x": row["x"]})
        >>> rows = uc.flow([{"ts": 0, "x": 5}, {"ts": 1, "x": -1}])
        >>> refused = pa.schema({"why": pa.string()})
        >>> checked = rows.process(function=Checked, outputs={"refused": refused})
        >>> both = uc.together(good=checked, refused=checked.output("refused")).run()
        >>> both["good"]["x"].to_pylist(), both["refused"]["why"].to_pylist()
        ([5], ['below 0'])
        """
        last = self.stages[-1] if self.stages else self.source.stage
        if not isinstance(last, ProcessStage) or self.transforms != last.shown:
            raise InvalidArgument(
                f"output({name!r}) comes right after the step that has outputs: write it after process(outputs=)"
            )
        return replace(self, transforms=(last.options.rows_of(name),))

    def _after(self, transforms: Sequence[Transform], schema: pa.Schema) -> pa.Schema:
        return applied(transforms, schema.empty_table()).schema


Steps = TypeVar("Steps", bound=FlowSteps)


def with_name(flow: Steps, name: str | None) -> Steps:
    """The flow with a name for its source, if it is a source without one."""
    check_name(name)
    if flow.settings.name is not None or flow.source.inputs:
        return flow
    return replace(flow, settings=replace(flow.settings, name=name))


def without_counts(flow: Steps) -> Steps:
    """The flow without the column `diff` of panes that are never retracted, each of which counts as one row."""
    weight = None if input_of(flow).diff is not None else weight_of(flow)
    if weight is None or weight not in flow.schema.names:
        return flow
    return replace(flow, transforms=(*flow.transforms, without(flow.schema.names, [weight])))


def last_groupings(flow: FlowSteps) -> list[Grouping]:
    """The groupings whose panes are the rows of a flow."""
    if not flow.stages:
        return [grouping for one in flow.source.inputs for grouping in last_groupings(one)]
    return [stage.grouping for stage in flow.stages[-1:] if isinstance(stage, GroupingStage)]


def stages_of(flow: FlowSteps) -> int:
    """The number of stages of a flow, with those of the flows that its source is made of."""
    own = len(flow.stages) + (flow.source.stage is not None)
    return own + sum(map(stages_of, flow.source.inputs))


def input_of(flow: FlowSteps) -> StageInput:
    """The input that a flow is for its next stage."""
    rows = first_input(flow)
    diff = None if rows.diff is None else name_after(flow.transforms, rows.diff)
    return replace(rows, time=name_after(flow.transforms, rows.time), diff=diff)


def first_input(flow: FlowSteps) -> StageInput:
    """The input that a flow would be without its last transforms."""
    if flow.stages:
        return flow.stages[-1].output()
    return flow.source.output or StageInput(
        time=flow.settings.time, diff=flow.settings.diff, max_future=flow.settings.max_future
    )


def weight_of(flow: FlowSteps) -> str | None:
    """The column with the weights of the rows of a flow; None if they have none. Panes have some in any case."""
    rows = input_of(flow)
    return rows.diff or (name_after(flow.transforms, DIFF) if rows.panes else None)


def leaves_of(flow: FlowSteps) -> Iterator[tuple[Source[Any], Settings]]:
    """The sources of a flow that are not made of flows, each with the options with which it is read."""
    if not flow.source.inputs:
        yield flow.source, flow.settings
    for one in flow.source.inputs:
        yield from leaves_of(one)


def windows_of(flow: FlowSteps) -> list[Window]:
    """The windows of the rows of a flow; none if they are not known."""
    if any(step.may_set("window") for step in flow.transforms):
        return []
    if not flow.stages:
        return [window for one in flow.source.inputs for window in windows_of(one)]
    return [grouping.window for grouping in last_groupings(flow)]


def without_signals(flow: Steps) -> Steps:
    """The flow whose triggers hear no signals, if its rows are bounded, of which windows show final panes alone."""
    if not flow.source.ports or flow.source.streaming or flow.settings.replay:
        return flow
    keyed, (first, *others) = flow.source.inputs[0], flow.stages
    assert isinstance(first, GroupingStage)
    alone = replace(first, transforms=keyed.transforms, signals=())
    stages = (*keyed.stages, alone, *others)
    return without_signals(replace(keyed, stages=stages, transforms=flow.transforms))


def followed_flow(flow: Steps) -> Steps:
    """The flow with its last stage settled for another one after it; raises if none can follow."""
    check_ingress(flow.settings, flow.source.streaming)
    flow = _followed(flow)
    check_filters(flow)
    return flow


def check_filters(flow: FlowSteps) -> None:
    """Raise if rows are filtered by their weights after the last step."""
    weight = first_input(flow).diff
    for step in flow.transforms:
        if isinstance(step, Where) and isinstance(step.predicate, Expr) and weight in step.predicate.columns:
            raise InvalidArgument(
                f"where() on {weight!r}, the weights of rows that can be retracted, would keep rows and drop their "
                "retractions: filter by another column, or after the last step"
            )
        weight = weight and step.name_after(weight)


def _followed(flow: Steps) -> Steps:
    if not flow.stages:
        return flow
    *first, last = flow.stages
    if not isinstance(last, GroupingStage):
        return flow
    each_batch = flow.settings.each_batch
    grouping = followed(last.grouping, last.open_grouping, stages_of(flow), each_batch)
    check_followed(grouping, replace(flow, stages=tuple(first), transforms=last.transforms).schema, each_batch)
    return replace(flow, stages=(*first, replace(last, grouping=grouping)))


__all__ = [
    "FlowSteps",
    "check_filters",
    "first_input",
    "followed_flow",
    "input_of",
    "last_groupings",
    "leaves_of",
    "stages_of",
    "weight_of",
    "windows_of",
    "with_name",
    "without_counts",
    "without_signals",
]
