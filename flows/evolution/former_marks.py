"""The watermarks that the sources of a former flow had reached, for those of the flow as it is now.

Guarded by tests/flows/evolution/test_evolution.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...panes.state.seed import Seed, SeedStep
from ...panes.watermarks.stored_watermarks import OF_A_STEP, together
from ...panes.watermarks.watermarks import Watermarks
from ..fingerprint.differences import number_of
from ..graph import Graph
from ..seeds import step_under
from .plan import Planned


def former_marks(former: Seed, graph: Graph) -> list[Watermarks | None]:
    """The watermarks of each feed of a source, of the same place if there are as many, or else of the same name.

    A new source has none.
    """
    was = [one for step in sorted(former.steps, key=lambda one: number_of(one.made_by)) for one in _inputs(step)]
    names = [feed.leaf.settings.name for step in graph.steps for feed in step.feeds if feed.leaf is not None]
    if len(was) == len(names):
        return [marks for _, marks in was]
    if len(was) == 1:  # a flow of one source does not name it
        return [was[0][1], *[None] * (len(names) - 1)]
    return [dict(was).get(name) for name in names]


def closed_windows(former: Seed, plan: Planned) -> dict[int, int]:
    """For each step, the end of the last windows that have expired and that its lateness would let in again."""
    before = {number_of(step.made_by): step for step in former.steps}
    places = {one.step.number: (before.get(one.step.number), one.made_by) for one in plan.steps}
    steps = {number: step_under(step, made_by) for number, (step, made_by) in places.items() if step is not None}
    return {number: max(piece.closed for piece in step.pieces) for number, step in steps.items()}


def processing_time(former: Seed) -> int:
    """The processing time that the former flow has come to."""
    return max(piece.processing_time for step in former.steps for piece in step.pieces)


def _inputs(step: SeedStep) -> Iterator[tuple[str | None, Watermarks]]:
    """The name and the watermarks of each input of a step that is a source."""
    marks = step.pieces[0].marks
    strategies = marks.get("strategies", [marks.get("strategy")])
    texts = step.made_by.get("inputs", [""] * len(strategies))
    joined = together([piece.marks for piece in step.pieces], [Watermarks() for _ in strategies], strategies)
    for strategy, text, one in zip(strategies, texts, joined.inputs, strict=True):
        if strategy != OF_A_STEP:
            yield text.partition("(")[0].rpartition(" ")[2] or None, one


__all__ = ["closed_windows", "former_marks", "processing_time"]
