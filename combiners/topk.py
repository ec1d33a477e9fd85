"""The k greatest or least values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument
from .algebra import Accumulators, Capability, CombineFn, Weights
from .arg_extremes import NAMES
from .combiner import Combiner
from .compiled import CompiledCombiner
from .input_types import Input, expression, input_type
from .parts import Part
from .retractable import Retractable
from .rows.columns import Column
from .rows.group_sums import MOST
from .rows.groups import Groups
from .rows.ordering import require_order
from .states.zset import Items, ZSet, running
from .whole.ranks import best_kernel


@dataclass(frozen=True)
class BestFn(CombineFn):
    """Z-sets cut to their k greatest (or least) copies of items, so that nothing can be retracted."""

    zset: ZSet
    k: int
    greatest: bool
    capability = Capability.MONOID
    divisible = True
    label = "best"

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return self.zset.fields

    @property
    def nullable(self) -> tuple[bool, ...]:
        return self.zset.nullable

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        return self._cut(self.zset.add(groups, *columns, weights=weights))

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        return self._cut(self.zset.merge(groups, accumulators))

    def _cut(self, accumulators: Accumulators) -> Accumulators:
        return self.zset.pack(best_of(self.zset.items(accumulators), self.k, self.greatest))


def best_of(items: Items, k: int, greatest: bool) -> Items:
    """The k greatest (or least) copies of the items of positive weight, as fewer items of smaller weights."""
    k = min(k, MOST)  # no item has a weight of that
    items = items.present()
    if (items.weights == 1).all():
        return _ends_of(items, k, greatest)
    copies = np.minimum(items.weights, k)
    passed = running(copies)
    sizes = np.diff(items.offsets)
    if greatest:
        better = np.repeat(passed[items.offsets[1:]], sizes) - passed[1:]
    else:
        better = passed[:-1] - np.repeat(passed[items.offsets[:-1]], sizes)
    return replace(items, weights=np.minimum(copies, k - better)).present()


def _ends_of(items: Items, k: int, greatest: bool) -> Items:
    """The last (or first) k items of each group."""
    sizes = np.minimum(np.diff(items.offsets), k)
    bounds = running(sizes)
    firsts = items.offsets[1:] - sizes if greatest else items.offsets[:-1]
    places = np.repeat(firsts - bounds[:-1], sizes) + np.arange(bounds[-1])
    columns = tuple(items.take(places, i) for i in range(len(items.columns)))
    return Items(offsets=bounds, columns=columns, weights=items.weights[places])


@dataclass(frozen=True, repr=False)
class _Best(Retractable):
    input: Input
    k: int
    by: Input | None = None
    retractable: bool = field(default=True, kw_only=True)

    _greatest = False

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1:
            name = type(self).__name__
            raise InvalidArgument(f"{name}(k): k must be a whole number of at least 1, but is {self.k!r}")
        if isinstance(self.by, Combiner):
            raise InvalidArgument(
                f"by= of {type(self).__name__} is a column or an expression of a row, not {self.by!r}: for the values "
                f"that come most often write uc.HeavyHitters({self.input!r}, {self.k})"
            )

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        columns = [self.input] if self.by is None else [self.by, self.input]
        kinds = tuple(input_type(one, schema, self) for one in columns)
        for one, kind in zip(columns, kinds, strict=True):
            require_order(kind, self, one)
        zset = ZSet(kinds[:1]) if self.by is None else ZSet(kinds, NAMES, nullable=(False, True))
        fn: CombineFn = zset if self.retractable else BestFn(zset=zset, k=self.k, greatest=self._greatest)

        def finish(parts: Sequence[Accumulators]) -> pa.Array:
            best = best_of(zset.items(parts[0]), self.k, self._greatest)
            places = np.arange(len(best.weights))
            if self._greatest:
                places = np.repeat(best.offsets[:-1] + best.offsets[1:] - 1, np.diff(best.offsets)) - places
            return best.copies(places, self, len(kinds) - 1)

        inputs = tuple(expression(one) for one in columns)
        whole = best_kernel(kinds[0], self.k, self._greatest) if self.by is None else None
        return CompiledCombiner(parts=(Part(fn, inputs),), finish=finish, output=pa.list_(kinds[-1]), whole=whole)


@dataclass(frozen=True, repr=False)
class TopK(_Best):
    """The k greatest values, greatest first, or the values in the k rows in which `by` is greatest.

    Law: `TopK(a + b) = TopK(of TopK(a) and TopK(b))`. With `retractable=True` (the default) the state is a Z-set of all
    values; GROUP. With `retractable=False` it is only the best k; MONOID. A value that comes several times is in the
    list as often. Null is ignored. With `by`, rows whose `by` is null are left out, and a null value is kept. Rows
    with equal `by` are in the order of their values, greatest first, null last. NaN is above every number. Fewer than
    k values give a shorter list, and no values give an empty list.

    >>> import pyarrow as pa, uncombine as uc
    >>> games = pa.table({"player": ["ann", "bob", "cy", "bob"], "score": [7, 9, 8, 9]})
    >>> players = uc.TopK("player", 3, by="score")
    >>> uc.aggregate(games, scores=uc.TopK("score", 3), players=players).to_pylist()
    [{'scores': [9, 9, 8], 'players': ['bob', 'bob', 'cy']}]
    """

    _greatest = True


@dataclass(frozen=True, repr=False)
class BottomK(_Best):
    """The k least values, least first, or the values in the k rows in which `by` is least.

    Law: `BottomK(a + b) = BottomK(of BottomK(a) and BottomK(b))`. With `retractable=True` (the default) the state is a
    Z-set of all values; GROUP. With `retractable=False` it is only the best k; MONOID. A value that comes several
    times is in the list as often. Null is ignored. With `by`, rows whose `by` is null are left out, and a null value
    is kept. Rows with equal `by` are in the order of their values, null first. NaN is above every number. Fewer than
    k values give a shorter list, and no values give an empty list.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": [5, 1, 3], "w": [1, 1, -1]})
    >>> uc.aggregate(t, diff="w", least=uc.BottomK("x", 2)).to_pylist()
    [{'least': [1, 5]}]
    """
