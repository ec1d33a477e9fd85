"""Sums: of integers in 128 bits, of decimals in 192, of floats fast or exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from ..errors import OutOfRange
from .algebra import Accumulators, Capability, CombineFn, Weights
from .combiner import Combiner
from .compiled import CompiledCombiner, Finish
from .counting import count_of
from .input_types import Input, expression, input_type, refuse
from .parts import Part
from .rows.columns import Column
from .rows.group_sums import negate_lanes, sum_counts, sum_floats, sum_lanes
from .rows.groups import Groups
from .states.exact_sum import Digits, ExactSumFn, exact_sum
from .states.vectors import VectorFn, floats, int64s, null_if_empty
from .whole.sums import sum_kernel


@dataclass(frozen=True)
class WideSumFn(CombineFn):
    """Sums of integers in `lanes` two's complement lanes of 64 bits."""

    lanes: int = 2
    label = "sum"

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return tuple(pa.field(name, pa.int64()) for name in ("lo", "hi", "top")[: self.lanes])

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        return _arrays(sum_lanes(groups, _lanes_of(columns[0]), self.lanes, weights))

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        return _arrays(sum_lanes(groups, [int64s(a) for a in accumulators], self.lanes))

    def negate(self, accumulators: Accumulators) -> Accumulators:
        return _arrays(negate_lanes([int64s(a) for a in accumulators]))


@dataclass(frozen=True)
class FloatSumFn(VectorFn):
    """Plain float64 sums of the finite values; within `n * 2**-53 * sum(|x|)` of the exact ones."""

    capability = Capability.CANCELLATIVE
    label = "sum"

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return (pa.field("sum", pa.float64()),)

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        values, _ = columns[0].split_finite()
        return (pa.array(sum_floats(groups, values, weights)),)


@dataclass(frozen=True)
class SpecialsFn(VectorFn):
    """Counts of NaN, +inf and -inf, kept apart from the finite sum, so that their retraction gives a finite result."""

    label = "specials"

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return tuple(pa.field(name, pa.int64()) for name in ("nan", "inf", "minus_inf"))

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        special = columns[0].split_finite()[1] if pa.types.is_floating(columns[0].type) else None
        if special is None:
            return tuple(pa.array(np.zeros(groups.count, np.int64)) for _ in range(3))
        values = columns[0].values[special]
        weighed = np.ones(len(values), np.int64) if weights is None else weights[special]
        codes = groups.codes[special]
        masks = (np.isnan(values), values == np.inf, values == -np.inf)
        return tuple(pa.array(sum_counts(Groups(codes[m], groups.count), weighed[m])) for m in masks)

    def sum_ints(self, groups: Groups, values: np.ndarray) -> np.ndarray:
        return sum_counts(groups, values)


def with_specials(finite: np.ndarray, specials: Accumulators) -> np.ndarray:
    """Finite sums with NaN and infinities added by IEEE arithmetic."""
    nan, inf, minus_inf = (int64s(a) for a in specials)
    if not (nan.any() or inf.any() or minus_inf.any()):
        return finite
    result = np.where(inf > 0, np.inf, finite)
    result = np.where(minus_inf > 0, -np.inf, result)
    result[(nan > 0) | ((inf > 0) & (minus_inf > 0))] = np.nan
    return result


@dataclass(frozen=True, repr=False)
class Sum(Combiner):
    """The sum of the values.

    Law: `Sum(a + b) = Sum(a) + Sum(b)`. Integers are summed in 128 bits and decimals in 192; a result outside its type
    raises when it is extracted. Durations sum to a duration. Integers, decimals and durations are GROUP. Floats are
    summed plainly (CANCELLATIVE: the error is at most `n * 2**-53 * sum(|x|)` over all rows and retractions). With
    `exact=True` floats are GROUP: the result is the exact sum, correctly rounded, for every order, cut and retraction
    of the rows (equal to `math.fsum`). A plain sum of finite values that once left the range of floats (above 1.8e308)
    stays infinite or NaN, even if those values are retracted; an exact sum becomes finite again. Null is ignored. NaN
    and infinities act as in IEEE arithmetic and can be retracted. No values give null. If as many values were
    retracted as came, but other values, the result is their difference for GROUP, and null for CANCELLATIVE.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": [1e100, 1.0, 1e100], "w": [1, 1, -1]})
    >>> exact = uc.Sum("x", exact=True)
    >>> uc.aggregate(t, diff="w", fast=uc.Sum("x"), exact=exact).to_pylist()
    [{'fast': 0.0, 'exact': 1.0}]
    """

    input: Input
    exact: bool = field(default=False)

    @property
    def capability(self) -> Capability:
        return Capability.GROUP if self.exact else Capability.CANCELLATIVE

    def tolerance(self, magnitudes: Sequence[float], count: int) -> float:
        return 0.0 if self.exact else count * 2.0**-53 * math.fsum(magnitudes)

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        parts, total, output = sum_of(self, self.input, schema, self.exact)
        whole = sum_kernel(input_type(self.input, schema, self), output, self.exact)
        return CompiledCombiner(parts=parts, finish=total, output=output, additive=True, whole=whole)


