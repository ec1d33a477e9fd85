"""The value in the row in which another column is least or greatest, first or last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from .algebra import Accumulators
from .compiled import CompiledCombiner
from .extremes import ExtremeFn
from .input_types import Input, expression, input_type
from .parts import Part
from .retractable import Retractable
from .rows.ordering import require_order
from .states.zset import ZSet
from .whole.extremes import arg_extreme_kernel

NAMES = ("by", "item")


@dataclass(frozen=True, repr=False)
class _By(Retractable):
    input: Input
    by: Input
    retractable: bool = field(default=True, kw_only=True)

    _greatest = False

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        return self._compile(schema, nulls=True)

    def _compile(self, schema: pa.Schema, nulls: bool) -> CompiledCombiner:
        kinds = input_type(self.by, schema, self), input_type(self.input, schema, self)
        for input, kind in zip((self.by, self.input), kinds, strict=True):
            require_order(kind, self, input)
        inputs = (expression(self.by), expression(self.input))
        whole = arg_extreme_kernel(*kinds, self._greatest)
        if not self.retractable:
            best = ExtremeFn(kinds=kinds, greatest=self._greatest, names=NAMES, nullable=(False, nulls))
            return CompiledCombiner(
                parts=(Part(best, inputs),), finish=lambda parts: parts[0][1], output=kinds[1], whole=whole
            )
        zset = ZSet(kinds, NAMES, nullable=(False, nulls))

        def finish(parts: Sequence[Accumulators]) -> pa.Array:
            items = zset.items(parts[0]).present()
            return items.take(items.lasts() if self._greatest else items.firsts(), 1)

        return CompiledCombiner(parts=(Part(zset, inputs),), finish=finish, output=kinds[1], whole=whole)


@dataclass(frozen=True, repr=False)
class ArgMin(_By):
    """The value in the row in which another column is least.

    Law: `ArgMin(a + b)` is the one of `ArgMin(a)`, `ArgMin(b)` whose `by` is less. With `retractable=True` (the
    default) the state is a Z-set of the pairs; GROUP. With `retractable=False` it is only the best pair; MONOID. As in
    Spark's `min_by`, rows whose `by` is null are left out, a null value is a result like another, and NaN is above
    every number. If several rows have the least `by`, the result is the least of their values; null is below all.
    No rows give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> runs = pa.table({"runner": ["ann", "bob", "cy"], "seconds": [12.1, 11.8, 11.8]})
    >>> uc.aggregate(runs, winner=uc.ArgMin("runner", by="seconds")).to_pylist()
    [{'winner': 'bob'}]
    """


@dataclass(frozen=True, repr=False)
class ArgMax(_By):
    """The value in the row in which another column is greatest.

    Law: `ArgMax(a + b)` is the one of `ArgMax(a)`, `ArgMax(b)` whose `by` is greater. With `retractable=True` (the
    default) the state is a Z-set of the pairs; GROUP. With `retractable=False` it is only the best pair; MONOID. As in
    Spark's `max_by`, rows whose `by` is null are left out, a null value is a result like another, and NaN is above
    every number. If several rows have the greatest `by`, the result is the greatest of their values; null is below
    all. No rows give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> games = pa.table({"player": ["ann", "bob", "bob"], "score": [7, 9, 9], "w": [1, 1, -1]})
    >>> uc.aggregate(games, diff="w", best=uc.ArgMax("player", by="score")).to_pylist()
    [{'best': 'ann'}]
    """

    _greatest = True


@dataclass(frozen=True, repr=False)
class _OrderEnd(_By):
    ignore_nulls: bool = field(default=False, kw_only=True)

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        return self._compile(schema, nulls=not self.ignore_nulls)


@dataclass(frozen=True, repr=False)
class First(_OrderEnd):
    """The value in the first row in the order of another column, such as a time.

    Law: `First(a + b)` is the one of `First(a)`, `First(b)` that comes earlier. It is `ArgMin` under a name that fits
    a time: GROUP, or MONOID with `retractable=False`. Rows whose `by` is null are left out. A null value counts
    unless `ignore_nulls=True`, as in Spark's `first`. If several rows are first, the result is the least of their
    values; null is below all. No rows give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> prices = pa.table({"price": [10.0, None, 12.5], "t": [3, 1, 2]})
    >>> uc.aggregate(prices, any=uc.First("price", by="t"),
    ...              known=uc.First("price", by="t", ignore_nulls=True)).to_pylist()
    [{'any': None, 'known': 12.5}]
    """


@dataclass(frozen=True, repr=False)
class Last(_OrderEnd):
    """The value in the last row in the order of another column, such as a time.

    Law: `Last(a + b)` is the one of `Last(a)`, `Last(b)` that comes later. It is `ArgMax` under a name that fits a
    time: GROUP, or MONOID with `retractable=False`. Rows whose `by` is null are left out. A null value counts unless
    `ignore_nulls=True`, as in Spark's `last`. If several rows are last, the result is the greatest of their values;
    null is below all. No rows give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> prices = pa.table({"price": [10.0, 11.0, 12.5], "t": [3, 1, 2]})
    >>> uc.aggregate(prices, close=uc.Last("price", by="t")).to_pylist()
    [{'close': 10.0}]
    """

    _greatest = True
