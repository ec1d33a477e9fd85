"""Sessions over a changelog, which split when the row that bridged them is retracted: rule 40.

The rows of a key are kept, each with a flag for being in time, and its sessions are formed again from all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .state_model import Key, Live, Options, Row, Span
from .windows_model import united

Datum = tuple[Row, int]
"""A row and its weight."""


@dataclass
class Splitting:
    """The state of keys whose sessions may split."""

    o: Options
    data: dict[Key, list[Datum]] = field(default_factory=dict)
    counting: dict[Key, set[int]] = field(default_factory=dict)
    """The times of which a row was not before the output watermark when it came, while a row of the time is left."""

    def span(self, row: Row) -> Span:
        t = row[self.o.time]
        return t, t + int(self.o.window.gap)

    def add(self, key: Key, rows: Iterable[Row], output_watermark: int) -> None:
        """Rows that are taken in; a row and its retraction are both forgotten."""
        held, counting = self.data.setdefault(key, []), self.counting.setdefault(key, set())
        for row in rows:
            bare = {name: value for name, value in row.items() if name != self.o.diff}
            at = next((i for i, (known, _) in enumerate(held) if known == bare), None)
            weight = row[self.o.diff]
            if at is None:
                held.append((bare, weight))
            else:
                held[at] = bare, held[at][1] + weight
            if row[self.o.time] >= output_watermark:
                counting.add(row[self.o.time])
        held[:] = [datum for datum in held if datum[1]]
        counting &= {start for start, _ in self.there(key)}

    def sessions(self, key: Key) -> list[Span]:
        """The spans of a key, united."""
        return united(self.there(key))

    def there(self, key: Key) -> list[Span]:
        """The spans of times of which something is left: rows, or values, whose weights do not add up to zero."""
        totals: dict[tuple[Span, str, Any], int] = {}
        for row, weight in self.data.get(key, []):
            parts = [("rows", None)] if row["x"] is None else [("rows", None), ("value", row["x"])]
            for part in parts:
                totals[self.span(row), *part] = totals.get((self.span(row), *part), 0) + weight
        return list({span for (span, _, _), total in totals.items() if total})

    def fill(self, w: Live) -> None:
        """The rows of a window, and the bounds of those that were in time."""
        mine = [datum for datum in self.data.get(w.key, []) if w.start <= datum[0][self.o.time] < w.end]
        w.rows = mine
        counting = self.counting.get(w.key, set())
        times = [row[self.o.time] for row, _ in mine if row[self.o.time] in counting]
        w.earliest, w.latest = min(times, default=None), max(times, default=None)

    def forget(self, live: Iterable[Live]) -> None:
        """Rows whose window has left."""
        spans: dict[Key, list[Span]] = {}
        for w in live:
            spans.setdefault(w.key, []).append((w.start, w.end))
        for key, held in list(self.data.items()):
            left = [
                datum
                for datum in held
                if any(start <= datum[0][self.o.time] < end for start, end in spans.get(key, []))
            ]
            if left:
                self.data[key] = left
            else:
                del self.data[key]
            self.counting[key] = {row[self.o.time] for row, _ in left} & self.counting.get(key, set())

    def changed(self, key: Key, held: list[Live], model: Any) -> Change:
        """The windows of a key as its rows have them now; `model` makes a window of those that it goes on from."""
        sessions = self.sessions(key)
        stays = {(w.start, w.end): w for w in held if (w.start, w.end) in sessions}
        ended = [w for w in held if (w.start, w.end) not in stays]
        parts = {
            id(w): [span for span in sessions if span not in stays and meets((w.start, w.end), span)] for w in ended
        }
        change = Change([w for w in ended if not parts[id(w)]])
        for start, end in sessions:
            w = stays.get((start, end))
            if w is None:
                sources = [old for old in ended if (start, end) in parts[id(old)]]
                w = model.joined(key, start, end, sources)
                firsts = [old for old in sources if parts[id(old)][0] == (start, end)]
                w.outstanding = [value for old in firsts for value in old.outstanding]
                w.fresh = True
                change.sources[id(w)] = sources
            change.windows.append(w)
        for w in [*change.windows, *change.emptied]:
            self.fill(w)
        return change


@dataclass
class Change:
    """The changes of the windows of a key."""

    emptied: list[Live]
    windows: list[Live] = field(default_factory=list)
    sources: dict[int, list[Live]] = field(default_factory=dict)

    def told(self, w: Live, span: Span) -> bool:
        """True if a window sees a row that opened this span: they meet, or the row was in a window before it."""
        before = any(old.start <= span[0] < old.end for old in self.sources.get(id(w), []))
        return before or meets((w.start, w.end), span)


def meets(a: Span, b: Span) -> bool:
    return a[0] < b[1] and b[0] < a[1]
