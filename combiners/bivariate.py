"""Statistics of two columns: covariance, correlation, the line of least squares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from .algebra import Accumulators, Capability
from .combiner import Combiner
from .compiled import CompiledCombiner
from .counting import count_of
from .floats.double_double import Doubles
from .input_types import Input, input_type
from .moments import any_special, divided, spread_bound, spread_of
from .numeric import ExactInput, exact_input, is_time, number_input, refuse_time
from .parts import Part
from .states.compensated_sum import PowerSumFn, SquareSumsFn, pairs_of
from .states.exact_quotient import ExactSums
from .states.exact_sum import ExactSumFn
from .states.vectors import int64s
from .summing import SpecialsFn

_LINE = pa.struct([(name, pa.float64()) for name in ("slope", "intercept", "r2")])


@dataclass(frozen=True)
class _Spreads:
    """The variances of x and y and their covariance, all times n**2, with the sums that they come from."""

    counts: np.ndarray
    outside: np.ndarray
    sum_x: Doubles
    sum_y: Doubles
    x: Doubles
    y: Doubles
    both: Doubles


class _Sums(ExactSums):
    """Exact sums in the units of their columns."""

    def __init__(
        self, counts: np.ndarray, special: np.ndarray, unit_x: Fraction, unit_y: Fraction, sums: Sequence[Accumulators]
    ) -> None:
        super().__init__(counts, *sums)
        self.special, self.unit_x, self.unit_y = special, unit_x, unit_y
        self.wanted = (counts > 1) & ~special


@dataclass(frozen=True, repr=False)
class _Pairs(Combiner):
    x: Input
    y: Input
    exact: bool = field(default=False, kw_only=True)

    @property
    def capability(self) -> Capability:
        return Capability.GROUP if self.exact else Capability.CANCELLATIVE

    def tolerance(self, magnitudes: Sequence[float], count: int) -> float:
        return 0.0 if self.exact else math.inf

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        # Times are integers with more digits than a float has: their sums are always exact.
        if self.exact or any(is_time(input_type(input, schema, self)) for input in (self.x, self.y)):
            return self._compile_exactly(*(exact_input(self, input, schema) for input in (self.x, self.y)))
        x, y = (number_input(self, input, schema) for input in (self.x, self.y))
        count, turns = count_of(x, y), ((x, y), (y, x))
        sums = (Part(SquareSumsFn(), turn) for turn in turns)
        return CompiledCombiner(
            parts=(count, *sums, Part(PowerSumFn((1, 1)), (x, y))), finish=self._finish_fast, output=self._output
        )

    def _compile_exactly(self, x: ExactInput, y: ExactInput) -> CompiledCombiner:
        for input, read in ((self.x, x), (self.y, y)):
            if self._in_units and read.is_time:
                raise refuse_time(self, input, read.kind, self._in_units)
        turns = ((x.expr, y.expr), (y.expr, x.expr))
        specials = (Part(SpecialsFn(), turn) for turn in turns)
        sums = (Part(ExactSumFn(), turn) for turn in turns)
        squares = [Part(ExactSumFn(2), (first, first, second)) for first, second in turns] if self._squares else []
        parts = (count_of(*turns[0]), *specials, *sums, Part(ExactSumFn(2), turns[0]), *squares)
        return CompiledCombiner(parts=parts, finish=partial(self._finish_exactly, x.unit, y.unit), output=self._output)

    # True if the exact form needs the sums of squares.
    _squares = True
    # The unit of the result, for an error text, if no column type has that unit; empty if the result has no unit.
    _in_units = ""
    _output = pa.float64()

    def _finish_exactly(self, unit_x: Fraction, unit_y: Fraction, parts: Sequence[Accumulators]) -> pa.Array:
        sums = _Sums(int64s(parts[0][0]), any_special(parts[1], parts[2]), unit_x, unit_y, parts[3:])
        with np.errstate(all="ignore"):
            return self._exact(sums)

    def _finish_fast(self, parts: Sequence[Accumulators]) -> pa.Array:
        counts, outside = int64s(parts[0][0]), np.logical_or.reduce([int64s(part[-1]) > 0 for part in parts[1:]])
        (sum_x, square_x), (sum_y, square_y), (products,) = (pairs_of(part) for part in parts[1:])
        with np.errstate(all="ignore"):
            x = spread_of(counts, sum_x, sum_x, square_x, square_x.high * counts)
            y = spread_of(counts, sum_y, sum_y, square_y, square_y.high * counts)
            scale = np.sqrt(square_x.high) * np.sqrt(square_y.high) * counts
            both = spread_of(counts, sum_x, sum_y, products, scale)
            return self._fast(_Spreads(counts=counts, outside=outside, sum_x=sum_x, sum_y=sum_y, x=x, y=y, both=both))

    def _exact(self, sums: _Sums) -> pa.Array:
        raise NotImplementedError

    def _fast(self, spreads: _Spreads) -> pa.Array:
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class Covariance(_Pairs):
    """The covariance: of a sample (divided by n - 1) or, with `population=True`, of a population (divided by n).

    Law: `Covariance = (n Sxy - Sx Sy) / (n (n - 1))`, where n is the count of the rows without nulls and Sx, Sy and
    Sxy are the sums of the values and of their products; each of these adds up. CANCELLATIVE: the sums are pairs of
    floats, and the covariance is within `tolerance(...)` of the exact one, besides the rounding of the result. Values
    above 2**440 in size count as infinite. With `exact=True` the result is the exact covariance of the rows that are
    left, for all types of numbers, correctly rounded; GROUP. Timestamps and durations are refused: their products
    have no type.
    A row with a null in either column is ignored. NaN and infinities give NaN and can be retracted. No rows, and one
    row in a sample, give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": [1.0, 2.0, 4.0], "y": [2.0, 3.0, None]})
    >>> sample, population = uc.Covariance("x", "y"), uc.Covariance("x", "y", population=True)
    >>> uc.aggregate(t, s=sample, p=population).to_pylist()
    [{'s': 0.5, 'p': 0.25}]
    """

    population: bool = field(default=False, kw_only=True)

    _squares = False
    _in_units = "the product of a time and a number"

    def tolerance(self, magnitudes: Sequence[float], count: int) -> float:
        return 0.0 if self.exact else spread_bound(magnitudes, count)

    def _exact(self, sums: _Sums) -> pa.Array:
        def covariance(ints: Any, n: Any, x: Any, y: Any, products: Any) -> tuple[Any, Any]:
            return ints(n) * products - x * y, ints(n * (n if self.population else n - 1))

        result = sums.quotient(covariance, sums.wanted, sums.unit_x * sums.unit_y)
        return self._to_array(np.where(sums.counts == 1, 0.0, result), sums.counts, sums.special)

    def _fast(self, spreads: _Spreads) -> pa.Array:
        result = divided(spreads.both.nearest, spreads.counts, self.population)
        return self._to_array(result, spreads.counts, spreads.outside)

    def _to_array(self, result: np.ndarray, counts: np.ndarray, special: np.ndarray) -> pa.Array:
        missing = counts <= (0 if self.population else 1)
        return pa.array(np.where(special, np.nan, result), mask=missing, from_pandas=False)


class Correlation(_Pairs):
    """Pearson's correlation coefficient, from -1 to 1.

    Law: the result is the covariance over the two standard deviations, from the accumulators of `LinearRegression`
    and `Covariance`, each of which adds up. CANCELLATIVE: the sums are pairs of floats, and the error of the result
    is their error over the two variances. Nothing is promised for values that are nearly equal: `tolerance` is
    infinite. Values above 2**440 in size count as infinite. With `exact=True`, and always for timestamps and
    durations, the sums are exact and the result is correctly rounded; GROUP.
    A row with a null in either column is ignored. NaN and infinities give NaN and can be retracted. No rows, one row,
    and a column whose values are all equal give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": [1, 2, 3], "y": [2, 4, 7]})
    >>> r = uc.aggregate(t, r=uc.Correlation("x", "y"))["r"][0].as_py()
    >>> round(r, 12)
    0.993399267799
    """

    def _exact(self, sums: _Sums) -> pa.Array:
        result = sums.over_root(_cosine, sums.wanted)
        return self._to_array(result, np.isnan(result), sums.counts, sums.special)

    def _fast(self, spreads: _Spreads) -> pa.Array:
        x, y = spreads.x.nearest, spreads.y.nearest
        result = spreads.both.nearest / (np.sqrt(x) * np.sqrt(y))
        return self._to_array(result, ~((x > 0) & (y > 0)), spreads.counts, spreads.outside)

    def _to_array(self, result: np.ndarray, none: np.ndarray, counts: np.ndarray, special: np.ndarray) -> pa.Array:
        missing = (counts <= 1) | (none & ~special)
        return pa.array(np.where(special, np.nan, np.clip(result, -1.0, 1.0)), mask=missing, from_pandas=False)


class LinearRegression(_Pairs):
    """The line of least squares, `y = slope * x + intercept`; `r2` is the part of the variance of y that it explains.

    Law: `slope = (n Sxy - Sx Sy) / (n Sxx - Sx**2)` and `intercept = (Sy Sxx - Sx Sxy) / (n Sxx - Sx**2)`, from the
    count of the rows without nulls and the sums of the values, of their squares and of their products, each of which
    adds up. CANCELLATIVE: the sums are pairs of floats, and the error of the results is their error over the variance
    of x. Nothing is promised for values that are nearly equal: `tolerance` is infinite. Values above 2**440 in size
    count as infinite. With `exact=True` the sums are exact and all three results are correctly rounded, for all types
    of numbers; GROUP. Timestamps and durations are refused, because a slope per unit of time has no type: cast them.
    A row with a null in either column is ignored. NaN and infinities give NaN and can be retracted. With fewer than
    two different x there is no line, and the result is null. If all y are equal, r2 is 1, as in Spark.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": [0, 1, 2], "y": [1.0, 3.0, 5.0]})
    >>> uc.aggregate(t, line=uc.LinearRegression("x", "y")).to_pylist()
    [{'line': {'slope': 2.0, 'intercept': 1.0, 'r2': 1.0}}]
    """

    _in_units = "a line with a slope per unit of time"
    _output = _LINE

    def _exact(self, sums: _Sums) -> pa.Array:
        slope = sums.quotient(_slope, sums.wanted, sums.unit_y / sums.unit_x)
        intercept = sums.quotient(_intercept, sums.wanted, sums.unit_y)
        r2 = sums.quotient(_determination, sums.wanted)
        # No slope means that all x are equal; a slope without r2 means that all y are equal.
        columns = (slope, intercept, np.where(np.isnan(r2), 1.0, r2))
        return self._to_array(columns, np.isnan(slope), sums.counts, sums.special)

    def _fast(self, spreads: _Spreads) -> pa.Array:
        slope = spreads.both / spreads.x
        intercept = (spreads.sum_y - slope * spreads.sum_x) / spreads.counts.astype(np.float64)
        y = spreads.y.nearest
        r2 = np.where(y > 0, np.minimum(slope.nearest * (spreads.both.nearest / y), 1.0), 1.0)
        none = ~(spreads.x.nearest > 0)
        return self._to_array((slope.nearest, intercept.nearest, r2), none, spreads.counts, spreads.outside)

    def _to_array(
        self, columns: Sequence[np.ndarray], none: np.ndarray, counts: np.ndarray, special: np.ndarray
    ) -> pa.Array:
        missing = (counts <= 1) | (none & ~special)
        arrays = [pa.array(np.where(special, np.nan, column), from_pandas=False) for column in columns]
        return pa.StructArray.from_arrays(arrays, fields=list(_LINE), mask=pa.array(missing))


def _slope(ints: Any, n: Any, x: Any, y: Any, products: Any, squares: Any, others: Any) -> tuple[Any, Any]:
    return ints(n) * products - x * y, ints(n) * squares - x * x


def _intercept(ints: Any, n: Any, x: Any, y: Any, products: Any, squares: Any, others: Any) -> tuple[Any, Any]:
    return y * squares - x * products, ints(n) * squares - x * x


def _cosine(ints: Any, n: Any, x: Any, y: Any, products: Any, squares: Any, others: Any) -> tuple[Any, Any]:
    return ints(n) * products - x * y, (ints(n) * squares - x * x) * (ints(n) * others - y * y)


def _determination(ints: Any, n: Any, x: Any, y: Any, products: Any, squares: Any, others: Any) -> tuple[Any, Any]:
    both = ints(n) * products - x * y
    return both * both, (ints(n) * squares - x * x) * (ints(n) * others - y * y)
