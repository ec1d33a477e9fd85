"""The results of combiners over ranges of sorted rows.

Quantiles and counts of different values are found without accumulators, which would hold all values of each range.

Guarded by tests/lookbacks/test_rolling.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from ..combiners.compiled import ByRank, CompiledCombiner
from ..combiners.parts import Part, PartRows
from ..combiners.plan import Plan
from ..combiners.rows.columns import flat
from ..combiners.rows.groups import Groups, group_rows
from ..combiners.rows.ordering import order_keys
from ..combiners.rows.plain_types import text_room
from .different import count_different
from .range_states import AT_ONCE, Over, of_any, of_numbers, width_of
from .ranked import RankedKeys
from .sorted_rows import Ranges, SortedRows

_LEAST = 64
"""The bytes that an accumulator, or an item in one, is taken for at least."""


class Results:
    """The results of a plan over ranges of rows; what several look-backs share is made once.

    `rows` are the rows in the order of `sorted_rows`.
    """

    def __init__(self, plan: Plan, rows: pa.Table, sorted_rows: SortedRows, longest: int) -> None:
        self.plan, self.sorted_rows, self.longest = plan, sorted_rows, longest
        self._rows: PartRows = plan.part_rows(Groups(np.arange(len(sorted_rows)), len(sorted_rows)), rows)
        self._numbers: dict[Part, Over | None] = {}
        self._any: dict[Part, Over] = {}
        self._ranked: dict[Part, tuple[RankedKeys, pa.Array]] = {}
        self._different: dict[Part, Groups] = {}

    def over(self, ranges: Ranges, keys: np.ndarray) -> list[pa.Array]:
        """The results of each combiner over the ranges, of which each has rows of one of the keys."""
        with text_room:
            return [self._of(one, ranges, keys) for one in self.plan.compiled.values()]

    @property
    def merged(self) -> bool:
        """True if accumulators of rows were merged, which may take much memory, for one of the results so far."""
        return bool(self._any)

    def _of(self, one: CompiledCombiner, ranges: Ranges, keys: np.ndarray) -> pa.Array:
        if one.counts_different:
            return self._counts(one.parts[0], ranges)
        if one.by_rank is not None:
            return self._by_rank(one.parts[0], one.by_rank, ranges, keys)
        found = {part: over(ranges) for part in one.parts if (over := self._of_numbers(part)) is not None}
        if len(found) == len(one.parts):
            return one.finish([found[part] for part in one.parts])
        others = {part: self._of_any(part) for part in one.parts if part not in found}
        results = []
        for start, stop in cuts(ranges.sizes, list(others), self._rows):
            here = ranges.slice(start, stop)
            states = {part: over(here) for part, over in others.items()}
            states |= {part: tuple(a.slice(start, stop - start) for a in state) for part, state in found.items()}
            results.append(one.finish([states[part] for part in one.parts]))
        return pa.concat_arrays(results)

    def _of_numbers(self, part: Part) -> Over | None:
        if part not in self._numbers:
            self._numbers[part] = of_numbers(part, self._rows)
        return self._numbers[part]

    def _of_any(self, part: Part) -> Over:
        if part not in self._any:
            self._any[part] = of_any(part, self._rows, self.longest)
        return self._any[part]

    def _kept(self, part: Part) -> np.ndarray:
        """True for the rows that the part takes."""
        kept = np.zeros(len(self.sorted_rows), np.bool_)
        kept[self._rows.of(part)[0].codes] = True
        return kept

    def _counts(self, part: Part, ranges: Ranges) -> pa.Array:
        groups, columns, _ = self._rows.of(part)
        if part not in self._different:
            items = [pa.array(order_keys(columns).keys), pa.array(self.sorted_rows.codes[groups.codes])]
            self._different[part] = group_rows(items, len(groups))[0]
        return pa.array(count_different(self._different[part], ranges.within(self._kept(part))))

    def _by_rank(self, part: Part, by_rank: ByRank, ranges: Ranges, keys: np.ndarray) -> pa.Array:
        kept = self._kept(part)
        if part not in self._ranked:
            (column,) = self._rows.of(part)[1]
            before = np.append(0, np.cumsum(kept))
            ranked = RankedKeys(order_keys([column]).keys, before[self.sorted_rows.bounds])
            self._ranked[part] = ranked, order_keys([column]).decode(order_keys([column]).keys)[0]
        ranked, values = self._ranked[part]
        within = ranges.within(kept)
        some = np.flatnonzero(within.sizes)
        chosen, keys = within.take(some), keys[some]
        found = []
        for q in by_rank.quantiles:
            place = (within.sizes - 1).astype(np.float64) * q
            low = np.floor(place)
            sides = []
            lower = ranked.places(chosen, keys, low[some].astype(np.int64))
            upper, between = lower.copy(), np.flatnonzero((place > low)[some])
            if len(between):
                above = chosen.take(between)
                upper[between] = ranked.places(above, keys[between], low[some][between].astype(np.int64) + 1)
            for side in (lower, upper):
                places = np.zeros(len(ranges), np.int64)
                places[some] = side
                sides.append(values.take(pa.array(places, mask=within.sizes == 0)))
            found.append((sides[0], sides[1], place - low))
        return by_rank.finish(found)


def cuts(sizes: np.ndarray, parts: Sequence[Part], rows: PartRows) -> Iterator[tuple[int, int]]:
    """Runs of ranges of these sizes whose states are merged at once: by their rows if these may all be in a state."""
    listed = any(pa.types.is_nested(field.type) for part in parts for field in part.fn.fields)
    entries = sizes + 1 if listed else 2 * np.frexp(sizes.astype(np.float64))[1] + 1
    turns = np.cumsum(entries) * sum(max(width_of(part, rows), _LEAST) for part in parts) // AT_ONCE
    starts = np.flatnonzero(np.append(True, turns[1:] != turns[:-1])) if len(sizes) else np.zeros(1, np.int64)
    yield from zip(starts.tolist(), [*starts[1:].tolist(), len(sizes)], strict=True)


def sorted_table(rows: pa.Table, columns: Sequence[str], order: np.ndarray) -> pa.Table:
    """The columns that are read, in the order of the sorted rows."""
    taken = {name: flat(rows[name]) for name in columns}
    if not np.array_equal(order, np.arange(rows.num_rows)):
        taken = {name: column.take(pa.array(order)) for name, column in taken.items()}
    return pa.table(taken) if taken else pa.table({"rows": pa.nulls(len(order))})


__all__ = ["Results", "cuts", "sorted_table"]
