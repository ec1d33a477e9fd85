"""The watermarks that the sources of a former flow had reached, for those of the flow as it is now.

Guarded by tests/flows/evolution/test_evolution.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...panes.state.seed import Seed, SeedStep
from ...panes.watermarks.stored_watermarks import OF_A_STEP, together
from ...panes.watermarks.watermarks import Watermarks
from ..fingerprint.differences import number_of
from ..graph import Graph
from ..seeds import step_under
from .plan import Planned


def former_marks(former: Seed, graph: Graph) -> list[Watermarks | None]:
    """The watermarks of each feed of a source: of the same name, or of the same place where sources have no names.

    A new source has none.
    """
    was = [one for step in sorted(former.steps, key=lambda one: number_of(one.made_by)) for one in _inputs(step)]
    names = [feed.leaf.settings.name for step in graph.steps for feed in step.feeds if feed.leaf is not None]
    return [None if place is None else was[place][1] for place in same_sources([name for name, _ in was], names)]


def former_positions(former: Seed, graph: Graph) -> tuple[str, ...]:
    """The positions of the former flow for the sources of the flow as it is now; a dash for a new one."""
    was = [name for step in sorted(former.steps, key=lambda one: number_of(one.made_by)) for name, _ in _inputs(step)]
    names = [feed.leaf.settings.name for step in graph.steps for feed in step.feeds if feed.leaf is not None]
    if len(was) != len(former.positions):  # sources without steps that have had rows
        return former.positions
    return tuple("-" if place is None else former.positions[place] for place in same_sources(was, names))


def same_sources(was: Sequence[str | None], now: Sequence[str | None]) -> list[int | None]:
    """The place before of each source: by its name, or by its place where names do not tell.

    >>> same_sources(["a", "b"], ["b", "a", "c"]), same_sources([None], ["a"])
    ([1, 0, None], [0])
    """
    if len(was) == 1 or None in was or None in now or len(set(was)) < len(was):  # one source alone is not named
        return [place if place < len(was) else None for place in range(len(now))]
    places = {name: place for place, name in enumerate(was)}
    return [places.get(name) for name in now]


def closed_windows(former: Seed, plan: Planned) -> dict[int, int]:
    """For the last step, the end of the last windows that have expired and that its lateness would let in again.

    They stay as they were shown. Steps before it show nobody their windows, so the last one needs all of them; and
    windows of another kind have not expired.
    """
    last = plan.steps[-1]
    was = next((step for step in former.steps if number_of(step.made_by) == last.step.number), None)
    if was is None or not plan.same_windows:
        return {}
    return {last.step.number: max(piece.closed for piece in step_under(was, last.made_by).pieces)}


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
            yield input_name(text), one


def input_name(text: str) -> str | None:
    """The name of a source, of the text in which a fingerprint has an input; None if it has none.

    >>> input_name("source clicks(ts, user)")
    'clicks'
    """
    return text.partition("(")[0].rpartition(" ")[2] or None


__all__ = ["closed_windows", "former_marks", "former_positions", "input_name", "processing_time", "same_sources"]
