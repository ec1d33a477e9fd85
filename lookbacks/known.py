"""The events that labels see, each only from the instant at which it was known.

An event is seen by a run of the labels of its key: from the first that is not before the event was known, to the last
whose look-back reaches it. Most events are known before the next label comes; labels that miss none take the ranges of
sorted rows. Of the others, each run is cut into blocks of 1, 2, 4 ... labels, at most two of a length. The events of a
block are merged once, and a label merges the blocks that it is in. So nothing is subtracted, every combiner has the
merge that it needs, and the work is n log n.

Guarded by tests/flows/test_join_rolling.py and tests/panes/rolled/test_labels.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..combiners.algebra import Accumulators
from ..combiners.parts import Part, PartRows
from ..combiners.plan import Plan
from ..combiners.rows.columns import with_missing
from ..combiners.rows.groups import Groups
from ..combiners.rows.plain_types import text_room
from .lookback import LookBack
from .range_states import of_rows
from .results import Results, cuts
from .sorted_rows import Ranges, SortedRows


@dataclass(frozen=True)
class Runs:
    """The labels from `first` to before `stop` that see each event, by their places; none where it is empty."""

    first: np.ndarray
    stop: np.ndarray
    labels: int

    @classmethod
    def of(cls, events: SortedRows, labels: SortedRows, ranges: Ranges, known: np.ndarray) -> Runs:
        """The runs for the ranges that labels have when all is known."""
        place = np.arange(len(events))
        first = np.searchsorted(ranges.high, place, side="right")
        first = np.maximum(first, labels.first_at(events.codes, known))
        return cls(first=first, stop=np.searchsorted(ranges.low, place, side="right"), labels=len(labels))

    @property
    def sizes(self) -> np.ndarray:
        """The number of events that each label sees."""
        some = self.first < self.stop
        count = self.labels + 1
        change = np.bincount(self.first[some], minlength=count) - np.bincount(self.stop[some], minlength=count)
        return np.cumsum(change)[: self.labels]

    def blocks(self) -> tuple[np.ndarray, np.ndarray]:
        """Events and the blocks of labels that they are in: leaves from `labels` on, and node n over 2n and 2n + 1.

        >>> import numpy as np
        >>> Runs(first=np.array([0]), stop=np.array([3]), labels=4).blocks()
        (array([0, 0]), array([6, 2]))
        """
        open_ = np.flatnonzero(self.first < self.stop)
        low, high = self.first[open_] + self.labels, self.stop[open_] + self.labels
        events, nodes = [], []
        while len(open_):  # one turn a level, at most 63
            for chosen, node in (((low & 1) == 1, low), ((high & 1) == 1, high - 1)):
                events.append(open_[chosen])
                nodes.append(node[chosen])
            low, high = (low + 1) >> 1, high >> 1
            left = low < high
            open_, low, high = open_[left], low[left], high[left]
        none = np.zeros(0, np.int64)
        return np.concatenate([none, *events]), np.concatenate([none, *nodes])


class KnownRows:
    """The results of labels over the events of their runs."""

    def __init__(self, plan: Plan, rows: pa.Table, runs: Runs) -> None:
        self.plan, self.runs = plan, runs
        self._rows: PartRows = plan.part_rows(Groups(np.arange(rows.num_rows), rows.num_rows), rows)
        self._events, nodes = runs.blocks()
        found, self._blocks = np.unique(nodes, return_inverse=True)
        self._count = len(found)
        place = np.full(2 * runs.labels, -1)
        place[found] = np.arange(self._count)
        labels, blocks = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        every = np.arange(runs.labels)
        node = every + runs.labels
        while len(node) and node[-1] > 0:  # one turn a level
            here = place[node]
            labels.append(every[here >= 0])
            blocks.append(here[here >= 0])
            node = node >> 1
        label, block = np.concatenate(labels), np.concatenate(blocks)
        order = np.argsort(label, kind="stable")
        self._label, self._block = label[order], block[order]
        self._states: dict[Part, Accumulators] = {}

    def results(self) -> list[pa.Array]:
        """The results of each combiner."""
        sizes, out = self.runs.sizes, []
        with text_room:
            for one in self.plan.compiled.values():
                pieces = [
                    one.finish([self._of(part, start, stop) for part in one.parts])
                    for start, stop in cuts(sizes, one.parts, self._rows)
                ]
                out.append(pa.concat_arrays(pieces))
        return out

    def _of(self, part: Part, start: int, stop: int) -> Accumulators:
        """The accumulators of some labels."""
        if part not in self._states:
            groups = Groups(self._blocks, self._count)
            self._states[part] = part.fn.merge(groups, _taken(of_rows(part, self._rows), self._events))
        low, high = np.searchsorted(self._label, [start, stop])
        groups = Groups(self._label[low:high] - start, stop - start)
        return part.fn.merge(groups, _taken(self._states[part], self._block[low:high]))


def labelled(
    plan: Plan,
    rows: pa.Table,
    events: SortedRows,
    labels: SortedRows,
    lookbacks: Mapping[str, LookBack],
    known: np.ndarray | None,
    min_rows: int,
) -> list[pa.Array]:
    """The results of labels over the events that they see, look-back by look-back.

    `rows` are the events in their order, and `known` the instants from which on they are seen; None if they always are.
    Events and labels have the same codes of keys.
    """
    ranges = {name: events.ranges_at(labels.codes, labels.times, one) for name, one in lookbacks.items()}
    longest = max(int(one.sizes.max(initial=0)) for one in ranges.values())
    misses = np.zeros(len(labels), np.bool_) if known is None else _misses(events, labels, known)
    results, out = Results(plan, rows, events, longest), list[pa.Array]()
    whole, some = np.flatnonzero(~misses), np.flatnonzero(misses)
    order = pa.array(np.argsort(np.concatenate([whole, some]), kind="stable"))
    for one in ranges.values():
        columns, sizes = results.over(one.take(whole), labels.codes[whole]), one.sizes
        if known is not None and len(some):
            runs = Runs.of(events, labels.where(misses), one.take(some), known)
            sizes = sizes.copy()
            sizes[some] = runs.sizes
            both = zip(columns, KnownRows(plan, rows, runs).results(), strict=True)
            columns = [pa.concat_arrays(pair).take(order) for pair in both]
        few = sizes < min_rows if min_rows > 1 else np.zeros(1, np.bool_)
        out += [with_missing(column, few) if few.any() else column for column in columns]
    return out


def _misses(events: SortedRows, labels: SortedRows, known: np.ndarray) -> np.ndarray:
    """True for labels from the time of an event on to before it was known."""
    later = np.flatnonzero(known > events.times)
    codes, count = events.codes[later], len(labels) + 1
    first, stop = labels.first_at(codes, events.times[later]), labels.first_at(codes, known[later])
    return np.cumsum(np.bincount(first, minlength=count) - np.bincount(stop, minlength=count))[:-1] > 0


def _taken(columns: Accumulators, places: np.ndarray) -> Accumulators:
    chosen = pa.array(places)
    return tuple(column.take(chosen) for column in columns)


__all__ = ["KnownRows", "Runs", "labelled"]
