"""Rolling aggregates a second time, from the rules: a loop over rows in a loop over rows, in plain Python."""

from __future__ import annotations

import calendar
import datetime as dt
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from every import differing

import uncombine as uc

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MICRO = dt.timedelta(microseconds=1)


def months_before(at: dt.datetime, months: int) -> dt.datetime:
    """The same date and clock time some months before, or the next midnight after a month that is too short."""
    month = at.year * 12 + at.month - 1 - months
    year, month = month // 12, month % 12 + 1
    if at.day <= calendar.monthrange(year, month)[1]:
        return at.replace(year=year, month=month)
    return dt.datetime(year + month // 12, month % 12 + 1, 1, tzinfo=at.tzinfo)


def first_instant(at: dt.datetime, period: Any, closed: str, coarse: dt.timedelta | None) -> dt.datetime | None:
    """The first instant that is seen, and None if all that came before is."""
    if period is None:
        return None
    first = months_before(at, period) if isinstance(period, int) else at - period
    if closed in ("right", "neither"):
        first += MICRO
    return first if coarse is None else first - (first - EPOCH) % coarse


def seen_from(
    at: dt.datetime, times: list[dt.datetime | None], period: Any, closed: str, coarse: dt.timedelta | None = None
) -> list[int]:
    """The places of the times that are seen from an instant."""
    first = first_instant(at, period, closed, coarse)
    out = []
    for place, time in enumerate(times):
        if time is None or (first is not None and time < first):
            continue
        if time < at or (time == at and closed in ("right", "both")):
            out.append(place)
    return out


def seen_by_count(place: int, times: list[dt.datetime | None], then: list[Any], rows: int) -> list[int]:
    """The places of the last rows, by time, then another column, then their own order, that end at a row."""
    timed = [i for i, time in enumerate(times) if time is not None]
    timed.sort(key=lambda i: (times[i], then[i] is not None, 0 if then[i] is None else then[i], i))
    at = timed.index(place)
    return timed[max(at + 1 - rows, 0) : at + 1]


def ticks_seen(
    times: list[dt.datetime | None], every: dt.timedelta, periods: dict[str, Any], closed: str
) -> Iterator[tuple[dt.datetime, dict[str, list[int]]]]:
    """The ticks of a key with the places seen in each period, while there are any, and the first without."""
    known = [time for time in times if time is not None]
    if not known:
        return
    tick = EPOCH + (min(known) - EPOCH) // every * every
    held = False
    while held or tick <= max(known) + every:
        seen = {name: seen_from(tick, times, period, closed) for name, period in periods.items()}
        holds = any(seen.values())
        if holds or held:
            yield tick, seen
        held = holds
        tick += every


def expected(combiners: dict[str, uc.Combiner], source: pa.Table, seen: list[list[int] | None]) -> pa.Table:
    """The results over the rows that each row sees; null where it sees nothing at all, not even no rows."""
    nothing = uc.aggregate(source.slice(0, 0), **combiners)
    # Rows of one time see the same.
    parts: dict[Any, pa.Table] = {None: pa.table({name: pa.nulls(1, nothing[name].type) for name in combiners})}
    for places in seen:
        if str(places) not in parts and places is not None:
            parts[str(places)] = uc.aggregate(source.take(pa.array(places, pa.int64())), **combiners)
    rows = [parts[None if places is None else str(places)] for places in seen]
    return pa.concat_tables([nothing.slice(0, 0), *rows])


def check(combiners: dict[str, uc.Combiner], found: pa.Table, wanted: pa.Table, source: pa.Table) -> None:
    place = pa.array(range(len(found)))
    found, wanted = (t.select(list(combiners)).append_column("place", place) for t in (found, wanted))
    assert found.schema.types == wanted.schema.types
    assert differing(combiners, found, wanted, source, key="place") == []
