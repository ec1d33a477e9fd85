"""The chain of a flow, read: its stages, its groupings, its windows and its sources, through unions and joins.

Guarded by tests/panes/join/test_join_flows.py and tests/flows/test_union.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from ..panes.grouping.grouping import Grouping
from ..panes.transforms import Map, Transform, WithColumns
from ..windows import Window
from .settings import Settings
from .settle import Before
from .steps import GroupingStage, Stage


class Origin(Protocol):
    """The source of a chain, which may be made of other chains."""

    @property
    def inputs(self) -> Sequence[Chain]:
        """The chains whose rows these are."""

    @property
    def stage(self) -> Stage | None:
        """The step over the rows of the inputs, if they are joined."""

    @property
    def before(self) -> Before | None:
        """The demands of the steps of the inputs on the first step after them."""


class Chain(Protocol):
    """A flow, as far as its chain goes."""

    @property
    def source(self) -> Origin:
        """The source of its rows."""

    @property
    def settings(self) -> Settings:
        """The options with which the source is read."""

    @property
    def stages(self) -> Sequence[Stage]:
        """Its stages, in their order."""

    @property
    def transforms(self) -> Sequence[Transform]:
        """The transforms after the last stage."""


def groupings_of(flow: Chain) -> list[Grouping]:
    """The groupings of a flow, without its other stages."""
    return [stage.grouping for stage in flow.stages if isinstance(stage, GroupingStage)]


def last_groupings(flow: Chain) -> list[Grouping]:
    """The groupings whose panes are the rows of a flow."""
    if not flow.stages:
        return [grouping for given in flow.source.inputs for grouping in last_groupings(given)]
    return [stage.grouping for stage in flow.stages[-1:] if isinstance(stage, GroupingStage)]


def stages_of(flow: Chain) -> int:
    """The number of stages of a flow, with those of the flows that its source is made of."""
    own = len(flow.stages) + (flow.source.stage is not None)
    return own + sum(map(stages_of, flow.source.inputs))


def transform_names(flow: Chain) -> dict[int, str]:
    """The name of each transform of a flow, by its identity: its method, and its place among those of this method."""
    counts: dict[str, int] = {}
    names: dict[int, str] = {}
    for transform in _transforms_of(flow):
        if transform.word is not None and id(transform) not in names:
            counts[transform.word] = counts.get(transform.word, 0) + 1
            names[id(transform)] = f"{transform.word} {counts[transform.word]}"
    return names


def _transforms_of(flow: Chain) -> Iterator[Transform]:
    """All transforms of a flow, in the order in which its rows meet them."""
    for one in flow.source.inputs:
        yield from _transforms_of(one)
    for stage in flow.stages:
        yield from stage.transforms
    yield from flow.transforms


def before(flow: Chain) -> Before:
    """The input that a flow is for its next stage."""
    if flow.stages:
        return flow.stages[-1].before()
    return flow.source.before or Before(flow.settings.time, flow.settings.diff)


def leaves_of(flow: Chain) -> Iterator[tuple[Origin, Settings]]:
    """The sources of a flow that are not made of flows, each with the options with which it is read."""
    if not flow.source.inputs:
        yield flow.source, flow.settings
    for given in flow.source.inputs:
        yield from leaves_of(given)


def windows_of(flow: Chain) -> list[Window]:
    """The windows of the rows of a flow; none if they are not known."""
    for step in flow.transforms:
        if isinstance(step, Map) or (isinstance(step, WithColumns) and "window" in step.columns):
            return []
    if not flow.stages:
        return [window for given in flow.source.inputs for window in windows_of(given)]
    return [grouping.window for grouping in last_groupings(flow)]


__all__ = [
    "Chain",
    "before",
    "groupings_of",
    "last_groupings",
    "leaves_of",
    "stages_of",
    "transform_names",
    "windows_of",
]
