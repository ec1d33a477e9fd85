"""Counts of values in bins with given edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument, TypeMismatch
from .algebra import Accumulators, Capability, CombineFn, Weights
from .combiner import Combiner
from .compiled import CompiledCombiner
from .floats.decimals import nearest_floats
from .input_types import Input, expression, input_type, is_ordered, refuse
from .parts import Part
from .rows.columns import Column
from .rows.group_sums import sum_weights
from .rows.groups import Groups
from .states.zset import flat_lists, running


@dataclass(frozen=True)
class HistogramFn(CombineFn):
    """The counts of values between neighbouring `edges`, which are numbers in the unit of the column.

    An accumulator is a list with one count a bin, or an empty list if all counts are zero.
    """

    edges: tuple[Any, ...]
    label = "histogram"

    @property
    def bins(self) -> int:
        return len(self.edges) - 1

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return (pa.field("counts", pa.list_(pa.int64())),)

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        edges = np.asarray(self.edges)
        array = columns[0].array
        values = nearest_floats(array) if pa.types.is_decimal(array.type) else columns[0].values
        bins = np.searchsorted(edges, values, side="right") - 1
        bins[values == edges[-1]] = self.bins - 1
        inside = (bins >= 0) & (bins < self.bins)
        places = groups.codes * self.bins + bins
        if not inside.all():
            places = places[inside]
            weights = None if weights is None else weights[inside]
        return self._lists(sum_weights(Groups(places, groups.count * self.bins), weights))

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        offsets, counts = flat_lists(accumulators[0])
        places = np.repeat(groups.codes * self.bins - offsets[:-1], np.diff(offsets)) + np.arange(len(counts))
        return self._lists(sum_weights(Groups(places, groups.count * self.bins), np.asarray(counts)))

    def negate(self, accumulators: Accumulators) -> Accumulators:
        offsets, counts = flat_lists(accumulators[0])
        return (pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(-np.asarray(counts))),)

    def extract(self, accumulators: Accumulators) -> pa.Array:
        offsets, counts = flat_lists(accumulators[0])
        if len(counts) == len(accumulators[0]) * self.bins:  # many counts, which need not be copied
            return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), counts)
        table = np.zeros((len(accumulators[0]), self.bins), np.int64)
        table[np.diff(offsets) > 0] = np.asarray(counts).reshape(-1, self.bins)
        return self._whole(table)

    def _lists(self, counts: np.ndarray) -> Accumulators:
        table = counts.reshape(-1, self.bins)
        mask: np.ndarray = np.asarray(table.any(axis=1))
        if mask.all():
            return (self._whole(table),)
        offsets = running(mask) * self.bins
        return (pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(table[mask].ravel())),)

    def _whole(self, table: np.ndarray) -> pa.Array:
        offsets = pa.array(np.arange(0, table.size + 1, self.bins), pa.int32())
        return pa.ListArray.from_arrays(offsets, pa.array(table.ravel()))


@dataclass(frozen=True, repr=False)
class Histogram(Combiner):
    """The number of values in each bin between neighbouring `edges`, as a list.

    Law: `Histogram(a + b) = Histogram(a) + Histogram(b)`, bin by bin. Capability GROUP. As in `numpy.histogram`, a
    bin contains its lower edge and not its upper edge, except the last bin, which contains both. NaN and values
    outside the edges are not counted. To count all numbers, start the edges with `-inf` and end them with `inf`. Null
    is ignored. No values give zeros. Decimals are compared as float64. The edges for a column of times are `datetime`
    values.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": [0, 1, 5, 10, 11]})
    >>> uc.aggregate(t, counts=uc.Histogram("x", [0, 5, 10])).to_pylist()
    [{'counts': [2, 2]}]
    """

    input: Input
    edges: Sequence[Any]

    def __post_init__(self) -> None:
        if not is_ordered(self.edges):
            raise InvalidArgument(
                f"Histogram(edges): edges must be a list of values such as [0, 10, 100], but is {self.edges!r}"
            )
        edges = tuple(self.edges.tolist() if isinstance(self.edges, np.ndarray) else self.edges)
        object.__setattr__(self, "edges", edges)
        if len(edges) < 2:
            raise InvalidArgument(f"Histogram(edges): edges must hold at least two values, but is {list(edges)!r}")
        for low, high in pairwise(edges):
            if not _less(low, high):
                raise InvalidArgument(f"Histogram(edges): edges must increase, but {high!r} follows {low!r}")

    @property
    def capability(self) -> Capability:
        return Capability.GROUP

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        kind = input_type(self.input, schema, self)
        counts = HistogramFn(self._numbers(kind))
        part = Part(counts, (expression(self.input),))
        kind = pa.list_(pa.int64())
        return CompiledCombiner(
            parts=(part,), finish=lambda parts: counts.extract(parts[0]), output=kind, additive=True
        )

    def _numbers(self, kind: pa.DataType) -> tuple[Any, ...]:
        """The edges as numbers to compare with the column's values."""
        if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
            try:
                return tuple(Column(pa.array(self.edges, kind)).values.tolist())
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                raise TypeMismatch(f"{self!r} counts {kind}, but its edges are not of that type: {error}") from None
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            raise refuse(self, self.input, kind, "numbers or times")
        if not all(isinstance(edge, int | float | np.number) or hasattr(edge, "as_tuple") for edge in self.edges):
            raise TypeMismatch(f"{self!r} counts {kind}: give it edges that are numbers")
        if pa.types.is_integer(kind) and all(isinstance(edge, int) for edge in self.edges):
            return tuple(self.edges)
        return tuple(float(edge) for edge in self.edges)


def _less(low: Any, high: Any) -> bool:
    try:
        return bool(low < high)
    except TypeError:
        return False
