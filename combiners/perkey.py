"""`PerKey`: a combiner applied for each value of a key column, with a map of results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument
from .algebra import Accumulators, Capability, CombineFn, Weights
from .combiner import Combiner
from .compiled import CompiledCombiner
from .expressions.expr import col
from .input_types import Input, expression, input_type, refuse
from .parts import Part, remedy_of
from .plan import Plan
from .rows.alike import alike
from .rows.columns import Column
from .rows.group_sums import sum_counts, sum_weights
from .rows.groups import Groups
from .rows.ordering import order_keys, require_order
from .rows.sorting import argsort_in_groups
from .states.zset import flat_lists


@dataclass(frozen=True)
class PerKeyFn(CombineFn):
    """For each group the accumulators of each key, as a sparse map in the order of the keys.

    An entry is dropped when it has no rows and its accumulator equals that of no rows. So retracted equals never
    seen, if that law holds for the inner combiner.
    """

    combiner: Combiner
    key: pa.DataType
    inputs: tuple[tuple[str, pa.DataType], ...]
    label = "per_key"

    @cached_property
    def plan(self) -> Plan:
        """The inner combiner on its own columns."""
        return Plan({"value": self.combiner}, pa.schema(list(self.inputs)))

    @property
    def capability(self) -> Capability:  # type: ignore[override]
        return self.plan.capability

    @property
    def remedy(self) -> str:  # type: ignore[override]
        return remedy_of(self.plan.parts)

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        parts = [pa.field("key", self.key), pa.field("rows", pa.int64()), *self.plan.fields]
        return (pa.field("entries", pa.list_(pa.struct(parts))),)

    @property
    def nullable(self) -> tuple[bool, ...]:
        return (False, *[True] * len(self.inputs))

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        by, *rest = columns
        entries, keys, offsets = _entries(groups, by)
        names = [name for name, _ in self.inputs]
        arrays = {name: column.array for name, column in zip(names, rest, strict=True)}
        table = pa.table(arrays or {"rows": pa.nulls(len(groups))})
        inner = self.plan.add(entries, table, weights)
        return self._pack(offsets, keys, sum_weights(entries, weights), inner)

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        starts, keys, rows, inner = self.unpack(accumulators)
        codes = np.repeat(groups.codes, np.diff(starts))
        entries, keys, offsets = _entries(Groups(codes, groups.count), Column(keys))
        return self._pack(offsets, keys, sum_counts(entries, rows), self.plan.merge(entries, inner))

    def negate(self, accumulators: Accumulators) -> Accumulators:
        offsets, keys, rows, inner = self.unpack(accumulators)
        return self._pack(offsets, keys, -rows, self.plan.negate(inner))

    def unpack(self, accumulators: Accumulators) -> tuple[np.ndarray, pa.Array, np.ndarray, Accumulators]:
        """The start of each group's entries, and the keys, rows and inner accumulators of all entries."""
        offsets, struct = flat_lists(accumulators[0])
        keys, rows, *inner = struct.flatten()
        return offsets, keys, np.asarray(rows), tuple(inner)

    def _pack(self, offsets: np.ndarray, keys: pa.Array, rows: np.ndarray, inner: Accumulators) -> Accumulators:
        empty = np.flatnonzero(rows == 0)
        if len(empty):
            places = pa.array(empty)
            zero = self.plan.zero(1)
            same = [
                alike(column.take(places), z.take(pa.array(empty * 0))) for column, z in zip(inner, zero, strict=True)
            ]
            nonzero = np.ones(len(rows), np.bool_)
            nonzero[empty[np.logical_and.reduce(same)]] = False
            offsets = np.append(0, np.cumsum(nonzero))[offsets]
            mask = pa.array(nonzero)
            keys, rows, inner = keys.filter(mask), rows[nonzero], tuple(column.filter(mask) for column in inner)
        kind = self.fields[0].type
        struct = pa.StructArray.from_arrays([keys, pa.array(rows), *inner], fields=list(kind.value_type))
        return (pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), struct, type=kind),)


def _entries(groups: Groups, by: Column) -> tuple[Groups, pa.Array, np.ndarray]:
    """The rows as groups by (group, key) in that order, the key of each of these, and the start of each group."""
    keys = order_keys([by])
    order, ordered = argsort_in_groups(groups, keys.keys)
    codes = groups.codes[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (ordered[1:] != ordered[:-1]) | (codes[1:] != codes[:-1])
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(fresh) - 1
    offsets = np.append(0, np.cumsum(np.bincount(codes[fresh], minlength=groups.count)))
    return Groups(number, int(offsets[-1])), keys.decode(ordered[fresh])[0], offsets


@dataclass(frozen=True, repr=False)
class PerKey(Combiner):
    """The results of a combiner for each value of a key, as a map in the order of the keys.

    Law: `PerKey(c)(a + b)[k] = c(a[k] + b[k])`. The capability is that of the inner combiner, which may be any
    combiner, also a `PerKey` or a `Struct`. Rows whose key is null are left out, because a map has no null keys. NaN
    equals NaN, and -0.0 equals 0.0. A key whose rows are all retracted is not in the map. No rows give an empty map. A
    fast float sum that was retracted may leave a rounding error in the state, which is not in the map.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"page": ["x", "y", "x"], "ms": [5, 7, 1], "w": [1, 1, -1]})
    >>> uc.aggregate(t, diff="w", spent=uc.PerKey(uc.Sum("ms"), by="page")).to_pylist()
    [{'spent': [('y', 7)]}]
    >>> uc.PerKey(uc.Sum("ms"), by="page")
    PerKey(Sum('ms'), by='page')
    """

    combiner: Combiner
    by: Input

    def __post_init__(self) -> None:
        if not isinstance(self.combiner, Combiner):
            raise InvalidArgument(f"PerKey takes a combiner such as Sum('x') first, but was given {self.combiner!r}")
        expression(self.by)

    @property
    def capability(self) -> Capability:
        return self.combiner.capability

    def tolerance(self, magnitudes: Sequence[float], count: int) -> float:
        return self.combiner.tolerance(magnitudes, count)

    def append_only(self) -> Combiner:
        return PerKey(self.combiner.append_only(), self.by)

    def of(self, *inputs: Any) -> Combiner:
        return PerKey(self.combiner.of(*inputs), self.by)

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        kind = input_type(self.by, schema, self)
        require_order(kind, self, self.by)
        if pa.types.is_null(kind):
            raise refuse(self, self.by, kind, "a key that is not null in every row")
        names = Plan({"value": self.combiner}, schema).columns
        fn = PerKeyFn(combiner=self.combiner, key=kind, inputs=tuple((name, schema.field(name).type) for name in names))
        output = pa.map_(kind, fn.plan.outputs[0].type)

        def finish(parts: Sequence[Accumulators]) -> pa.Array:
            offsets, keys, rows, inner = fn.unpack(parts[0])
            present = rows != 0
            mask = pa.array(present)
            (values,) = fn.plan.extract(tuple(column.filter(mask) for column in inner))
            bounds = np.append(0, np.cumsum(present))[offsets]
            return pa.MapArray.from_arrays(pa.array(bounds, pa.int32()), keys.filter(mask), values, type=output)

        inputs = (expression(self.by), *map(col, names))
        return CompiledCombiner(parts=(Part(fn, inputs),), finish=finish, output=output)

    def __repr__(self) -> str:
        return f"PerKey({self.combiner!r}, by={self.by!r})"
