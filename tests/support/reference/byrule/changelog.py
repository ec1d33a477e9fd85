"""Sessions and other windows that merge over a changelog, which can fall apart (rule 40)."""

from __future__ import annotations

from dataclasses import replace

from .options import Datum, Key, Live, Options
from .windows import Window, assign, components, hull, merges


def applies(options: Options) -> bool:
    return options.diff is not None and merges(options.window)


def consolidated(options: Options, data: list[Datum]) -> list[Datum]:
    """The data without the rows that were retracted. Of these, those that count for a time stay with weight zero while
    anything is left of the window that they open (rule 36).
    """
    summed: list[Datum] = []
    for datum in data:
        same = next((d for d in summed if d.t == datum.t and _bare(d) == _bare(datum)), None)
        if same is None:
            summed.append(replace(datum))
        else:
            same.weight += datum.weight
            same.in_time |= datum.in_time
    spans = there(options, summed)
    left = [replace(datum, in_time=datum.in_time and opened(options, datum) in spans) for datum in summed]
    return [datum for datum in left if datum.weight or datum.in_time]


def _bare(datum: Datum) -> list[tuple[str, object]]:
    return sorted((name, value) for name, value in datum.row.items() if name != "d")


def opened(options: Options, datum: Datum) -> Window:
    """The window that a row opens."""
    (window,) = assign(options.window, datum.t, datum.row)
    return window


def sessions(options: Options, data: list[Datum]) -> list[Window]:
    """The windows that rows open, merged."""
    return [hull(group) for group in components(options.window, there(options, data))]


def there(options: Options, data: list[Datum]) -> list[Window]:
    """The windows that rows open, of which rows, or a value, have diffs that do not add up to zero."""
    counts: dict[tuple[Window, object], int] = {}
    for datum in data:
        window, x = opened(options, datum), datum.row.get("x")
        for part in {"row", None if x is None else ("x", x)} - {None}:
            counts[window, part] = counts.get((window, part), 0) + datum.weight
    return [window for (window, _), count in counts.items() if count]


def inside(part: Window, whole: Window) -> bool:
    return whole[0] <= part[0] and part[1] <= whole[1]


class Reshuffle:
    """The windows of one key before and after rows came to it (D16)."""

    def __init__(self, options: Options, key: Key, old: dict[Window, Live], data: list[Datum]) -> None:
        self.old = old
        self.new = sessions(options, data)
        ended = [window for window in old if window not in self.new]
        # An ended session goes on in all new ones that share an instant with it. With none, it stays, empty, as long
        # as it has outstanding panes.
        fresh = [window for window in self.new if window not in old]
        self.parts = {window: [part for part in fresh if _meet(window, part)] for window in ended}
        self.empty = [window for window in ended if not self.parts[window]]

    def sources(self, window: Window) -> list[Live]:
        """The old windows that a window goes on from."""
        if window in self.old:
            return [self.old[window]]
        return [self.old[ended] for ended, parts in self.parts.items() if window in parts]

    def outstanding(self, window: Window) -> list[dict[str, object]]:
        """The outstanding panes of a new window: those of an ended session all go to the first of its parts."""
        if window in self.old:
            return self.old[window].outstanding
        sources = [self.old[ended] for ended, parts in self.parts.items() if parts and parts[0] == window]
        found = [row for source in sources for row in source.outstanding]
        return sorted(found, key=lambda row: row["window"])  # D2

    def told(self, opened: Window) -> list[Window]:
        """The windows that hear of a row that opened this one: those that share an instant with it, and what became of
        the one that the row was in."""
        near = [window for window in [*self.new, *self.empty] if _meet(opened, window)]
        return near + [
            part for ended, parts in self.parts.items() if ended[0] <= opened[0] < ended[1] for part in parts
        ]


def _meet(a: Window, b: Window) -> bool:
    return a[0] < b[1] and b[0] < a[1]
