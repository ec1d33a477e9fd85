"""The accumulators of ranges of rows, each kind of state in the way that is exact and fastest for it.

| state | way | work a range |
|---|---|---|
| counts, integers, hashes, digits of exact sums | differences of running sums | one difference |
| floats | both halves around the middle of a range (`halves.py`) | one sum |
| the least or greatest item | the same, with the order keys of the items | one comparison |
| any other | a tree of blocks (`pieces.py`) | a merge of 2 log(rows) accumulators |

Guarded by tests/lookbacks/test_rolling.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ..combiners.algebra import Accumulators
from ..combiners.counting import CountFn
from ..combiners.extremes import ExtremeFn
from ..combiners.floats.exact_pieces import exact_pieces
from ..combiners.parts import Part, PartRows
from ..combiners.rows.columns import Column, with_missing
from ..combiners.rows.groups import Groups
from ..combiners.rows.ordering import order_keys
from ..combiners.states.exact_sum import Digits, ExactSumFn
from ..combiners.states.vectors import VectorFn, floats, int64s
from ..combiners.summing import WideSumFn
from .exact_digits import MOST_PLACES, exact_sums, over_digits
from .halves import fold
from .pieces import Tree
from .running import int_sums, lane_sums
from .sorted_rows import Ranges

AT_ONCE = 1 << 28
"""The bytes of accumulators, roughly, that are made or merged at once."""
_SAMPLE = 200
"""The rows whose accumulators tell how large those of others are."""

Over: TypeAlias = Callable[[Ranges], Accumulators]
"""Gives the accumulator of each range."""


def of_numbers(part: Part, rows: PartRows) -> Over | None:
    """The accumulators of ranges for a state of numbers of one width; None for any other."""
    fn = part.fn
    if isinstance(fn, ExtremeFn):
        return _extremes(fn, part, rows)
    if isinstance(fn, CountFn | VectorFn | WideSumFn):
        added = of_rows(part, rows)
        if isinstance(fn, WideSumFn):
            lanes = [int64s(column) for column in added]
            return lambda ranges: tuple(map(pa.array, lane_sums(lanes, ranges)))
        return _vectors(added)
    if not isinstance(fn, ExactSumFn):
        return None
    groups, columns, weights = rows.of(part)
    if fn.arity == 1 and weights is None:
        return exact_sums(exact_pieces(columns[0]), groups.codes, groups.count)
    return _exact(of_rows(part, rows))


def of_any(part: Part, rows: PartRows, longest: int) -> Over:
    """The accumulators of ranges of at most the longest rows, for any state.

    Where the accumulators of all rows would take much memory, ranges have a tree of the rows among which they lie.
    """
    count = rows.of(part)[0].count
    if width_of(part, rows) * count * longest.bit_length() <= AT_ONCE:
        return Tree(part.fn, of_rows(part, rows), longest).over

    def over(ranges: Ranges) -> Accumulators:
        some = ranges.take(np.flatnonzero(ranges.sizes))
        low, high = (int(some.low.min()), int(some.high.max())) if len(some) else (0, 0)
        low = min(low, count - 1)  # a tree has a row
        tree = Tree(part.fn, of_rows(part, rows, low, max(high, low + 1)), longest)
        empty = ranges.sizes == 0
        return tree.over(Ranges(low=np.where(empty, 0, ranges.low - low), high=np.where(empty, 0, ranges.high - low)))

    return over


def of_rows(part: Part, rows: PartRows, low: int = 0, high: int | None = None) -> Accumulators:
    """The accumulator of each row, from `low` to before `high`."""
    groups, columns, weights = rows.of(part)
    if high is not None:
        some = slice(*np.searchsorted(groups.codes, [low, high]).tolist())
        columns = tuple(Column(column.array[some]) for column in columns)
        groups, weights = Groups(groups.codes[some] - low, high - low), None if weights is None else weights[some]
    return part.fn.add(groups, *columns, weights=weights)


def width_of(part: Part, rows: PartRows) -> int:
    """The bytes of the accumulator of a row, by the first of them."""
    count = min(rows.of(part)[0].count, _SAMPLE)
    return sum(column.nbytes for column in of_rows(part, rows, 0, count)) // max(count, 1) + 1


def _vectors(added: Accumulators) -> Over:
    """Sums of each column; those of a column of zeros, or of ones, are not added up."""
    values = [floats(one) if pa.types.is_floating(one.type) else int64s(one) for one in added]
    kinds = [None if one.dtype.kind == "f" else _only_value(one) for one in values]

    def over(ranges: Ranges) -> Accumulators:
        nothing = pa.array(np.zeros(len(ranges) if 0 in kinds else 0, np.int64))
        known = {0: nothing, 1: pa.array(ranges.sizes) if 1 in kinds else nothing}
        return tuple(
            known[only] if only in known else pa.array(_sums(one, ranges))
            for only, one in zip(kinds, values, strict=True)
        )

    return over


def _only_value(values: np.ndarray) -> int | None:
    """The value that all rows have; None if there are several, or none."""
    return int(values[0]) if len(values) and values.min() == values.max() else None


def _sums(values: np.ndarray, ranges: Ranges) -> np.ndarray:
    return fold(values, ranges, np.add, 0.0) if values.dtype.kind == "f" else int_sums(values, ranges)


def _extremes(fn: ExtremeFn, part: Part, rows: PartRows) -> Over:
    groups, columns, _ = rows.of(part)
    keys = order_keys(columns)
    combine, nothing = (np.maximum, keys.low) if fn.greatest else (np.minimum, keys.high)
    all_kept = len(groups) == groups.count
    kept = np.zeros(groups.count, np.bool_)
    kept[groups.codes] = True

    def over(ranges: Ranges) -> Accumulators:
        within = ranges if all_kept else ranges.within(kept)
        if len(keys.keys) == 0:
            return tuple(pa.nulls(len(ranges), field.type) for field in fn.fields)
        empty = within.sizes == 0
        best = fold(keys.keys, within, combine, nothing)
        # An empty range has the key of some row, so that there is a value to read.
        best[empty] = keys.keys[0]
        return tuple(with_missing(column, empty) for column in keys.decode(best))

    return over


def _exact(added: Accumulators) -> Over | None:
    """Exact sums from running sums of digits, place by place; None if the exponents lie too far apart."""
    digits = Digits.of(added)
    if len(digits.flat) == 0:
        return None
    lowest = int(digits.bins.min())
    places = int(digits.bins.max()) - lowest + 1
    if places > MOST_PLACES:
        return None
    count = len(digits.lengths)
    running = np.zeros((places, count + 1), np.int64)
    row = np.repeat(np.arange(1, count + 1), digits.lengths)
    running[digits.bins - lowest, row] = digits.values
    np.cumsum(running, axis=1, out=running)
    return over_digits(running, lowest)


__all__ = ["AT_ONCE", "Over", "of_any", "of_numbers", "of_rows", "width_of"]
