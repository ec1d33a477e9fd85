"""Fast sums of values, squares and products that lose almost nothing: each held as a pair of floats, high + low.

Each value is cut at a power of two, the grid. The grid is so coarse that the sums of the upper parts are exact in
float64; the lower parts are so small that their rounding hardly matters, and are summed plainly. Both sums are made in
one pass, as the real and the imaginary part of a complex number. Cutting by adding and subtracting a large constant is
from Rump, Ogita and Oishi, "Accurate floating-point summation part I" (SIAM J. Sci. Comput. 31, 2008); the parts of a
product are
Dekker's, see `doubles`.

A sum of `n` terms of size up to `t` is within `error_bound(n, t)` of the exact one, see there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ..algebra import Accumulators, Capability, CombineFn, Weights
from ..floats.double_double import Doubles, two_product, two_sum
from ..rows.columns import Column
from ..rows.group_sums import CHUNK, sum_counts, sum_floats, sum_weights
from ..rows.groups import Groups
from .vectors import floats, int64s

LARGEST = 880
"""Terms are kept below 2**LARGEST, so that no step of a sum or of a result overflows."""

_ROWS = 1 << 16
_SPREAD = 12


@dataclass(frozen=True)
class PairSumsFn(CombineFn):
    """Pairs that add up, and the count of rows outside: NaN, infinite, or too large for their powers to be summed."""

    capability = Capability.CANCELLATIVE
    label = "pairs"
    names: ClassVar[tuple[str, ...]] = ("sum",)

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        pairs = [pa.field(f"{name}_{end}", pa.float64()) for name in self.names for end in ("high", "low")]
        return (*pairs, pa.field("outside", pa.int64()))

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        sums = [sum_pairs(groups, pair) for pair in pairs_of(accumulators)]
        return _packed(sums, sum_counts(groups, int64s(accumulators[-1])))

    def negate(self, accumulators: Accumulators) -> Accumulators:
        return tuple(pa.array(0 - int64s(column)) for column in accumulators)


@dataclass(frozen=True)
class SquareSumsFn(PairSumsFn):
    """The sums of the values and of their squares, in one pass; further inputs only leave out rows that are null."""

    label = "squares"
    names: ClassVar[tuple[str, ...]] = ("sum", "squares")

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        x = within(columns[0], 2)
        largest = 1 if weights is None else int(np.abs(weights).max(initial=0))
        if largest > 1:
            sums = [_sum_products(groups, [x.values] * power, weights) for power in (1, 2)]
        elif weights is None and pa.types.is_integer(columns[0].type) and x.largest**2 * len(groups) < 2.0**53:
            sums = [Doubles.of(sum_floats(groups, terms)) for terms in (x.values, np.square(x.values))]
        else:
            sums = _sum_squares(groups, x, None if weights is None else weights.astype(np.float64))
        return _packed(sums, _count(groups, x.outside, weights))


@dataclass(frozen=True)
class PowerSumFn(PairSumsFn):
    """The sum of the products of its inputs, each raised to its power."""

    powers: tuple[int, ...] = (1,)
    label = "powers"

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        factors: list[np.ndarray] = []
        outside: np.ndarray | None = None
        for column, power in zip(columns, self.powers, strict=True):
            x = within(column, max(sum(self.powers), 2))
            factors += [x.values] * power
            if x.outside is not None:
                outside = x.outside if outside is None else outside | x.outside
        if outside is not None:
            factors[0] = np.where(outside, 0.0, factors[0])
        if weights is not None and bool((weights == 1).all()):
            weights = None
        return _packed([_sum_products(groups, factors, weights)], _count(groups, outside, weights))


def pairs_of(accumulators: Accumulators) -> list[Doubles]:
    """The sums in accumulators of pairs."""
    numbers = [floats(column) for column in accumulators[:-1]]
    return [Doubles(high, low) for high, low in zip(numbers[::2], numbers[1::2], strict=True)]


def sum_pairs(groups: Groups, pairs: Doubles, weights: Weights = None) -> Doubles:
    """The sums of pairs by group."""
    if weights is not None:
        pairs = pairs * weights.astype(np.float64)
    sums = _Sums(groups.count)
    cutter = _cutter(_exponents(groups, pairs.high), _room(groups))
    for start in range(0, len(groups), _ROWS):
        part = slice(start, start + _ROWS)
        codes, high = groups.codes[part], pairs.high[part]
        constant = cutter[codes]
        terms = np.empty(len(codes), np.complex128)
        terms.real = (high + constant) - constant
        terms.imag = (high - terms.real) + pairs.low[part]
        sums.add(codes, terms)
    return sums.total()


def error_bound(count: int, largest: float, power: int = 1) -> float:
    """The greatest error of a sum of `count` values, each raised to `power` and at most `largest` in size.

    A retraction counts as a term. In the worst case the error is 2**-70 of the number of terms times their size for a
    thousand terms, and 2**-50 of it for a million. If rounding errors are independent, it is about 2**-85.
    """
    size = min(largest, 2.0 ** (LARGEST // max(power, 2)))
    return count * size**power * (min(count, CHUNK) + 4) ** 2 * 2.0**-90


@dataclass(frozen=True, slots=True, eq=False)
class Within:
    """A column as float64 with zero for values whose power cannot be summed, a mask of those, and the largest."""

    values: np.ndarray
    outside: np.ndarray | None
    largest: float


def within(column: Column, power: int) -> Within:
    """The values of a column that can be summed to a power."""
    return column.memo(f"within {power}", lambda: _find_within(column, power))


def _find_within(column: Column, power: int) -> Within:
    values = column.memo("floats", lambda: column.values.astype(np.float64, copy=False))
    limit = 2.0 ** (LARGEST // power)
    largest = column.memo("largest", lambda: _largest(values))
    if np.isfinite(largest):
        column.memo("finite", lambda: (values, None))
    if largest <= limit:
        return Within(values=values, outside=None, largest=largest)
    outside = ~(np.abs(values) <= limit)
    values = np.where(outside, 0.0, values)
    return Within(values=values, outside=outside, largest=_largest(values))


def _largest(values: np.ndarray) -> float:
    """The size of the largest value; NaN if a value is NaN."""
    with np.errstate(invalid="ignore"):
        return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def _count(groups: Groups, chosen: np.ndarray | None, weights: Weights) -> np.ndarray:
    if chosen is None:
        return np.zeros(groups.count, np.int64)
    return sum_weights(groups.take(chosen), None if weights is None else weights[chosen])


def _packed(sums: Sequence[Doubles], outside: np.ndarray) -> Accumulators:
    return (*(pa.array(part) for pair in sums for part in (pair.high, pair.low)), pa.array(outside))


class _Sums:
    """Complex sums by group, added to pairs before the real part can become inexact."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.open = np.zeros(count, np.complex128)
        self.rows = 0
        self.closed: Doubles | None = None

    def add(self, codes: np.ndarray, terms: np.ndarray) -> None:
        if self.rows + len(codes) > CHUNK:
            self.closed = self.total()
            self.open, self.rows = np.zeros(self.count, np.complex128), 0
        np.add.at(self.open, codes, terms)
        self.rows += len(codes)

    def total(self) -> Doubles:
        pair = Doubles(*two_sum(self.open.real, self.open.imag))
        return pair if self.closed is None else self.closed + pair


