"""Moments: variance, standard deviation, skewness, kurtosis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument, OutOfRange
from .algebra import Accumulators, Capability
from .combiner import Combiner
from .compiled import CompiledCombiner, Whole
from .counting import count_of
from .floats.double_double import Doubles
from .input_types import Input, input_type
from .numeric import ExactInput, exact_input, is_time, number_input, refuse_time
from .parts import Part
from .retractable import Retractable
from .states.central_moments import CentralMomentsFn
from .states.compensated_sum import LARGEST, PowerSumFn, SquareSumsFn, error_bound, pairs_of
from .states.exact_quotient import ExactSums
from .states.exact_sum import ExactSumFn
from .states.vectors import floats, int64s
from .summing import SpecialsFn
from .whole.spreads import shape_kernel, spread_kernel

NEGLIGIBLE = 2.0**-75
"""A spread that is at most this part of the mean square counts as zero."""


@dataclass(frozen=True, repr=False)
class _Moments(Retractable):
    """The common base of the moments: the choice of one of three forms."""

    input: Input
    exact: bool = field(default=False, kw_only=True)
    retractable: bool = field(default=True, kw_only=True)

    _order = 2
    _with_retraction = Capability.CANCELLATIVE

    def __post_init__(self) -> None:
        if self.exact and not self.retractable:
            raise InvalidArgument(f"{self!r} has exact sums, which are always retractable: leave out retractable=False")

    @property
    def capability(self) -> Capability:
        return Capability.GROUP if self.exact else super().capability

    def append_only(self) -> Combiner:
        return self if self.exact else super().append_only()

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        who = replace(self, retractable=True)
        orders = range(3, self._order + 1)
        # Times are integers with more digits than a float has: their sums are always exact.
        if self.exact or is_time(input_type(self.input, schema, who)):
            input = exact_input(who, self.input, schema)
            sums = [Part(ExactSumFn(order), (input.expr,)) for order in (1, 2, *orders)]
            parts = (count_of(input.expr), Part(SpecialsFn(), (input.expr,)), *sums)
            return self._exactly(parts, input)
        expr = number_input(who, self.input, schema)
        if self.retractable:
            powers = [Part(PowerSumFn((order,)), (expr,)) for order in orders]
            return CompiledCombiner(
                parts=(count_of(expr), Part(SquareSumsFn(), (expr,)), *powers),
                finish=self._finish_fast,
                output=pa.float64(),
            )
        part = Part(CentralMomentsFn(self._order), (expr,))
        whole = self._whole(expr.type(schema))
        return CompiledCombiner(parts=(part,), finish=self._finish_central, output=pa.float64(), whole=whole)

    def _whole(self, kind: pa.DataType) -> Whole | None:
        """The kernel of one group, from moments about the mean of an input of this type."""
        return shape_kernel(kind, self._order, self._finish_central)

    def _exactly(self, parts: tuple[Part, ...], input: ExactInput) -> CompiledCombiner:
        """The exact form, for an input of this type."""
        raise NotImplementedError

    def _finish_fast(self, parts: Sequence[Accumulators]) -> pa.Array:
        raise NotImplementedError

    def _finish_central(self, parts: Sequence[Accumulators]) -> pa.Array:
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class _Spread(_Moments):
    population: bool = field(default=False, kw_only=True)

    _root = False

    def tolerance(self, magnitudes: Sequence[float], count: int) -> float:
        if self.exact:
            return 0.0
        bound = spread_bound(magnitudes, count)
        if not self.retractable:
            size = max(magnitudes, default=0.0)
            bound += (count + 8) * 2.0**-50 * size * size
        return math.sqrt(bound) if self._root else bound

    def _finish_fast(self, parts: Sequence[Accumulators]) -> pa.Array:
        counts, (first, second) = int64s(parts[0][0]), pairs_of(parts[1])
        with np.errstate(all="ignore"):
            spread = spread_of(counts, first, first, second, second.high * counts)
            result = divided(spread.nearest, counts, self.population)
        return self._to_array(np.where(int64s(parts[1][-1]) > 0, np.nan, result), counts)

    def _whole(self, kind: pa.DataType) -> Whole | None:
        return spread_kernel(kind, self.population, self._root)

    def _finish_central(self, parts: Sequence[Accumulators]) -> pa.Array:
        counts, n = int64s(parts[0][0]), int64s(parts[0][0]).astype(np.float64)
        with np.errstate(all="ignore"):
            return self._to_array(floats(parts[0][3]) / (n if self.population else n - 1.0), counts)

    def _exactly(self, parts: tuple[Part, ...], input: ExactInput) -> CompiledCombiner:
        if not input.is_time:
            return CompiledCombiner(parts=parts, finish=partial(self._finish_exact, input.unit**2), output=pa.float64())
        if not self._root:
            raise refuse_time(replace(self, retractable=True), self.input, input.kind, "the square of a time")
        span = pa.duration(input.kind.unit)
        return CompiledCombiner(parts=parts, finish=partial(self._finish_span, span), output=span)

    def _finish_exact(self, unit: Fraction, parts: Sequence[Accumulators]) -> pa.Array:
        counts, special = int64s(parts[0][0]), any_special(parts[1])
        sums, wanted = ExactSums(counts, *parts[2:]), (counts > 1) & ~special
        result = (sums.root if self._root else sums.quotient)(self._variance, wanted, unit)
        result = np.where(special, np.nan, np.where(counts == 1, 0.0, np.fmax(result, 0.0)))
        return pa.array(result, mask=self._lacks_result(counts), from_pandas=False)

    def _finish_span(self, span: pa.DataType, parts: Sequence[Accumulators]) -> pa.Array:
        counts = int64s(parts[0][0])
        roots = ExactSums(counts, *parts[2:]).whole_root(self._variance, counts > 1)
        return spans(self, roots, self._lacks_result(counts), span)

    def _variance(self, ints: Any, n: Any, x: Any, squares: Any) -> tuple[Any, Any]:
        return ints(n) * squares - x * x, ints(n * (n if self.population else n - 1))

    def _lacks_result(self, counts: np.ndarray) -> np.ndarray:
        return counts <= (0 if self.population else 1)

    def _to_array(self, variance: np.ndarray, counts: np.ndarray) -> pa.Array:
        result = np.maximum(variance, 0.0)
        result = np.sqrt(result) if self._root else result
        return pa.array(result, mask=self._lacks_result(counts), from_pandas=False)


class Variance(_Spread):
    """The variance: of a sample (divided by n - 1) or, with `population=True`, of a population (divided by n).

    Law: `Variance = (n S2 - S1**2) / (n (n - 1))`, where n is the count and S1 and S2 are the sums of the values and of
    their squares; each of these adds up. CANCELLATIVE: the sums are pairs of floats, and the variance is within
    `tolerance(...)` of the exact one, besides the rounding of the result. For example, if 1e9 is retracted from
    {1e9, 1, 2, 3}, the variance is 1 to within 1e-4. Values above 2**440 in size count as infinite, and integers and
    decimals are read as floats. With `exact=True` the sums are exact, and the result is the exact variance of the
    values that are left, for all types of numbers, correctly rounded; GROUP. With `retractable=False` the state is the
    count, the mean and the spread about the mean; MONOID. Timestamps and durations are refused: the square of a time
    has no type.
    Null is ignored. NaN and infinities give NaN and can be retracted. No values, and one value in a sample, give
    null.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": [1e9, 1.0, 2.0, 3.0, 1e9], "w": [1, 1, 1, 1, -1]})
    >>> exact = uc.Variance("x", population=True, exact=True)
    >>> uc.aggregate(t, diff="w", s=uc.Variance("x"), p=exact).to_pylist()
    [{'s': 1.0, 'p': 0.6666666666666666}]
    """


class StdDev(_Spread):
    """The standard deviation, of a sample or, with `population=True`, of a population.

    Law: `StdDev = sqrt(Variance)`. The accumulators are those of `Variance`, shared with it, and all its rules hold.
    With `exact=True` the result is the root of the exact variance, correctly rounded, even if the variance is not a
    float. The sums of timestamps and durations are always exact, and the result is then a duration, rounded half up;
    GROUP.

    >>> import pyarrow as pa, uncombine as uc
    >>> uc.aggregate(pa.table({"x": [1, 3, 5, None]}), s=uc.StdDev("x")).to_pylist()
    [{'s': 2.0}]
    """

    _root = True


@dataclass(frozen=True, repr=False)
class _Shape(_Moments):
    def tolerance(self, magnitudes: Sequence[float], count: int) -> float:
        return 0.0 if self.exact else math.inf

    def _finish_fast(self, parts: Sequence[Accumulators]) -> pa.Array:
        # The highest power has the narrowest range, so a value outside any range is outside that one.
        counts, outside = int64s(parts[0][0]), int64s(parts[-1][-1]) > 0
        with np.errstate(all="ignore"):
            n = counts.astype(np.float64)
            first, second, *higher = (total / n for part in parts[1:] for total in pairs_of(part))
            spread = second - first * first
            none = ~(spread.high > second.high * NEGLIGIBLE)
            shape = self._shape(spread.nearest, *self._central(first, second, *higher))
        return self._to_array(shape, counts, outside, none)

    def _finish_central(self, parts: Sequence[Accumulators]) -> pa.Array:
        counts = int64s(parts[0][0])
        with np.errstate(all="ignore"):
            spread, *higher = (floats(column) / counts for column in parts[0][3:])
            return self._to_array(self._shape(spread, *higher), counts, np.isnan(spread), spread == 0)

    def _exactly(self, parts: tuple[Part, ...], input: ExactInput) -> CompiledCombiner:
        return CompiledCombiner(parts=parts, finish=self._finish_exact, output=pa.float64())

    def _finish_exact(self, parts: Sequence[Accumulators]) -> pa.Array:
        counts, special = int64s(parts[0][0]), any_special(parts[1])
        with np.errstate(all="ignore"):
            shape = self._exact_shape(ExactSums(counts, *parts[2:]), (counts > 1) & ~special)
        return self._to_array(shape, counts, special, np.isnan(shape) | (counts == 1))

    def _to_array(self, shape: np.ndarray, counts: np.ndarray, special: np.ndarray, none: np.ndarray) -> pa.Array:
        """The results: NaN for groups with NaN or an infinity, null for no values and for values that are all equal."""
        missing = (counts <= 0) | (none & ~special)
        return pa.array(np.where(special, np.nan, shape), mask=missing, from_pandas=False)

    def _central(self, *means: Doubles) -> list[np.ndarray]:
        """The moments about the mean, the third and higher, from the means of the powers."""
        raise NotImplementedError

    def _shape(self, spread: np.ndarray, *central: np.ndarray) -> np.ndarray:
        """The result from the moments about the mean."""
        raise NotImplementedError

    def _exact_shape(self, sums: ExactSums, wanted: np.ndarray) -> np.ndarray:
        """The result from exact sums; NaN if all values are equal."""
        raise NotImplementedError


class Skewness(_Shape):
    """The skewness of the values as a population, as Spark has it: the third central moment over sigma**3.

    Law: the result is made of the count and the sums of the values, of their squares and of their cubes, each of which
    adds up; the first two sums are those of `Variance`. CANCELLATIVE: the sums are pairs of floats, each within
    `error_bound(n, size, power)` of the exact one, and the error of the result is their error over the moments about
    the mean. `tolerance` promises nothing, because the values that are left may be nearly equal. Values above 2**293
    in size count as infinite. With `exact=True`, and always for timestamps and durations, the sums are exact and the
    result is correctly rounded; GROUP. With `retractable=False` the state is small and nothing can be retracted;
    MONOID.
    Null is ignored. NaN and infinities give NaN and can be retracted. No values, and values that are all equal, give
    null.

    >>> import pyarrow as pa, uncombine as uc
    >>> uc.aggregate(pa.table({"x": [1, 1, 1, 5]}), s=uc.Skewness("x")).to_pylist()
    [{'s': 1.1547005383792515}]
    """

    _order = 3

    def _central(self, *means: Doubles) -> list[np.ndarray]:
        first, second, third = means
        return [(third - first * (second * 3.0 - first * first * 2.0)).nearest]

    def _shape(self, spread: np.ndarray, *central: np.ndarray) -> np.ndarray:
        return central[0] / (spread * np.sqrt(spread))

    def _exact_shape(self, sums: ExactSums, wanted: np.ndarray) -> np.ndarray:
        def shape(ints: Any, n: Any, x: Any, squares: Any, cubes: Any) -> tuple[Any, Any]:
            spread = ints(n) * squares - x * x
            above = ints(n * n) * cubes - 3 * (ints(n) * x * squares) + 2 * (x * x * x)
            return above, spread * spread * spread

        return sums.over_root(shape, wanted)


class Kurtosis(_Shape):
    """The excess kurtosis of the values as a population, as Spark has it: fourth central moment / sigma**4 - 3.

    Law: the result is made of the count and the sums of the values and of their powers up to the fourth, each of which
    adds up. All sums but the last are those of `Skewness`, and so are the bound and the forms. With `exact=True` the
    result is correctly rounded. Values above 2**220 in size count as infinite.
    Null is ignored. NaN and infinities give NaN and can be retracted. No values, and values that are all equal, give
    null.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": [1, 1, 1, 5]})
    >>> uc.aggregate(t, k=uc.Kurtosis("x", exact=True)).to_pylist()
    [{'k': -0.6666666666666666}]
    """

    _order = 4

    def _central(self, *means: Doubles) -> list[np.ndarray]:
        first, second, third, fourth = means
        inner = third * 4.0 - first * (second * 6.0 - first * first * 3.0)
        return [third.nearest, (fourth - first * inner).nearest]

    def _shape(self, spread: np.ndarray, *central: np.ndarray) -> np.ndarray:
        return central[-1] / (spread * spread) - 3.0

    def _exact_shape(self, sums: ExactSums, wanted: np.ndarray) -> np.ndarray:
        def excess(ints: Any, n: Any, x: Any, squares: Any, cubes: Any, fourths: Any) -> tuple[Any, Any]:
            spread = ints(n) * squares - x * x
            inner = 4 * (ints(n * n) * cubes) - 6 * (ints(n) * x * squares) + 3 * (x * x * x)
            below = spread * spread
            return ints(n * n) * ints(n) * fourths - x * inner - 3 * below, below

        return sums.quotient(excess, wanted)


def spread_bound(magnitudes: Sequence[float], count: int) -> float:
    """The greatest error of a fast variance or covariance, besides the rounding of the result."""
    size = min(max(magnitudes, default=0.0), 2.0 ** (LARGEST // 2))
    return error_bound(count, size, 2) + 2 * size * error_bound(count, size) + size * size * 2 * NEGLIGIBLE


def spread_of(counts: np.ndarray, x: Doubles, y: Doubles, products: Doubles, scale: np.ndarray) -> Doubles:
    """`n * sum(x y) - sum(x) * sum(y)`; zero if it is too small in proportion to `scale`."""
    spread = products * counts.astype(np.float64) - x * y
    some = np.abs(spread.high) > NEGLIGIBLE * np.abs(scale)
    return Doubles(np.where(some, spread.high, 0.0), np.where(some, spread.low, 0.0))


def divided(spread: np.ndarray, counts: np.ndarray, population: bool) -> np.ndarray:
    """A spread over n**2, or over n (n - 1) for a sample."""
    n = counts.astype(np.float64)
    return spread / (n * n if population else n * (n - 1.0))


def any_special(*specials: Accumulators) -> np.ndarray:
    """True for each group with NaN or an infinity among its values."""
    return np.logical_or.reduce([int64s(column) > 0 for part in specials for column in part])


def spans(who: Combiner, values: np.ndarray, missing: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Python integers as durations; raises if one does not fit."""
    large = np.flatnonzero((abs(values) >= 2**63) & ~missing)
    if len(large):
        raise OutOfRange(f"{who!r} is {values[large[0]]}, outside {kind}: cast its input to a coarser unit")
    return pa.array(np.where(missing, 0, values).astype(np.int64), mask=missing).cast(kind)
