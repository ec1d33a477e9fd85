"""How a source's rows tell how far event time has come: watermark strategies."""

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
    """What a task tells of the watermark, from the rows that it saw; a value."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads besides the time column."""
        return ()

    @property
    def idle(self) -> Span | None:
        """After how much processing time without a row a source no longer holds the watermark back."""
        return None

    def check(self, schema: pa.Schema) -> None:
        """Raise unless the columns are there and fit."""
        for name in self.columns:
            require_column(name, schema.names, f"watermark={self!r}")

    @abstractmethod
    def said(self, rows: pa.Table, times: np.ndarray) -> tuple[pa.Array | None, np.ndarray]:
        """For each row its source (None: there is but one) and the watermark that it stands for, MIN_TIME if none."""

    def marks(self, rows: pa.Table, times: np.ndarray, at: int | np.ndarray) -> pa.Table:
        """What is to be told: for each source the watermarks that are ahead of all before, with their times."""
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
        last = np.ones(len(order), np.bool_)  # of the rows of one source and one instant
        last[:-1] = (codes[1:] != codes[:-1]) | (ats[1:] != ats[:-1])
        codes, best, ats = codes[last], best[last], ats[last]
        news = np.ones(len(codes), np.bool_)
        if self.idle is None:
            news[1:] = (codes[1:] != codes[:-1]) | (best[1:] > best[:-1])
        told = pa.array(best[news], mask=best[news] == MIN_TIME)
        marks_told = [names.take(pa.array(codes[news])), told, pa.array(ats[news], pa.int64())]
        clock = [pa.nulls(1, pa.string()), pa.nulls(1, pa.int64()), pa.array(ats.max(initial=MIN_TIME, keepdims=True))]
        return pa.concat_tables([pa.table(marks_told, schema=MARKS), pa.table(clock, schema=MARKS)])


def _running_max(codes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The greatest value so far in each run of equal codes."""
    if len(codes) == 0:
        return values
    out = values.copy()
    first = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
    for a, b in zip(first, [*first[1:], len(codes)], strict=True):  # a run is a source, and sources are few
        np.maximum.accumulate(out[a:b], out=out[a:b])
    return out


@dataclass(frozen=True)
class BoundedLag(Strategy):
    """Rows come at most `lag` of event time behind the latest row seen.

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
    """Rows come in the order of their times, so that the watermark is the latest of them.

    >>> import uncombine as uc
    >>> uc.Monotonic()
    Monotonic()
    """

    def said(self, rows: pa.Table, times: np.ndarray) -> tuple[pa.Array | None, np.ndarray]:
        return None, times


@dataclass(frozen=True)
class PerSource(Strategy):
    """Each source, named by a column, is at most `lag` behind itself; the watermark is the least over the sources.

    A source without rows for `idle_after` of processing time is not waited for any longer.

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
    """A row with a time in `column` says that no row before that time will follow (of its source, if one is named).

    A row that has nothing but this to say has no event time, and is no bad row.

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
            raise TypeMismatch(f"watermark={self!r} takes a timestamp column, and {self.column!r} is {kind}: cast it")

    def said(self, rows: pa.Table, times: np.ndarray) -> tuple[pa.Array | None, np.ndarray]:
        marks, valid = time_column(flat(rows[self.column]))
        sources = None if self.source is None else flat(rows[self.source])
        return sources, np.where(valid, marks, MIN_TIME)


@dataclass(frozen=True)
class IngressTime(Strategy):
    """The event time of a row is when it came in, and so is the watermark.

    >>> import uncombine as uc
    >>> uc.IngressTime()
    IngressTime()
    """

    def said(self, rows: pa.Table, times: np.ndarray) -> tuple[pa.Array | None, np.ndarray]:
        return None, times


def strategy_of(value: object) -> Strategy:
    """The strategy that a user means.

    >>> from uncombine.panes.watermark_strategies import strategy_of
    >>> strategy_of("10 minutes")
    BoundedLag(lag='10 minutes')
    """
    if isinstance(value, Strategy):
        return value
    if isinstance(value, str | Span):
        return BoundedLag(value)
    raise InvalidArgument(f"watermark= takes a strategy such as BoundedLag('10 minutes'), not {value!r}")


def _behind(times: np.ndarray, lag: Span) -> np.ndarray:
    return np.where(times > MIN_TIME + int(lag), times - int(lag), MIN_TIME)


def _not_negative(value: Span | str, what: str) -> Span:
    length = span(value)
    if length < 0:
        raise InvalidArgument(f"{what} is {length!r}, and it cannot be negative")
    return length