def _room(groups: Groups) -> int:
    """The number of bits that the sum of a group's rows may need in addition to those of a row."""
    return max(int(groups.sizes.max(initial=0)), 2).bit_length() if len(groups) < CHUNK else CHUNK.bit_length()


def _cutter(exponent: np.ndarray | int, room: int) -> np.ndarray:
    """The constant that cuts terms below 2**exponent on a grid of 2**(exponent + room - 53)."""
    return np.ldexp(1.5, np.maximum(exponent + room - 1, -1000))


def _exponents(groups: Groups, values: np.ndarray) -> np.ndarray:
    """The exponent e of each group, such that its values lie below 2**e."""
    top = np.zeros(groups.count)
    np.maximum.at(top, groups.codes, np.abs(values))
    return np.frexp(top)[1].astype(np.int64)


def _sum_products(groups: Groups, factors: Sequence[np.ndarray], weights: Weights = None) -> Doubles:
    """The sums of the products of the factors, with a grid for each group."""
    if weights is not None and not weights.all():
        mask = weights != 0
        groups, weights, factors = groups.take(mask), weights[mask], [factor[mask] for factor in factors]
    bits = 0 if weights is None else int(np.abs(weights).max(initial=1)).bit_length()
    exponents = np.full(groups.count, bits)
    factors_by_id = {id(factor): factor for factor in factors}
    for key, factor in factors_by_id.items():
        exponents += _exponents(groups, factor) * sum(id(f) == key for f in factors)
    cutter = _cutter(exponents, _room(groups))
    sums = _Sums(groups.count)
    for start in range(0, len(groups), _ROWS):
        part = slice(start, start + _ROWS)
        codes = groups.codes[part]
        product, rest = _product([factor[part] for factor in factors], None if weights is None else weights[part])
        constant = cutter[codes]
        terms = np.empty(len(codes), np.complex128)
        terms.real = (product + constant) - constant
        terms.imag = (product - terms.real) + rest
        sums.add(codes, terms)
    return sums.total()