def sum_of(who: Combiner, input: Input, schema: pa.Schema, exact: bool) -> tuple[tuple[Part, ...], Finish, pa.DataType]:
    """The parts of a sum, its finish and its type, for a column of any type that can be summed."""
    kind = input_type(input, schema, who)
    expr = expression(input)
    count = count_of(input)
    if pa.types.is_integer(kind) or pa.types.is_duration(kind):
        output = (
            pa.uint64() if pa.types.is_unsigned_integer(kind) else kind if pa.types.is_duration(kind) else pa.int64()
        )
        return (Part(WideSumFn(2), (expr,)), count), _finish_int(output), output
    if pa.types.is_decimal128(kind):
        output = pa.decimal128(38, kind.scale)
        return (Part(WideSumFn(3), (expr,)), count), _finish_decimal(output), output
    if pa.types.is_floating(kind):
        fn: CombineFn = ExactSumFn() if exact else FloatSumFn()
        parts = (Part(fn, (expr,)), count, Part(SpecialsFn(), (expr,)))
        return parts, _finish_exact if exact else _finish_float, pa.float64()
    raise refuse(who, input, kind, "numbers")


def _finish_float(parts: Sequence[Accumulators]) -> pa.Array:
    total, count, specials = parts
    return null_if_empty(with_specials(floats(total[0]), specials), count[0])


def _finish_exact(parts: Sequence[Accumulators]) -> pa.Array:
    total, count, specials = parts
    # If as many rows were retracted as came, but other rows, their difference is left.
    nothing = (Digits.of(total).lengths == 0) & np.logical_and.reduce([int64s(a) <= 0 for a in specials])
    sums = with_specials(exact_sum(total), specials)
    return pa.array(sums, mask=nothing & (int64s(count[0]) == 0), from_pandas=False)


def _finish_int(output: pa.DataType) -> Finish:
    unsigned = pa.types.is_unsigned_integer(output)

    def finish(parts: Sequence[Accumulators]) -> pa.Array:
        (lo, hi), count = [int64s(a) for a in parts[0]], parts[1][0]
        missing = (int64s(count) == 0) & (lo == 0) & (hi == 0)
        over = (hi != (0 if unsigned else lo >> 63)) & ~missing
        if over.any():
            at = int(np.flatnonzero(over)[0])
            value = (int(hi[at]) << 64) + (int(lo[at]) & (2**64 - 1))
            raise OutOfRange(f"a sum is {value}, outside {output}: cast the column to a decimal or to float64")
        values = lo.view(np.uint64) if unsigned else lo
        return pa.array(values, mask=missing).cast(output)

    return finish


def _finish_decimal(output: pa.DataType) -> Finish:
    limit = 10**38

    def finish(parts: Sequence[Accumulators]) -> pa.Array:
        (lo, hi, top), count = [int64s(a) for a in parts[0]], parts[1][0]
        missing = (int64s(count) == 0) & (lo == 0) & (hi == 0) & (top == 0)
        limit_hi = limit >> 64
        suspect = ((top != hi >> 63) | (hi >= limit_hi) | (hi <= -limit_hi - 1)) & ~missing
        for at in np.flatnonzero(suspect):  # only sums close to the limit or above it
            value = (int(top[at]) << 128) + ((int(hi[at]) & (2**64 - 1)) << 64) + (int(lo[at]) & (2**64 - 1))
            if abs(value) >= limit:
                raise OutOfRange(f"a sum has more than 38 digits, outside {output}: cast the column to float64")
        return decimals(lo, hi, missing, output)

    return finish


def decimals(low: np.ndarray, high: np.ndarray, missing: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Decimals from the two lanes of their unscaled values, null where missing."""
    raw = np.empty((len(low), 2), np.int64)
    raw[:, 0], raw[:, 1] = low, high
    validity = pa.array(~missing).buffers()[1] if missing.any() else None
    return pa.Array.from_buffers(kind, len(low), [validity, pa.py_buffer(raw)])


def _lanes_of(column: Column) -> list[np.ndarray]:
    """The 64-bit lanes of an integer or decimal column without nulls."""
    if not pa.types.is_decimal(column.type):
        values = column.values
        return [values if values.dtype == np.uint64 else values.astype(np.int64, copy=False)]
    array = column.array
    raw = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]
    return [raw[:, 0], raw[:, 1]]


def _arrays(lanes: Sequence[np.ndarray]) -> Accumulators:
    return tuple(pa.array(lane) for lane in lanes)
