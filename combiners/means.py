"""Averages: the mean, the weighted mean, the geometric mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import OutOfRange
from .algebra import Accumulators, Capability
from .combiner import Combiner
from .compiled import CompiledCombiner, Finish
from .counting import count_of
from .input_types import Input, input_type, refuse
from .moments import any_special, spans
from .numeric import ExactInput, as_float, exact_input, is_time, number_input
from .parts import Part
from .product import log_bound, log_mean, log_parts
from .states.exact_quotient import ExactSums
from .states.exact_sum import Digits, ExactSumFn
from .states.vectors import floats, int64s, null_if_empty
from .summing import FloatSumFn, SpecialsFn, decimals, sum_of, with_specials
from .whole.sums import mean_kernel

_SMALL = 2**53


@dataclass(frozen=True, repr=False)
class Mean(Combiner):
    """The mean of the values.

    Law: `Mean = Sum / Count`, and both add up. The accumulators are those of `Sum` and `Count` (`sum_of`), shared
    with them. The sum of integers is exact, and their mean is correctly rounded (GROUP). The mean of decimals is a
    decimal with four more digits after the point, rounded half up, as in Spark; the mean of durations is a
    duration, rounded half up (GROUP). Floats are summed plainly (CANCELLATIVE: within `n * 2**-53 * sum(|x|)` over
    all rows and retractions). With `exact=True` the sum of floats is exact and the mean is correctly rounded
    (GROUP). Null is ignored. NaN and infinities act as in IEEE arithmetic and can be retracted. No values give
    null.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": [1e100, 1.0, 2.0, 1e100], "w": [1, 1, 1, -1]})
    >>> exact = uc.Mean("x", exact=True)
    >>> uc.aggregate(t, diff="w", fast=uc.Mean("x"), exact=exact).to_pylist()
    [{'fast': 0.0, 'exact': 1.5}]
    """

    input: Input
    exact: bool = field(default=False)

    @property
    def capability(self) -> Capability:
        return Capability.GROUP if self.exact else Capability.CANCELLATIVE

    def tolerance(self, magnitudes: Sequence[float], count: int) -> float:
        return 0.0 if self.exact else (count + 1) * 2.0**-53 * math.fsum(magnitudes)

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        kind = input_type(self.input, schema, self)
        parts, _, _ = sum_of(self, self.input, schema, self.exact)
        if pa.types.is_floating(kind):
            if self.exact:
                return CompiledCombiner(parts=parts, finish=_finish_exact, output=pa.float64())
            return CompiledCombiner(
                parts=parts, finish=_finish_fast, output=pa.float64(), whole=mean_kernel(kind, pa.float64())
            )
        if pa.types.is_duration(kind):
            return CompiledCombiner(
                parts=parts, finish=_finish_rounded(1, kind), output=kind, whole=mean_kernel(kind, kind)
            )
        if pa.types.is_decimal(kind):
            output = pa.decimal128(min(kind.precision + 4, 38), min(kind.scale + 4, 38))
            finish = _finish_rounded(10 ** (output.scale - kind.scale), output)
            return CompiledCombiner(parts=parts, finish=finish, output=output, whole=mean_kernel(kind, output))
        return CompiledCombiner(
            parts=parts, finish=_finish_ints, output=pa.float64(), whole=mean_kernel(kind, pa.float64())
        )


@dataclass(frozen=True, repr=False)
class WeightedMean(Combiner):
    """The mean of the values, weighted by another column.

    Law: `WeightedMean = Sum(value * weight) / Sum(weight)` over the rows without nulls, and both sums add up.
    CANCELLATIVE: the sums are plain sums, each within `n * 2**-53 * sum(|terms|)`. The error of the result depends on
    the sum of the weights, so `tolerance` promises nothing. With `exact=True` both sums are exact and the result is
    correctly rounded (GROUP). Weights may be negative or zero.
    Durations are always summed exactly, as values and as weights, and their mean is a duration, rounded half up. A
    row with a null in either column is ignored. NaN or an infinity in either column gives NaN (null for a duration)
    and can be retracted. No rows, and weights whose sum is zero, give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"price": [10.0, 20.0, None], "amount": [3, 1, 5]})
    >>> uc.aggregate(t, mean=uc.WeightedMean("price", "amount")).to_pylist()
    [{'mean': 12.5}]
    """

    input: Input
    weight: Input
    exact: bool = field(default=False)

    @property
    def capability(self) -> Capability:
        return Capability.GROUP if self.exact else Capability.CANCELLATIVE

    def tolerance(self, magnitudes: Sequence[float], count: int) -> float:
        return 0.0 if self.exact else math.inf

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        kinds = [input_type(input, schema, self) for input in (self.input, self.weight)]
        if pa.types.is_timestamp(kinds[0]) or pa.types.is_timestamp(kinds[1]):
            at = 0 if pa.types.is_timestamp(kinds[0]) else 1
            raise refuse(self, (self.input, self.weight)[at], kinds[at], "numbers and durations")
        # Times are integers with more digits than a float has: their sums are always exact.
        if self.exact or any(map(is_time, kinds)):
            return self._compile_exactly(*(exact_input(self, input, schema) for input in (self.input, self.weight)))
        value, weight = (number_input(self, input, schema) for input in (self.input, self.weight))
        count = count_of(value, weight)
        product = as_float(value, schema) * as_float(weight, schema)
        sums = (Part(FloatSumFn(), (product,)), Part(FloatSumFn(), (weight, value)))
        return CompiledCombiner(
            parts=(count, *sums, Part(SpecialsFn(), (product,))), finish=_finish_weighted, output=pa.float64()
        )

    def _compile_exactly(self, value: ExactInput, weight: ExactInput) -> CompiledCombiner:
        turns = ((value.expr, weight.expr), (weight.expr, value.expr))
        sums = (Part(ExactSumFn(2), turns[0]), Part(ExactSumFn(), turns[1]))
        parts = (count_of(*turns[0]), *sums, *(Part(SpecialsFn(), turn) for turn in turns))
        if value.is_time:
            return CompiledCombiner(
                parts=parts, finish=partial(_finish_weighted_span, self, value.kind), output=value.kind
            )
        return CompiledCombiner(parts=parts, finish=partial(_finish_weighted_exact, value.unit), output=pa.float64())


@dataclass(frozen=True, repr=False)
class GeometricMean(Combiner):
    """The geometric mean: the n-th root of the product of n values.

    Law: `GeometricMean = 2**(sum of log2(value) / Count)`, and both sums add up. The accumulators are those of
    `Product`. CANCELLATIVE: the logarithms are summed as pairs of floats, so the result is nearly always correctly
    rounded. A zero gives zero and a negative value gives NaN; both can be retracted.
    Null is ignored. NaN, and an infinity together with a zero, give NaN. No values give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"growth": [1.0, 10.0, 100.0]})
    >>> uc.aggregate(t, g=uc.GeometricMean("growth")).to_pylist()
    [{'g': 10.0}]
    """

    input: Input

    @property
    def capability(self) -> Capability:
        return Capability.CANCELLATIVE

    def tolerance(self, magnitudes: Sequence[float], count: int) -> float:
        return max(magnitudes, default=0.0) * log_bound(count)

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        return CompiledCombiner(
            parts=log_parts(self, self.input, schema), finish=_finish_geometric, output=pa.float64()
        )


def _finish_fast(parts: Sequence[Accumulators]) -> pa.Array:
    total, (counts,), specials = parts
    with np.errstate(all="ignore"):
        return null_if_empty(with_specials(floats(total[0]), specials) / int64s(counts), counts)


def _finish_exact(parts: Sequence[Accumulators]) -> pa.Array:
    total, (counts,), specials = parts
    mean = ExactSums(int64s(counts), total).quotient(_mean, int64s(counts) != 0)
    return null_if_empty(with_specials(mean, specials), counts)


def _finish_ints(parts: Sequence[Accumulators]) -> pa.Array:
    total, (counts,) = parts
    (low, high), n = (int64s(lane) for lane in total), int64s(counts)
    with np.errstate(all="ignore"):
        mean = low / n
    large = (high != low >> 63) | (low > _SMALL) | (low < -_SMALL)
    if large.any():
        mean[large] = ExactSums(n, total).quotient(_mean, large & (n != 0))[large]
    return null_if_empty(mean, counts)


def _mean(ints: Any, n: Any, total: Any) -> tuple[Any, Any]:
    return total, ints(n)


def _finish_rounded(factor: int, kind: pa.DataType) -> Finish:
    """The mean as an integer, times `factor`, rounded half away from zero: a decimal or a duration."""

    def finish(parts: Sequence[Accumulators]) -> pa.Array:
        lanes, n = [int64s(lane) for lane in parts[0]], int64s(parts[1][0])
        missing = n == 0
        low, sign = lanes[0], lanes[0] >> 63
        wide = np.logical_or.reduce([lane != sign for lane in lanes[1:]])
        wide |= (np.abs(low) > 2**61 // factor) | (low == -(2**63)) | (np.abs(n) > 2**61)
        count = np.abs(np.where(missing, 1, n))
        size = (2 * np.abs(np.where(wide, 0, low)) * factor + count) // (2 * count)
        if pa.types.is_decimal(kind) and kind.precision < 19 and (size[~wide & ~missing] >= 10**kind.precision).any():
            raise _too_long(kind)
        mean = np.where((low < 0) ^ (n < 0), -size, size)
        high = mean >> 63
        for at in np.flatnonzero(wide & ~missing):  # only sums too large for 64 bits, in Python's integers
            total = sum(int(lane[at]) % 2**64 << 64 * k for k, lane in enumerate(lanes[:-1]))
            total += int(lanes[-1][at]) << 64 * (len(lanes) - 1)
            value = (2 * abs(total) * factor + int(count[at])) // (2 * int(count[at]))
            value = -value if (total < 0) ^ (int(n[at]) < 0) else value
            if abs(value) >= (10**kind.precision if pa.types.is_decimal(kind) else 2**63):
                raise _too_long(kind)
            mean[at], high[at] = (value + 2**63) % 2**64 - 2**63, value >> 64
        if pa.types.is_duration(kind):
            return pa.array(mean, mask=missing).cast(kind)
        return decimals(mean, high, missing, kind)

    return finish


def _too_long(kind: pa.DataType) -> OutOfRange:
    """The error for a mean outside its type: a retraction without its row can move a mean away from all values."""
    return OutOfRange(f"a mean has too many digits for {kind}: cast the column to float64")


def _finish_weighted(parts: Sequence[Accumulators]) -> pa.Array:
    (counts,), above, below, specials = parts
    with np.errstate(all="ignore"):
        return _weighted(floats(above[0]) / floats(below[0]), floats(below[0]) == 0, counts, any_special(specials))


def _finish_weighted_exact(unit: Fraction, parts: Sequence[Accumulators]) -> pa.Array:
    (counts,), above, below, *specials = parts
    special = any_special(*specials)
    mean = ExactSums(int64s(counts), above, below).quotient(_ratio, ~special, unit)
    return _weighted(mean, np.isnan(mean), counts, special)


def _finish_weighted_span(who: Combiner, kind: pa.DataType, parts: Sequence[Accumulators]) -> pa.Array:
    (counts,), above, below, *specials = parts
    missing = (int64s(counts) == 0) | (Digits.of(below).lengths == 0) | any_special(*specials)
    sums = ExactSums(int64s(counts), above, below)
    return spans(who, sums.whole(_ratio, ~missing), missing, kind)


def _ratio(ints: Any, n: Any, above: Any, below: Any) -> tuple[Any, Any]:
    return above, below


def _weighted(mean: np.ndarray, weightless: np.ndarray, counts: pa.Array, special: np.ndarray) -> pa.Array:
    missing = (int64s(counts) == 0) | (weightless & ~special)
    return pa.array(np.where(special, np.nan, mean), mask=missing, from_pandas=False)


def _finish_geometric(parts: Sequence[Accumulators]) -> pa.Array:
    (counts,), logs, specials = parts
    zeros, negatives = int64s(logs[0]), int64s(logs[1])
    nan, inf, minus_inf = (int64s(column) for column in specials)
    mean = np.where(zeros > 0, 0.0, log_mean(logs, int64s(counts)))
    mean[inf > 0] = np.inf
    mean[(nan > 0) | (negatives > 0) | (minus_inf > 0) | ((inf > 0) & (zeros > 0))] = np.nan
    return null_if_empty(mean, counts)
