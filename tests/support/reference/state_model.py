"""The input, the state and the output of the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .trigger_model import MIN_TIME

FIRST_YEAR = -62_135_596_800_000_000
LAST_YEAR = 253_402_300_799_999_999

Row = dict[str, Any]
Key = tuple[Any, ...]
Span = tuple[int, int]


@dataclass(frozen=True)
class Options:
    """The options of a grouping; spans of time are microseconds."""

    window: Any
    aggregates: dict[str, Callable[[list[tuple[Row, int]]], Any]]
    trigger: Any = None
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
class Value:
    """A value that was emitted and not retracted."""

    window: Span
    values: Row
    event_time: int
    pane: Row


@dataclass
class Live:
    """A window that is held."""

    key: Key
    start: int
    end: int
    trigger: Any
    born_late: bool
    rows: list[tuple[Row, int]] = field(default_factory=list)
    fresh: bool = False
    index: int = 0
    nonspeculative: int = 0
    on_time_given: bool = False
    outstanding: list[Value] = field(default_factory=list)
    earliest: int | None = None
    latest: int | None = None
    reach: int = MIN_TIME
    """The latest row that ever came."""
    came: list[Row] = field(default_factory=list)


@dataclass
class Result:
    """The output of the model."""

    rows: list[Row]
    dropped: int
    finished: int
    unassigned: int
    bad: int
    output_watermarks: list[int]
    live: int


@dataclass
class Sources:
    """Rule 10, without idleness."""

    at: dict[str | None, int] = field(default_factory=dict)
    least: int = MIN_TIME

    def move(self, reports: Sequence[tuple[int, str | None]]) -> None:
        """All reports of one bundle, which are heard at once."""
        for t, source in reports:
            self.at[source] = max(t, self.at.get(source, MIN_TIME))
        if self.at:
            self.least = max(self.least, min(self.at.values()))

    def percentile(self, percent: float) -> int:
        times = list(self.at.values())
        reached = [t for t in times if sum(other >= t for other in times) * 100 >= percent * len(times)]
        return max([self.least, *reached])
