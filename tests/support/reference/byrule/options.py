"""The options of a grouping, and what one window holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .composites import node
from .leaves import Node, Row
from .times import MIN_TIME
from .windows import Window

Key = tuple[Any, ...]
Aggregate = Callable[[list[tuple[Row, int]]], Any]


@dataclass(frozen=True)
class Options:
    window: Any
    aggregates: dict[str, Aggregate]
    trigger: Any
    mode: str = "accumulating"
    by: Sequence[str] = ()
    time: str = "ts"
    diff: str | None = None
    allowed_lateness: int = 0
    on_time: str = "always"
    closing: str = "non_empty"
    only_updated: bool = False
    eager_retractions: bool = False
    late: str = "drop"
    granularity: str = "bundle"
    timestamp: str = "end_of_window"
    allow_finish: bool = False
    max_future: int = 86_400_000_000


@dataclass
class Datum:
    """A row that is kept: its time, its weight, and whether it was not before the output watermark (rule 36)."""

    row: Row
    t: int
    weight: int
    in_time: bool


@dataclass
class Live:
    """A window of one key that is in the state (rule 6)."""

    key: Key
    start: int
    end: int
    born: int  # the watermark from before the bundle in which it came to be
    trigger: Node
    contents: list[Datum] = field(default_factory=list)
    fresh: bool = False  # has anything come since the last pane?
    outstanding: list[Row] = field(default_factory=list)  # rows emitted and not retracted
    last: dict[str, Any] | None = None  # the values of the last pane
    index: int = 0
    not_early: int = 0
    reach: int = MIN_TIME  # the latest row that ever came

    @property
    def window(self) -> Window:
        return self.start, self.end

    @property
    def order(self) -> Any:
        return order(self.key, self.window)


def order(key: Key, window: Window) -> Any:
    """rule 16: by (key, start, end); null keys come first (D2)."""
    return [(part is not None, part if part is not None else 0) for part in key], window


def new_window(key: Key, window: Window, watermark: int, spec: Any) -> Live:
    return Live(key, *window, watermark, node(spec))
