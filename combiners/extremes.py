"""Least and greatest values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from ..errors import TypeMismatch
from .algebra import Accumulators, Capability, CombineFn, Weights
from .columns import Column
from .combiner import Combiner, Input, Lowered, Part, expression, input_type
from .groups import Groups
from .ordering import order_keys
from .segments import extreme
from .zset import ZSet


@dataclass(frozen=True)
class ExtremeFn(CombineFn):
    """Only the least (or greatest) value so far: the smallest state, and no way back."""

    kind: pa.DataType
    greatest: bool
    capability = Capability.MONOID
    label = "extreme"

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return (pa.field("value", self.kind),)

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        if weights is not None and not weights.all():
            held = weights != 0
            groups, columns = groups.take(held), tuple(c.take(held) for c in columns)
        return (self._reduce(groups, columns[0]),)

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        column = Column(accumulators[0])
        if column.array.null_count:
            valid = np.asarray(column.array.is_valid())
            groups, column = groups.take(valid), column.take(valid)
        return (self._reduce(groups, column),)

    def extract(self, accumulators: Accumulators) -> pa.Array:
        return accumulators[0]

    def _reduce(self, groups: Groups, column: Column) -> pa.Array:
        better = np.maximum if self.greatest else np.minimum
        empty = groups.sizes == 0
        if pa.types.is_float64(self.kind) and not np.isnan(column.values).any():
            start = -np.inf if self.greatest else np.inf
            best = extreme(groups, column.values, start, better) + 0.0
            return pa.array(best, mask=empty if empty.any() else None, from_pandas=False)
        keys = order_keys([column])
        best = extreme(groups, keys.keys, keys.low if self.greatest else keys.high, better)
        if not empty.any():
            return keys.decode(best)[0]
        values = pa.nulls(groups.count, self.kind)
        if len(column):
            places = pa.array(np.cumsum(~empty) - 1, mask=empty)
            values = keys.decode(best[~empty])[0].take(places)
        return values


@dataclass(frozen=True, repr=False)
class _Extreme(Combiner):
    input: Input
    retractable: bool = field(default=True, kw_only=True)

    _greatest = False

    @property
    def capability(self) -> Capability:
        return Capability.GROUP if self.retractable else Capability.MONOID

    def append_only(self) -> Combiner:
        return replace(self, retractable=False)

    def lower(self, schema: pa.Schema) -> Lowered:
        kind = input_type(self.input, schema, self)
        if pa.types.is_nested(kind):
            raise TypeMismatch(f"{self!r} takes values that have an order, and {self.input!r} is {kind}")
        inputs = (expression(self.input),)
        if not self.retractable:
            return Lowered((Part(ExtremeFn(kind, self._greatest), inputs),), lambda parts: parts[0][0], kind)
        zset = ZSet((kind,))

        def finish(parts: Sequence[Accumulators]) -> pa.Array:
            held = zset.items(parts[0]).present()
            return held.take(held.lasts() if self._greatest else held.firsts())

        return Lowered((Part(zset, inputs),), finish, kind)


@dataclass(frozen=True, repr=False)
class Min(_Extreme):
    """The least value.

    Law: `Min(a + b) = min(Min(a), Min(b))`. With `retractable=True` (the default) a Z-set of the values: GROUP; with
    `retractable=False` only the least value: MONOID. Null is ignored; NaN is above every number, as in Spark, so it
    is the result only if there is nothing else; no values give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> uc.aggregate(pa.table({"x": [3, 1, 1], "w": [1, 1, -1]}), diff="w", least=uc.Min("x")).to_pylist()
    [{'least': 3}]
    """


@dataclass(frozen=True, repr=False)
class Max(_Extreme):
    """The greatest value.

    Law: `Max(a + b) = max(Max(a), Max(b))`. With `retractable=True` (the default) a Z-set of the values: GROUP; with
    `retractable=False` only the greatest value: MONOID. Null is ignored; NaN is above every number, as in Spark; no
    values give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> uc.aggregate(pa.table({"x": [3, 9, 9], "w": [1, 1, -1]}), diff="w", best=uc.Max("x")).to_pylist()
    [{'best': 3}]
    """

    _greatest = True
