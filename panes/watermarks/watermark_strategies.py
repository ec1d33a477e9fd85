"""Watermark strategies: they make watermark reports from the rows of a source.

Guarded by tests/panes/watermarks/test_watermark_strategies.py and tests/sparkops/test_strategies.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import flat
from ...errors import InvalidArgument, TypeMismatch
from ...windows import Span, span, time_column
from ...windows.times import MIN_TIME
from .strategy import WatermarkStrategy


@dataclass(frozen=True, repr=False)
class BoundedLag(WatermarkStrategy):
    """The watermark is the latest event time seen, less `lag`.

    A source without rows for `idle_after` of processing time is idle: beside others, as in a union, it no longer holds
    the watermark back.

    >>> import uncombine as uc
    >>> uc.BoundedLag("10 minutes"), uc.BoundedLag("10 minutes", idle_after="1 hour")
    (BoundedLag(lag='10 minutes'), BoundedLag(lag='10 minutes', idle_after='1 hour'))
    """

    lag: Span | str
    idle_after: Span | str | None = None
    _unsaid = ("idle_after",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lag", _not_negative(self.lag, "BoundedLag(lag=)"))
        _check_idle_after(self)

    def reports(self, rows: pa.Table, times: np.ndarray) -> tuple[pa.Array | None, np.ndarray]:
        return None, _behind(times, span(self.lag))


@dataclass(frozen=True, repr=False)
class Monotonic(WatermarkStrategy):
    """Rows come in the order of their event times, so the watermark is the latest of them.

    A source without rows for `idle_after` of processing time is idle, as in `BoundedLag`.

    >>> import uncombine as uc
    >>> uc.Monotonic()
    Monotonic()
    """

    idle_after: Span | str | None = None
    _unsaid = ("idle_after",)

    def __post_init__(self) -> None:
        _check_idle_after(self)

    def reports(self, rows: pa.Table, times: np.ndarray) -> tuple[pa.Array | None, np.ndarray]:
        return None, times


@dataclass(frozen=True, repr=False)
class PerSource(WatermarkStrategy):
    """Each source, named by a column, has its own watermark: its latest event time, less `lag`. The least counts.

    A source without rows for `idle_after` of processing time is idle and no longer holds the watermark back.
    The `sources` that are named hold the watermark before their first row, too.

    >>> import uncombine as uc
    >>> uc.PerSource("device", lag="1 minute", idle_after="1 hour")
    PerSource(column='device', lag='1 minute', idle_after='1 hour')
    >>> uc.PerSource("device", sources=["d1", "d2"])
    PerSource(column='device', lag='0 seconds', idle_after=None, sources=('d1', 'd2'))
    """

    column: str
    lag: Span | str = "0 seconds"
    idle_after: Span | str | None = None
    sources: Sequence[str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "lag", _not_negative(self.lag, "PerSource(lag=)"))
        _check_idle_after(self)
        object.__setattr__(self, "sources", _names(self.sources, "PerSource(sources=)"))

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def reports(self, rows: pa.Table, times: np.ndarray) -> tuple[pa.Array | None, np.ndarray]:
        return flat(rows[self.column]), _behind(times, span(self.lag))


@dataclass(frozen=True, repr=False)
class Punctuated(WatermarkStrategy):
    """A row with a time in `column` reports that no row before that time follows (of its source, if one is named).

    A row that only carries such a report has no event time, and does not count as a bad row.
    Where sources are named by a column `source`, the `sources` that are named hold the watermark before their first
    report. A report of the source `for_all` counts for all sources, also for those that have sent no row yet.

    >>> import uncombine as uc
    >>> uc.Punctuated("complete_until")
    Punctuated(column='complete_until', source=None, idle_after=None)
    >>> each = uc.Punctuated(
    ...     "complete_until", source="partition", sources=["p1", "p2"], for_all="*"
    ... )
    >>> each.sources, each.for_all
    (('p1', 'p2'), '*')
    """

    column: str
    source: str | None = None
    idle_after: Span | str | None = None
    sources: Sequence[str] | None = None
    for_all: str | None = None

    def __post_init__(self) -> None:
        _check_idle_after(self)
        object.__setattr__(self, "sources", _names(self.sources, "Punctuated(sources=)"))
        for name in ("sources", "for_all"):
            if getattr(self, name) is not None and self.source is None:
                raise InvalidArgument(
                    f"Punctuated({name}=) names sources, so it needs source=, the column that has them"
                )

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,) if self.source is None else (self.column, self.source)

    def check(self, schema: pa.Schema) -> None:
        super().check(schema)
        kind = schema.field(self.column).type
        if not pa.types.is_timestamp(kind):
            raise TypeMismatch(f"watermark={self!r} takes a timestamp column, but {self.column!r} is {kind}: cast it")

    def reports(self, rows: pa.Table, times: np.ndarray) -> tuple[pa.Array | None, np.ndarray]:
        marks, valid = time_column(flat(rows[self.column]))
        sources = None if self.source is None else flat(rows[self.source])
        return sources, np.where(valid, marks, MIN_TIME)


@dataclass(frozen=True, repr=False)
class IngressTime(WatermarkStrategy):
    """The event time of a row is the processing time at which it arrives, and so is the watermark.

    >>> import uncombine as uc
    >>> uc.IngressTime()
    IngressTime()
    """

    def reports(self, rows: pa.Table, times: np.ndarray) -> tuple[pa.Array | None, np.ndarray]:
        return None, times


@dataclass(frozen=True, repr=False)
class ProcessingTime(WatermarkStrategy):
    """The watermark is the processing time, less `lag`, whether rows come or not.

    >>> import uncombine as uc
    >>> uc.ProcessingTime(lag="5 seconds")
    ProcessingTime(lag='5 seconds')
    """

    lag: Span | str = "0 seconds"

    def __post_init__(self) -> None:
        object.__setattr__(self, "lag", _not_negative(self.lag, "ProcessingTime(lag=)"))

    @property
    def clock_lag(self) -> Span:
        return span(self.lag)

    def reports(self, rows: pa.Table, times: np.ndarray) -> tuple[pa.Array | None, np.ndarray]:
        return None, np.full(len(times), MIN_TIME)


@dataclass(frozen=True, repr=False)
class EachBatch(WatermarkStrategy):
    """In each bundle the watermark runs from the beginning to the end of time: what its rows say is shown at once.

    No row is late and no window expires. `watermark="each_batch"` says the same.

    >>> import uncombine as uc
    >>> uc.EachBatch()
    EachBatch()
    """

    def reports(self, rows: pa.Table, times: np.ndarray) -> tuple[pa.Array | None, np.ndarray]:
        return None, np.full(len(times), MIN_TIME)


def strategy_of(value: object) -> WatermarkStrategy:
    """The strategy for a value of `watermark=`.

    >>> from uncombine.panes.watermarks.watermark_strategies import strategy_of
    >>> strategy_of("10 minutes")
    BoundedLag(lag='10 minutes')
    """
    if isinstance(value, WatermarkStrategy):
        if re.search(r" at 0x[0-9a-f]+", repr(value)):
            raise InvalidArgument(
                f"checkpoints name a strategy by its repr, and that of {value!r} differs from run to run: give "
                f"{type(value).__name__} fields with a fixed repr, or a __repr__"
            )
        return value
    if value == "each_batch":
        return EachBatch()
    if isinstance(value, str | Span):
        return BoundedLag(value)
    raise InvalidArgument(f"watermark= takes a strategy such as BoundedLag('10 minutes'), but was given {value!r}")


def _names(value: Sequence[str] | None, what: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    names = () if isinstance(value, str) or not isinstance(value, Sequence) else tuple(map(str, value))
    if not names:
        raise InvalidArgument(f"{what} takes a list of names such as ['a', 'b'], but was given {value!r}")
    return tuple(dict.fromkeys(names))


def _behind(times: np.ndarray, lag: Span) -> np.ndarray:
    return np.where(times > MIN_TIME + int(lag), times - int(lag), MIN_TIME)


def _check_idle_after(strategy: BoundedLag | Monotonic | PerSource | Punctuated) -> None:
    """Take the length of time after which a source is idle, which may be a text."""
    if strategy.idle_after is not None:
        what = f"{type(strategy).__name__}(idle_after=)"
        object.__setattr__(strategy, "idle_after", _not_negative(strategy.idle_after, what))


def _not_negative(value: Span | str, what: str) -> Span:
    length = span(value)
    if length < 0:
        raise InvalidArgument(f"{what} must not be negative, but is {length!r}")
    return length


__all__ = [
    "BoundedLag",
    "EachBatch",
    "IngressTime",
    "Monotonic",
    "PerSource",
    "ProcessingTime",
    "Punctuated",
    "WatermarkStrategy",
    "strategy_of",
]
