"""Watermark strategies: they make watermark reports from the rows of a source."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..combiners.rows.columns import flat
from ..errors import InvalidArgument, TypeMismatch, require_column
from ..windows import Span, span, time_column
from ..windows.times import MIN_TIME
from .shard.parcels import MARKS


@dataclass(frozen=True)
class Strategy(ABC):
    """Makes watermark reports from the rows that a task reads; a value."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the strategy reads besides the time column."""
        return ()

    @property
    def idle(self) -> Span | None:
        """The processing time without a row after which a source is idle; None if it never is."""
        return None

    def check(self, schema: pa.Schema) -> None:
        """Raise unless the schema has the columns, in types that fit."""
        for name in self.columns:
            require_column(name, schema.names, f"watermark={self!r}")

    @abstractmethod
    def said(self, rows: pa.Table, times: np.ndarray) -> tuple[pa.Array | None, np.ndarray]:
        """The source of each row (None: there is only one), and the watermark that the row implies, or MIN_TIME."""

    def marks(self, rows: pa.Table, times: np.ndarray, at: int | np.ndarray) -> pa.Table:
        """The watermark reports of rows: for each source every time that is after all before it, and when it came."""
        sources, marks = self.said(rows, times)
        ats = np.full(len(marks), at) if isinstance(at, int) else at
        if sources is None:
            codes, names = np.zeros(len(marks), np.int64), pa.nulls(1, pa.string())
        else:
            encoded = sources.cast(pa.string()).dictionary_encode(null_encoding="encode")
            codes, names = np.asarray(encoded.indices).astype(np.int64), encoded.dictionary
        order = np.lexsort((ats, codes))
        codes, marks, ats = codes[order], marks[order], ats[order]
        best = _running_max(codes, marks)
        last = np.ones(len(order), np.bool_)  # row of a source at a processing time
        last[:-1] = (codes[1:] != codes[:-1]) | (ats[1:] != ats[:-1])
        codes, best, ats = codes[last], best[last], ats[last]
        advances = np.ones(len(codes), np.bool_)
        if self.idle is None:
            advances[1:] = (codes[1:] != codes[:-1]) | (best[1:] > best[:-1])
        reached = pa.array(best[advances], mask=best[advances] == MIN_TIME)
        reports = [names.take(pa.array(codes[advances])), reached, pa.array(ats[advances], pa.int64())]
        clock = [pa.nulls(1, pa.string()), pa.nulls(1, pa.int64()), pa.array(ats.max(initial=MIN_TIME, keepdims=True))]
        return pa.concat_tables([pa.table(reports, schema=MARKS), pa.table(clock, schema=MARKS)])


def _running_max(codes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The running maximum within each run of equal codes."""
    if len(codes) == 0:
        return values
    out = values.copy()
    first = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
    for a, b in zip(first, [*first[1:], len(codes)], strict=True):  # one run a source, and sources are few
        np.maximum.accumulate(out[a:b], out=out[a:b])
    return out


@dataclass(frozen=True)
class BoundedLag(Strategy):
    """The watermark is the latest event time seen, less `lag`.

    >>> import uncombine as uc
    >>> uc.BoundedLag("10 minutes")
    BoundedLag(lag='10 minutes')
    """

    lag: Span | str

    def __post_init__(self) -> None:
        object.__setattr__(self, "lag", _not_negative(self.lag, "BoundedLag(lag=)"))

    def said(self, rows: pa.Table, times: np.ndarray) -> tuple[pa.Array | None, np.ndarray]:
        return None, _behind(times, span(self.lag))


@dataclass(frozen=True)
class Monotonic(Strategy):
    """Rows come in the order of their event times, so the watermark is the latest of them.

    >>> import uncombine as uc
    >>> uc.Monotonic()
    Monotonic()
    """

    def said(self, rows: pa.Table, times: np.ndarray) -> tuple[pa.Array | None, np.ndarray]:
        return None, times


@dataclass(frozen=True)
class PerSource(Strategy):
    """Each source, named by a column, has its own watermark: its latest event time, less `lag`. The least counts.

    A source without rows for `idle_after` of processing time is idle and no longer holds the watermark back.

    >>> import uncombine as uc
    >>> uc.PerSource("device", lag="1 minute", idle_after="1 hour")
    PerSource(column='device', lag='1 minute', idle_after='1 hour')
    """

    column: str
    lag: Span | str = "0 seconds"
    idle_after: Span | str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "lag", _not_negative(self.lag, "PerSource(lag=)"))
        if self.idle_after is not None:
            object.__setattr__(self, "idle_after", _not_negative(self.idle_after, "PerSource(idle_after=)"))

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def idle(self) -> Span | None:
        return None if self.idle_after is None else span(self.idle_after)

    def said(self, rows: pa.Table, times: np.ndarray) -> tuple[pa.Array | None, np.ndarray]:
        return flat(rows[self.column]), _behind(times, span(self.lag))


@dataclass(frozen=True)
class Punctuated(Strategy):
    """A row with a time in `column` reports that no row before that time follows (of its source, if one is named).

    A row that only carries such a report has no event time, and does not count as a bad row.

    >>> import uncombine as uc
    >>> uc.Punctuated("complete_until")
    Punctuated(column='complete_until', source=None, idle_after=None)
    """

    column: str
    source: str | None = None
    idle_after: Span | str | None = None

    def __post_init__(self) -> None:
        if self.idle_after is not None:
            object.__setattr__(self, "idle_after", _not_negative(self.idle_after, "Punctuated(idle_after=)"))

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,) if self.source is None else (self.column, self.source)

    @property
    def idle(self) -> Span | None:
        return None if self.idle_after is None else span(self.idle_after)

    def check(self, schema: pa.Schema) -> None:
        super().check(schema)
        kind = schema.field(self.column).type
        if not pa.types.is_timestamp(kind):
            raise TypeMismatch(f"watermark={self!r} takes a timestamp column, but {self.column!r} is {kind}: cast it")

    def said(self, rows: pa.Table, times: np.ndarray) -> tuple[pa.Array | None, np.ndarray]:
        marks, valid = time_column(flat(rows[self.column]))
        sources = None if self.source is None else flat(rows[self.source])
        return sources, np.where(valid, marks, MIN_TIME)


@dataclass(frozen=True)
class IngressTime(Strategy):
    """The event time of a row is the processing time at which it arrives, and so is the watermark.

    >>> import uncombine as uc
    >>> uc.IngressTime()
    IngressTime()
    """

    def said(self, rows: pa.Table, times: np.ndarray) -> tuple[pa.Array | None, np.ndarray]:
        return None, times


def strategy_of(value: object) -> Strategy:
    """The strategy for a value of `watermark=`.

    >>> from uncombine.panes.watermark_strategies import strategy_of
    >>> strategy_of("10 minutes")
    BoundedLag(lag='10 minutes')
    """
    if isinstance(value, Strategy):
        return value
    if isinstance(value, str | Span):
        return BoundedLag(value)
    raise InvalidArgument(f"watermark= takes a strategy such as BoundedLag('10 minutes'), but was given {value!r}")


def _behind(times: np.ndarray, lag: Span) -> np.ndarray:
    return np.where(times > MIN_TIME + int(lag), times - int(lag), MIN_TIME)


def _not_negative(value: Span | str, what: str) -> Span:
    length = span(value)
    if length < 0:
        raise InvalidArgument(f"{what} must not be negative, but is {length!r}")
    return length
