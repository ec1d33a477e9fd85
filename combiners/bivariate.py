"""How two columns vary together: covariance, correlation, the line of least squares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from .algebra import Accumulators, Capability
from .combiner import Combiner, Input, Lowered, Part
from .compensated import PowerSumFn, SquareSumsFn, pairs_of
from .counting import count_of
from .doubles import Doubles
from .exact import ExactSumFn
from .moments import any_special, divided, spread_bound, spread_of
from .numeric import number_input
from .rational import ExactSums
from .summing import SpecialsFn
from .vectors import int64s

_LINE = pa.struct([(name, pa.float64()) for name in ("slope", "intercept", "r2")])


@dataclass(frozen=True)
class _Spreads:
    """n**2 times the variances of x and y and their covariance, with the sums that they are made of."""

    counts: np.ndarray
    outside: np.ndarray
    sum_x: Doubles
    sum_y: Doubles
    x: Doubles
    y: Doubles
    both: Doubles


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

    def lower(self, schema: pa.Schema) -> Lowered:
        x, y = (number_input(self, given, schema) for given in (self.x, self.y))
        count, turns = count_of(x, y), ((x, y), (y, x))
        if self.exact:
            specials = (Part(SpecialsFn(), turn) for turn in turns)
            sums = (Part(ExactSumFn(), turn) for turn in turns)
            squares = [Part(ExactSumFn(2), (first, first, second)) for first, second in turns] if self._squares else []
            parts = (count, *specials, *sums, Part(ExactSumFn(2), (x, y)), *squares)
            return Lowered(parts, self._finish_exactly, self._output)
        sums = (Part(SquareSumsFn(), turn) for turn in turns)
        return Lowered((count, *sums, Part(PowerSumFn((1, 1)), (x, y))), self._finish_fast, self._output)

    # Whether the exact form needs the sums of squares.
    _squares = True
    _output = pa.float64()

    def _finish_exactly(self, parts: Sequence[Accumulators]) -> pa.Array:
        counts = int64s(parts[0][0])
        with np.errstate(all="ignore"):
            return self._exact(ExactSums(counts, *parts[3:]), counts, any_special(parts[1], parts[2]))

    def _finish_fast(self, parts: Sequence[Accumulators]) -> pa.Array:
        counts, outside = int64s(parts[0][0]), np.logical_or.reduce([int64s(part[-1]) > 0 for part in parts[1:]])
        (sum_x, square_x), (sum_y, square_y), (products,) = (pairs_of(part) for part in parts[1:])
        with np.errstate(all="ignore"):
            x = spread_of(counts, sum_x, sum_x, square_x, square_x.high * counts)
            y = spread_of(counts, sum_y, sum_y, square_y, square_y.high * counts)
            scale = np.sqrt(square_x.high) * np.sqrt(square_y.high) * counts
            both = spread_of(counts, sum_x, sum_y, products, scale)
            return self._fast(_Spreads(counts, outside, sum_x, sum_y, x, y, both))

    def _exact(self, sums: ExactSums, counts: np.ndarray, special: np.ndarray) -> pa.Array:
        raise NotImplementedError

    def _fast(self, spreads: _Spreads) -> pa.Array:
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class Covariance(_Pairs):
    """The covariance: of a sample (divided by n - 1) or, with `population=True`, of a population (divided by n).

    Law: over the rows in which both are known, from the count n and the sums Sx, Sy, Sxy of the values and their
    products, each of which adds up, `Covariance = (n Sxy - Sx Sy) / (n (n - 1))`. CANCELLATIVE: the sums are
    pairs of floats, and the covariance is within `tolerance(...)` of the exact one, besides the rounding of the
    result. Values above 2**440 in size count as infinite. With `exact=True` the result is the exact covariance of
    what is left, correctly rounded; GROUP.
    Null in either column: the row is ignored. NaN and infinities give NaN and can be taken back; no rows, and one
    row in a sample, give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": [1.0, 2.0, 4.0], "y": [2.0, 3.0, None]})
    >>> uc.aggregate(t, s=uc.Covariance("x", "y"), p=uc.Covariance("x", "y", population=True)).to_pylist()
    [{'s': 0.5, 'p': 0.25}]
    """

    population: bool = field(default=False, kw_only=True)

    _squares = False

    def tolerance(self, magnitudes: Sequence[float], count: int) -> float:
        return 0.0 if self.exact else spread_bound(magnitudes, count)

    def _exact(self, sums: ExactSums, counts: np.ndarray, special: np.ndarray) -> pa.Array:
        def covariance(ints: Any, n: Any, x: Any, y: Any, products: Any) -> tuple[Any, Any]:
            return ints(n) * products - x * y, ints(n * (n if self.population else n - 1))

        result = sums.quotient(covariance, (counts > 1) & ~special)
        return self._known(np.where(counts == 1, 0.0, result), counts, special)

    def _fast(self, spreads: _Spreads) -> pa.Array:
        result = divided(spreads.both.nearest, spreads.counts, self.population)
        return self._known(result, spreads.counts, spreads.outside)

    def _known(self, result: np.ndarray, counts: np.ndarray, special: np.ndarray) -> pa.Array:
        missing = counts <= (0 if self.population else 1)
        return pa.array(np.where(special, np.nan, result), mask=missing, from_pandas=False)


class Correlation(_Pairs):
    """Pearson's correlation coefficient, from -1 to 1.

    Law: from the accumulators of `LinearRegression` and `Covariance`, each of which adds up, it is the covariance
    over the two standard deviations. CANCELLATIVE: the sums are pairs of floats; the result is off by as much as
    they are, over the two variances, so nothing is promised of values that nearly agree (`tolerance` is infinite).
    Values above 2**440 in size count as infinite. With `exact=True` the sums are exact and the result is within one
    unit in the last place; GROUP.
    Null in either column: the row is ignored. NaN and infinities give NaN and can be taken back; no rows, one row,
    and a column whose values are all the same give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> r = uc.aggregate(pa.table({"x": [1, 2, 3], "y": [2, 4, 7]}), r=uc.Correlation("x", "y"))["r"][0].as_py()
    >>> round(r, 12)
    0.993399267799
    """

    def _exact(self, sums: ExactSums, counts: np.ndarray, special: np.ndarray) -> pa.Array:
        wanted = (counts > 1) & ~special
        size = np.sqrt(sums.quotient(_determination, wanted))
        slope = sums.quotient(_slope, wanted)
        return self._known(np.copysign(size, slope), np.isnan(size), counts, special)

    def _fast(self, spreads: _Spreads) -> pa.Array:
        x, y = spreads.x.nearest, spreads.y.nearest
        result = spreads.both.nearest / (np.sqrt(x) * np.sqrt(y))
        return self._known(result, ~((x > 0) & (y > 0)), spreads.counts, spreads.outside)

    def _known(self, result: np.ndarray, none: np.ndarray, counts: np.ndarray, special: np.ndarray) -> pa.Array:
        missing = (counts <= 1) | (none & ~special)
        return pa.array(np.where(special, np.nan, np.clip(result, -1.0, 1.0)), mask=missing, from_pandas=False)


class LinearRegression(_Pairs):
    """The line of least squares, `y = slope * x + intercept`, with `r2`, how much of the variance of y it explains.

    Law: over the rows in which both are known, from the count and the sums of the values, their squares and their
    products, each of which adds up, `slope = (n Sxy - Sx Sy) / (n Sxx - Sx**2)` and
    `intercept = (Sy Sxx - Sx Sxy) / (n Sxx - Sx**2)`. CANCELLATIVE: the sums are pairs of floats; the results are
    off by as much as they are, over the variance of x, so nothing is promised of values that nearly agree
    (`tolerance` is infinite). Values above 2**440 in size count as infinite. With `exact=True` the sums are exact
    and all three results are correctly rounded; GROUP.
    Null in either column: the row is ignored. NaN and infinities give NaN and can be taken back; with fewer than
    two different x there is no line, and the result is null; if all y are the same, r2 is 1, as in Spark.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": [0, 1, 2], "y": [1.0, 3.0, 5.0]})
    >>> uc.aggregate(t, line=uc.LinearRegression("x", "y")).to_pylist()
    [{'line': {'slope': 2.0, 'intercept': 1.0, 'r2': 1.0}}]
    """

    _output = _LINE

    def _exact(self, sums: ExactSums, counts: np.ndarray, special: np.ndarray) -> pa.Array:
        wanted = (counts > 1) & ~special
        slope, intercept, r2 = (sums.quotient(formula, wanted) for formula in (_slope, _intercept, _determination))
        # Without a slope there is no spread of x; with one but no r2, none of y.
        return self._known((slope, intercept, np.where(np.isnan(r2), 1.0, r2)), np.isnan(slope), counts, special)

    def _fast(self, spreads: _Spreads) -> pa.Array:
        slope = spreads.both / spreads.x
        intercept = (spreads.sum_y - slope * spreads.sum_x) / spreads.counts.astype(np.float64)
        y = spreads.y.nearest
        r2 = np.where(y > 0, np.minimum(slope.nearest * (spreads.both.nearest / y), 1.0), 1.0)
        none = ~(spreads.x.nearest > 0)
        return self._known((slope.nearest, intercept.nearest, r2), none, spreads.counts, spreads.outside)

    def _known(
        self, columns: Sequence[np.ndarray], none: np.ndarray, counts: np.ndarray, special: np.ndarray
    ) -> pa.Array:
        missing = (counts <= 1) | (none & ~special)
        arrays = [pa.array(np.where(special, np.nan, column), from_pandas=False) for column in columns]
        return pa.StructArray.from_arrays(arrays, fields=list(_LINE), mask=pa.array(missing))


def _slope(ints: Any, n: Any, x: Any, y: Any, products: Any, squares: Any, others: Any) -> tuple[Any, Any]:
    return ints(n) * products - x * y, ints(n) * squares - x * x


def _intercept(ints: Any, n: Any, x: Any, y: Any, products: Any, squares: Any, others: Any) -> tuple[Any, Any]:
    return y * squares - x * products, ints(n) * squares - x * x


def _determination(ints: Any, n: Any, x: Any, y: Any, products: Any, squares: Any, others: Any) -> tuple[Any, Any]:
    both = ints(n) * products - x * y
    return both * both, (ints(n) * squares - x * x) * (ints(n) * others - y * y)
