"""A drawing of a flow: its sources and its steps as boxes from top to bottom, as a picture in HTML.

It has the words of `explain`. Lines and texts have the colour of the page, so that it reads in a dark notebook too.

Guarded by tests/flows/test_drawing.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape

from .description import FlowWords, Words, words_of
from .flow import Flow

MOST = 76
"""The characters of a line that are drawn; the whole line shows below the pointer."""

_LETTER, _LINE, _EDGE, _GAP = 7.3, 16, 8, 22
"""The width of a letter, the height of a line, the room inside a box, and that between two boxes."""


def drawing(flow: Flow, how: str) -> str:
    """The picture of a flow, and a line below it that says how it runs."""
    words = words_of(flow)
    chain = Chain.of(words)
    label = escape("; ".join(line.strip() for line in words.lines()), quote=True)
    shapes = "".join(chain.shapes(1, 1))
    return (
        f'<div style="overflow-x: auto"><svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}" '
        f'width="{chain.width + 2:.0f}" height="{chain.height + 2:.0f}" font-family="monospace" font-size="12" '
        f'fill="currentColor" stroke="none">{shapes}</svg></div><p>{escape(how)}</p>'
    )


@dataclass(frozen=True)
class Box:
    """A source or a step as a box."""

    words: Words

    @property
    def lines(self) -> list[str]:
        """The whole lines of the box."""
        return [f"{self.words.name}: {self.words.line}", *self.words.below]

    @property
    def width(self) -> float:
        return 2 * _EDGE + _LETTER * max(len(_short(line)) for line in self.lines)

    @property
    def height(self) -> float:
        return 2 * _EDGE + _LINE * len(self.lines)

    def shapes(self, middle: float, top: float) -> Iterator[str]:
        """The box around this middle; the line around a step that keeps state is thick."""
        left, stroke = middle - self.width / 2, 2 if self.words.keeps_state else 1
        yield (
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{self.width:.1f}" height="{self.height:.1f}" rx="4" '
            f'fill="none" stroke="currentColor" stroke-width="{stroke}"/>'
        )
        for place, line in enumerate(self.lines):
            y = top + _EDGE + _LINE * (place + 0.8)
            whole = f"<title>{escape(line.strip())}</title>" if _short(line) != line else ""
            text = escape(_short(line)).replace("  ", "\u00a0\u00a0")
            yield f'<text x="{left + _EDGE:.1f}" y="{y:.1f}">{whole}{text}</text>'


@dataclass(frozen=True)
class Chain:
    """The boxes of a flow, one below the other; the flows that its source is made of stand side by side above."""

    inputs: Sequence[Chain]
    boxes: Sequence[Box]

    @classmethod
    def of(cls, words: FlowWords) -> Chain:
        """The boxes of a flow that is told in words."""
        source = replace(words.source, below=(*words.source.below, *words.watermark))
        return cls([cls.of(one) for one in words.inputs], [Box(one) for one in (source, *words.steps)])

    @property
    def _inputs_width(self) -> float:
        return sum(one.width for one in self.inputs) + _GAP * max(len(self.inputs) - 1, 0)

    @property
    def width(self) -> float:
        """The width of the whole."""
        return max(self._inputs_width, *(box.width for box in self.boxes))

    @property
    def height(self) -> float:
        """The height of the whole."""
        above = max((one.height + _GAP for one in self.inputs), default=0)
        return above + sum(box.height for box in self.boxes) + _GAP * (len(self.boxes) - 1)

    def shapes(self, left: float, top: float) -> Iterator[str]:
        """All boxes, and the arrows between them, with the upper left corner here."""
        middle, at = left + self.width / 2, left + (self.width - self._inputs_width) / 2
        begin = top + max((one.height + _GAP for one in self.inputs), default=0)
        for one in self.inputs:
            yield from one.shapes(at, top)
            yield from _arrow(at + one.width / 2, top + one.height, middle, begin)
            at += one.width + _GAP
        for place, box in enumerate(self.boxes):
            if place:
                yield from _arrow(middle, begin - _GAP, middle, begin)
            yield from box.shapes(middle, begin)
            begin += box.height + _GAP


def _arrow(x: float, y: float, to_x: float, to_y: float) -> Iterator[str]:
    """An arrow down: first straight, and then to the side in the gap above its end."""
    bend = to_y - _GAP
    yield (
        f'<path d="M{x:.1f} {y:.1f}V{bend:.1f}L{to_x:.1f} {to_y - 5:.1f}" fill="none" stroke="currentColor"/>'
        f'<path d="M{to_x - 4:.1f} {to_y - 7:.1f}h8l-4 7z"/>'
    )


def _short(line: str) -> str:
    """A line that is not too long to be drawn."""
    return line if len(line) <= MOST else f"{line[: MOST - 3]}..."


__all__ = ["drawing"]
