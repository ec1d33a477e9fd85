"""`LookBack`: a stretch of time, or a number of rows, that ends at a row, and the first instant of it.

The first instant never goes back as rows go on in time: the ranges of rows that the engine adds up rely on it. So
a month before a date that its month does not have begins with the next month (a month before 31 March is 1 March).

Guarded by tests/lookbacks/test_lookback.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InvalidArgument, TypeMismatch, nearest
from ..windows.spans import Length, Span, positive, span
from ..windows.times import FIRST, LAST, MIN_TIME

CLOSED = ("right", "left", "both", "neither")
_DAY = 86_400_000_000
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_CALENDAR = re.compile(r"\s*(?:(\d+)\s*)?(month|quarter|year)s?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class LookBack:
    """One look-back: a length of time, or of months, or a number of rows, or all that came before.

    >>> import numpy as np
    >>> LookBack.of("1 minute").starts(np.array([90_000_000])) - 30_000_000
    array([1])
    """

    micros: int = 0
    months: int = 0
    rows: int = 0
    closed: str = "right"
    coarse: int = 1
    """The microseconds to whole ones of which the first instant is cut down."""

    @classmethod
    def of(cls, period: Any, closed: str = "right", coarse: Length | None = None) -> LookBack:
        """The look-back of a period as users write it; None is all that came before."""
        whole = 1 if coarse is None else int(positive(coarse, "rolling", "coarse"))
        if period is None:
            return cls(closed=closed, coarse=whole)
        if isinstance(period, str) and (match := _CALENDAR.fullmatch(period)) is not None:
            months = int(match[1] or 1) * _MONTHS[match[2].lower()]
            if not 0 < months <= 12 * 10_000:
                raise InvalidArgument(f"rolling(period): a period has 1 month to 10,000 years, but is {period!r}")
            return cls(months=months, closed=closed, coarse=whole)
        if not isinstance(period, Length):
            raise TypeMismatch(
                f"rolling(period) takes a length of time such as '7 days' or '1 month', or a dict of names and "
                f"lengths, but was given {period!r}"
            )
        return cls(micros=int(positive(span(period), "rolling", "period")), closed=closed, coarse=whole)

    @property
    def ever(self) -> bool:
        """True if nothing ever leaves."""
        return not (self.micros or self.months or self.rows)

    @property
    def words(self) -> str:
        """The look-back in words.

        >>> LookBack.of("1 hour").words, LookBack.of("1 quarter").words, LookBack(rows=3).words
        ('1 hour', '3 months', '3 rows')
        """
        if self.ever:
            return "all that came before"
        if self.rows:
            return f"{self.rows} row{'s' * (self.rows > 1)}"
        length = f"{self.months} month{'s' * (self.months > 1)}" if self.months else f"{Span(self.micros)}"
        return length if self.coarse == 1 else f"{length}, cut to whole {Span(self.coarse)}"

    @property
    def first_open(self) -> bool:
        """True if a row at the first instant is left out."""
        return self.closed in ("right", "neither")

    @property
    def sees_ties(self) -> bool:
        """True if a row sees itself, and all rows of its key at its time."""
        return self.closed in ("right", "both")

    @property
    def longest(self) -> int:
        """The microseconds after which a row has left every look-back of this length."""
        spans = (self.micros, self.months * 31 * _DAY, self.coarse)
        return sum(min(one, LAST - FIRST) for one in spans) + 1

    def starts(self, times: np.ndarray) -> np.ndarray:
        """The first instant that is seen from each time, in microseconds."""
        if self.ever:
            return np.full(len(times), MIN_TIME)
        first = _months_before(times, self.months) if self.months else times - min(self.micros, LAST - FIRST)
        first = np.maximum(first, FIRST - _DAY) + self.first_open
        return first if self.coarse == 1 else first - first % self.coarse


def lookbacks_of(period: Any, rows: int | None, closed: str, coarse: Length | None) -> dict[str, LookBack]:
    """The look-backs by their names; a single one has the name ""."""
    if closed not in CLOSED:
        raise InvalidArgument(f"rolling(closed={closed!r}): {nearest(str(closed), CLOSED)}")
    if (period is None) == (rows is None):
        raise InvalidArgument(
            "rolling() takes exactly one of period= and rows=: write period='7 days' or rows=100, or "
            "period={'ever': None} for all that came before"
        )
    if rows is not None:
        if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 1:
            raise InvalidArgument(f"rolling(rows=) takes a number of rows from 1 on, but was given {rows!r}")
        if closed != "right" or coarse is not None:
            raise InvalidArgument("rolling(rows=) counts rows, so it takes no closed= and no coarse=: use period=")
        return {"": LookBack(rows=int(rows))}
    if not isinstance(period, Mapping):
        return {"": LookBack.of(period, closed, coarse)}
    if not period or not all(isinstance(name, str) and name for name in period):
        raise InvalidArgument(
            f"rolling(period) takes a dict of names and lengths such as {{'h1': '1 hour', 'ever': None}}, but was "
            f"given {period!r}"
        )
    return {name: LookBack.of(length, closed, coarse) for name, length in period.items()}


def _months_before(times: np.ndarray, months: int) -> np.ndarray:
    """The instants some months before, in UTC; the beginning of the next month where the date does not exist."""
    instants = np.clip(times, FIRST, LAST).view("datetime64[us]")
    month = instants.astype("datetime64[M]")
    into = instants - month.astype("datetime64[us]")
    before = np.maximum(month - np.timedelta64(months, "M"), np.datetime64("0000-12", "M"))
    moved = before.astype("datetime64[us]") + into
    return np.minimum(moved, (before + np.timedelta64(1, "M")).astype("datetime64[us]")).view(np.int64)


__all__ = ["CLOSED", "LookBack", "lookbacks_of"]
