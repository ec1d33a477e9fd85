"""Least and greatest values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from .algebra import Accumulators, Capability, CombineFn, Weights
from .compiled import CompiledCombiner
from .input_types import Input, expression, input_type
from .parts import Part
from .retractable import Retractable
from .rows.columns import Column
from .rows.decoded_sizes import varies
from .rows.group_sums import extreme
from .rows.groups import Groups
from .rows.ordering import order_keys, require_order
from .rows.plain_types import is_text
from .states.net_extremes import net_extreme
from .states.zset import ZSet
from .whole.extremes import extreme_kernel


@dataclass(frozen=True)
class ExtremeFn(CombineFn):
    """The least (or greatest) item, by its first column, then the next; nothing can be retracted.

    The first column is null in the accumulator of no rows only.
    """

    kinds: tuple[pa.DataType, ...]
    greatest: bool
    names: tuple[str, ...] = ("value",)
    nullable: tuple[bool, ...] = field(default=(), kw_only=True)
    capability = Capability.MONOID
    label = "extreme"

    @property
    def divisible(self) -> bool:  # type: ignore[override]
        """True for texts, which may be long."""
        return any(map(varies, self.kinds))

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return tuple(pa.field(name, kind) for name, kind in zip(self.names, self.kinds, strict=True))

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        if weights is not None and not weights.all():
            mask = weights != 0
            groups, columns = groups.take(mask), tuple(c.take(mask) for c in columns)
        return self._reduce(groups, columns)

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        columns = tuple(Column(a) for a in accumulators)
        if accumulators[0].null_count:
            valid = np.asarray(accumulators[0].is_valid())
            groups, columns = groups.take(valid), tuple(c.take(valid) for c in columns)
        return self._reduce(groups, columns)

    def extract(self, accumulators: Accumulators) -> pa.Array:
        return accumulators[-1]

    def _reduce(self, groups: Groups, columns: tuple[Column, ...]) -> Accumulators:
        better = np.maximum if self.greatest else np.minimum
        empty = groups.sizes == 0
        if self.kinds == (pa.float64(),) and not np.isnan(columns[0].values).any():
            start = -np.inf if self.greatest else np.inf
            best = extreme(groups, columns[0].values, start, better) + 0.0
            return (pa.array(best, mask=empty if empty.any() else None, from_pandas=False),)
        arrays: list[pa.Array] = []
        while columns:
            first, *rest = columns
            if not rest and is_text(first.type) and not first.array.null_count:
                arrays.append(_extreme_texts(groups, first.array, "max" if self.greatest else "min"))
                break
            keys = order_keys([first])
            best = extreme(groups, keys.keys, keys.low if self.greatest else keys.high, better)
            arrays += keys.decode(best[~empty])
            alike = keys.keys == best[groups.codes] if rest else groups.codes[:0]
            columns = tuple(column.take(alike) for column in rest)
            groups = groups.take(alike)
        if not empty.any():
            return tuple(arrays)
        places = pa.array(np.cumsum(~empty) - 1, mask=empty)
        return tuple(values.take(places) for values in arrays)


def _extreme_texts(groups: Groups, array: pa.Array, end: str) -> pa.Array:
    """The least or greatest string of each group that has rows; Arrow compares bytes without sorting them."""
    table = pa.table({"group": groups.codes, "text": array})
    best = table.group_by("group", use_threads=False).aggregate([("text", end)]).sort_by("group")
    return best.column(f"text_{end}").combine_chunks()


@dataclass(frozen=True, repr=False)
class _Extreme(Retractable):
    input: Input
    retractable: bool = field(default=True, kw_only=True)

    _greatest = False

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        kind = input_type(self.input, schema, self)
        require_order(kind, self, self.input)
        inputs, whole = (expression(self.input),), extreme_kernel(kind, self._greatest)
        if not self.retractable:
            return CompiledCombiner(
                parts=(Part(ExtremeFn((kind,), self._greatest), inputs),),
                finish=lambda parts: parts[0][0],
                output=kind,
                whole=whole,
            )
        zset = ZSet((kind,))

        def finish(parts: Sequence[Accumulators]) -> pa.Array:
            items = zset.items(parts[0]).present()
            return items.take(items.lasts() if self._greatest else items.firsts())

        def at_once(groups: Groups, columns: Sequence[Column], weights: np.ndarray) -> pa.Array:
            return net_extreme(groups, columns[0], weights, self._greatest)

        return CompiledCombiner(parts=(Part(zset, inputs),), finish=finish, output=kind, at_once=at_once, whole=whole)


@dataclass(frozen=True, repr=False)
class Min(_Extreme):
    """The least value.

    Law: `Min(a + b) = min(Min(a), Min(b))`. With `retractable=True` (the default) the state is a Z-set of the values;
    GROUP. With `retractable=False` it is only the least value; MONOID. Null is ignored. NaN is above every number, as
    in Spark, so it is the result only if all values are NaN. No values give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": [3, 1, 1], "w": [1, 1, -1]})
    >>> uc.aggregate(t, diff="w", least=uc.Min("x")).to_pylist()
    [{'least': 3}]
    """


@dataclass(frozen=True, repr=False)
class Max(_Extreme):
    """The greatest value.

    Law: `Max(a + b) = max(Max(a), Max(b))`. With `retractable=True` (the default) the state is a Z-set of the values;
    GROUP. With `retractable=False` it is only the greatest value; MONOID. Null is ignored. NaN is above every number,
    as in Spark. No values give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": [3, 9, 9], "w": [1, 1, -1]})
    >>> uc.aggregate(t, diff="w", best=uc.Max("x")).to_pylist()
    [{'best': 3}]
    """

    _greatest = True