def _product(factors: Sequence[np.ndarray], weights: Weights) -> tuple[np.ndarray, np.ndarray | float]:
    """The product of the factors and of the weights as a pair."""
    product, rest = factors[0], np.zeros(1)
    for factor in factors[1:]:
        product, error = two_product(product, factor)
        rest = error + rest * factor
    if weights is not None:
        scale, largest = weights.astype(np.float64), int(np.abs(weights).max(initial=0))
        if largest <= 1:
            return product * scale, rest * scale
        product, error = two_product(product, scale)
        rest = error + rest * scale
        if largest > 2**53:
            rest = rest + product / scale * (weights - scale.astype(np.int64))
    return product, rest


def _sum_squares(groups: Groups, x: Within, signs: np.ndarray | None) -> list[Doubles]:
    """The sums of values and of squares, on one grid for the whole column if that is exact enough for all groups."""
    exponent = int(np.frexp(x.largest)[1])
    sums, squares = _sum_squares_on(groups, x.values, signs, exponent)
    # Groups get grids of their own if the values of one are all far below the largest of the column.
    if signs is None:
        small = squares.high < groups.sizes * 2.0 ** (2 * exponent - _SPREAD)
    else:
        small = _exponents(groups, x.values * signs) <= exponent - _SPREAD // 2
    if small.any():
        rows = np.flatnonzero(small[groups.codes])
        some, few = groups.take(rows), x.values[rows]
        weights = None if signs is None else signs[rows].astype(np.int64)
        for total, factors in ((sums, [few]), (squares, [few, few])):
            own = _sum_products(some, factors, weights)
            total.high[small], total.low[small] = own.high[small], own.low[small]
    return [sums, squares]


def _sum_squares_on(
    groups: Groups, values: np.ndarray, signs: np.ndarray | None, exponent: int
) -> tuple[Doubles, Doubles]:
    """The sums of values and of squares, times 1, -1 or 0, of values below 2**exponent, on one grid each.

    A value is cut into `head`, with at most 26 bits, and `tail`, so that head**2 and head * tail are exact.
    """
    room = _room(groups)
    on_grid, on_square_grid = float(_cutter(exponent, room)), float(_cutter(2 * exponent, room))
    split = float(np.ldexp(1.5, max(exponent + 26, -1000)))
    sums, squares = _Sums(groups.count), _Sums(groups.count)
    size = max(min(_ROWS, len(values)), 1)
    buffers = [np.empty(size) for _ in range(4)]
    pairs = np.empty(size, np.complex128)
    for start in range(0, len(values), size):
        x, codes = values[start : start + size], groups.codes[start : start + size]
        head, tail, square, rest = (buffer[: len(x)] for buffer in buffers)
        terms = pairs[: len(x)]
        np.add(x, on_grid, out=head)
        np.subtract(head, on_grid, out=terms.real)
        np.subtract(x, terms.real, out=terms.imag)
        sums.add(codes, terms if signs is None else terms * signs[start : start + size])
        np.add(x, split, out=head)
        np.subtract(head, split, out=head)
        np.subtract(x, head, out=tail)
        np.square(x, out=square)
        np.add(square, on_square_grid, out=square)
        np.subtract(square, on_square_grid, out=terms.real)
        np.square(head, out=rest)
        np.subtract(rest, terms.real, out=rest)
        np.multiply(head, tail, out=head)
        np.add(rest, head, out=rest)
        np.add(rest, head, out=rest)
        np.square(tail, out=tail)
        np.add(rest, tail, out=terms.imag)
        squares.add(codes, terms if signs is None else terms * signs[start : start + size])
    return sums.total(), squares.total()
