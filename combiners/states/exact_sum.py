"""Exact sums of floats: a superaccumulator with one short vector of integer digits for each group.

A finite float is an integer times a power of two, so a sum of floats is one long integer. It is held in base 2**32
with balanced digits (from -2**31 to 2**31 - 1), lowest digit first, without zeros at both ends. Every number has
exactly one such form. Therefore sums are a group, bit for bit: they do not depend on the order and the cut of the rows,
and a retracted value leaves no trace. The extracted float is the exact sum rounded once, to nearest even.

The long accumulator is Kulisch's; carry-free accumulation in digits with headroom follows Neal, "Fast exact summation
using small and large superaccumulators" (arXiv:1505.05571). Products are split exactly by Dekker's method ("A
floating-point technique for extending the available precision", Numer. Math. 18, 1971).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from ..algebra import Accumulators, CombineFn, Weights
from ..floats.digit_sums import BITS, sum_narrow
from ..floats.double_double import two_product, two_sum
from ..floats.exact_pieces import exact_pieces, products
from ..rows.columns import Column
from ..rows.groups import Groups
from .vectors import int64s

_HALF = np.int64(1) << (BITS - 1)
_ENTRIES = 1 << 22
_BLOCK = 1 << 13
_LOWEST = -32
_UNITS = np.append(np.ldexp(1.0, np.arange(BITS * _LOWEST, 1024, BITS)), np.inf)
"""2**(BITS * place) from place _LOWEST on; the last is infinite, as a sum with a digit there is."""


@dataclass(frozen=True)
class ExactSumFn(CombineFn):
    """Exact sums of the products of the first `arity` inputs, or of a single input to the power `arity`.

    Values that are not finite count as zero, decimals as integers without their point, and times in their units.
    Further inputs only leave out rows in which they are null.
    """

    arity: int = 1
    label = "exact"

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return (pa.field("low", pa.int16()), pa.field("digits", pa.list_(pa.int32())))

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        factors = [exact_pieces(column) for column in columns[: self.arity]]
        sums = [self._add_products(groups, each, weights) for each in products(factors, self.arity)]
        if len(sums) == 1:
            return sums[0]
        terms = tuple(pa.concat_arrays(parts) for parts in zip(*sums, strict=True))
        return self.merge(Groups.repeated(groups.count, len(sums)), terms)

    def _add_products(self, groups: Groups, factors: Sequence[np.ndarray], weights: Weights) -> Accumulators:
        if weights is None or bool(np.all(np.abs(weights) == 1)):
            blocks = sum_narrow(groups, factors, weights)
            if blocks is not None:
                return _concat(packed(*block) for block in blocks)
        return _concat(self._add_wide(groups, factors, weights))

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        digits = Digits.of(accumulators)
        codes = np.repeat(groups.codes, digits.lengths)
        return _concat(_sum_blocks(groups.count, codes, digits.bins, digits.values))

    def negate(self, accumulators: Accumulators) -> Accumulators:
        digits = Digits.of(accumulators)
        codes = np.repeat(np.arange(len(digits.lengths)), digits.lengths)
        return _concat(_sum_blocks(len(digits.lengths), codes, digits.bins, -digits.values))

    def _add_wide(self, groups: Groups, factors: Sequence[np.ndarray], weights: Weights) -> Iterator[Accumulators]:
        """Any exponents and weights: digits of each value by its own exponent."""
        mantissa, exponent = np.frexp(factors[0])
        pieces = [(mantissa, exponent.astype(np.int64))]
        for factor in factors[1:]:
            other, added = np.frexp(factor)
            split = [(part, below + added) for m, below in pieces for part in two_product(m, other)]
            pieces = [(np.frexp(part)[0], below + np.frexp(part)[1]) for part, below in split]
        none = np.empty(0, np.int64)
        codes, values, bins = [none], [none], [none]
        for mantissa, exponent in pieces:
            for signed, shift, chosen in _weighed(mantissa, weights):
                for digit, bin_ in _digits_of(signed, exponent[chosen] + shift):
                    nonzero = digit != 0
                    codes.append(groups.codes[chosen][nonzero])
                    values.append(digit[nonzero].astype(np.int64))
                    bins.append(bin_[nonzero])
        return _sum_blocks(groups.count, np.concatenate(codes), np.concatenate(bins), np.concatenate(values))


@dataclass(frozen=True)
class Digits:
    """The flat digits of many accumulators: accumulator i has `lengths[i]` of them, from place `lows[i]`."""

    lows: np.ndarray
    lengths: np.ndarray
    flat: np.ndarray

    @classmethod
    def of(cls, accumulators: Accumulators) -> Digits:
        lows, lists = int64s(accumulators[0]).astype(np.int64), accumulators[1]
        return cls(
            lows=lows, lengths=np.diff(np.asarray(lists.offsets)).astype(np.int64), flat=np.asarray(lists.flatten())
        )

    @cached_property
    def values(self) -> np.ndarray:
        """The digits as int64."""
        return self.flat.astype(np.int64)

    @cached_property
    def bins(self) -> np.ndarray:
        """The place of each digit."""
        firsts = self.ends - self.lengths
        return np.arange(len(self.flat)) + np.repeat(self.lows - firsts, self.lengths)

    @cached_property
    def ends(self) -> np.ndarray:
        return np.cumsum(self.lengths)

    def from_top(self, k: int) -> np.ndarray:
        """The k-th digit of each accumulator, counted from its highest; zero if it has fewer digits."""
        if len(self.flat) == 0:
            return np.zeros(len(self.lengths), np.int64)
        return np.where(self.lengths > k, self.flat[np.maximum(self.ends - 1 - k, 0)], 0).astype(np.int64)

    def sign_below(self, k: int) -> np.ndarray:
        """The sign of the digits below the k highest: that of the highest of them that is not zero."""
        sign = np.sign(self.from_top(k))
        unknown = np.flatnonzero((sign == 0) & (self.lengths > k))
        while len(unknown):  # a loop over digit places, not groups: the last digit is never zero
            k += 1
            sign[unknown] = np.sign(self.flat[self.ends[unknown] - 1 - k])
            unknown = unknown[sign[unknown] == 0]
        return sign


def exact_sum(accumulators: Accumulators) -> np.ndarray:
    """The sums as float64, each the exact sum rounded once."""
    digits = Digits.of(accumulators)
    # In units of 2**(32 * place) a sum is high + low + rest. The last bits of the floats high and low are worth 2**-32
    # or more, as is every bit that decides the rounding of high. Of the rest only the sign is needed.
    place = digits.lows + digits.lengths - 2
    top, second, third = (digits.from_top(k).astype(np.float64) for k in range(3))
    high, low = two_sum(top * 2.0**BITS, second)
    low += third * 2.0**-BITS + digits.sign_below(3) * 2.0 ** (-BITS - 2)
    tiny = np.flatnonzero((place < _LOWEST) & (digits.lengths > 0))
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.where(digits.lengths > 0, (high + low) * _UNITS[np.clip(place - _LOWEST, 0, len(_UNITS) - 1)], 0.0)
    if len(tiny):
        rounded[tiny] = _round_tiny(tuple(a.take(pa.array(tiny)) for a in accumulators))
    return rounded


def _round_tiny(accumulators: Accumulators) -> np.ndarray:
    """Sums close to the smallest floats, whose last bits are smaller than the last bit of a float.

    This is a loop over groups, because Python rounds a quotient of integers correctly and numpy does not. Such sums
    are rare.
    """
    totals, scale = exact_ints(accumulators)
    return np.array([total / (1 << -scale) for total in totals])


def exact_ints(accumulators: Accumulators) -> tuple[np.ndarray, int]:
    """The sums as exact Python integers in units of 2**scale, for results that must be rounded only once."""
    digits = Digits.of(accumulators)
    base = int(digits.lows[digits.lengths > 0].min()) if len(digits.flat) else 0
    starts = digits.ends - digits.lengths
    total = np.zeros(len(digits.lengths), dtype=object)
    for k in range(int(digits.lengths.max(initial=0))):  # a loop over digit places, not groups
        places = np.flatnonzero(digits.lengths > k)
        shift = [1 << (BITS * int(b)) for b in digits.lows[places] + k - base]
        total[places] += digits.values[starts[places] + k].astype(object) * np.array(shift, dtype=object)
    return total, BITS * base


def _weighed(mantissa: np.ndarray, weights: Weights) -> Iterator[tuple[np.ndarray, int, np.ndarray | slice]]:
    """The mantissas times their weights, as one term for each binary digit of the weights."""
    if weights is None:
        yield mantissa, 0, slice(None)
        return
    sizes = np.abs(weights).view(np.uint64)
    signed = np.where(weights < 0, -mantissa, mantissa)
    for bit in range(int(sizes.max(initial=0)).bit_length()):
        chosen = np.flatnonzero((sizes >> np.uint64(bit)) & np.uint64(1))
        yield signed[chosen], bit, chosen


def _digits_of(mantissa: np.ndarray, exponent: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Three integer digits for each mantissa * 2**exponent, with the place of each."""
    place = exponent >> 5
    rest = np.ldexp(mantissa, (exponent - (place << 5)).astype(np.int32))
    for k in range(3):
        digit = np.rint(rest)
        yield digit, place - k
        rest = (rest - digit) * 2.0**BITS


def _sum_blocks(count: int, codes: np.ndarray, bins: np.ndarray, values: np.ndarray) -> Iterator[Accumulators]:
    """Flat digits summed into accumulators, for so many groups at a time that the matrix stays bounded."""
    if len(values) == 0:
        yield packed(np.zeros((1, count), np.int64), 0)
        return
    low = int(bins.min())
    width = int(bins.max()) - low + 1
    size = max(_ENTRIES // (width + 3), 1)
    if count > size:
        order = Groups(codes, count).order
        codes, bins, values = codes[order], bins[order], values[order]
    for start in range(0, count, size):
        stop = min(start + size, count)
        first, last = (0, len(codes)) if count <= size else np.searchsorted(codes, [start, stop])
        matrix = np.zeros((width, stop - start), np.int64)
        np.add.at(matrix, (bins[first:last] - low, codes[first:last] - start), values[first:last])
        yield packed(matrix, low)


def packed(sums: np.ndarray, low: int) -> Accumulators:
    """Digit sums (one row a place, one column a group) as accumulators of balanced digits."""
    count = sums.shape[1]
    blocks = [_carried(sums[:, start : start + _BLOCK]) for start in range(0, count, _BLOCK)] or [_carried(sums)]
    firsts, lengths, digits = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    lows = np.where(lengths > 0, firsts + np.int16(low), 0).astype(np.int16)
    return pa.array(lows), pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(digits))


def _carried(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The place of the lowest digit of each column, its number of digits, and the digits of all columns."""
    matrix = np.zeros((sums.shape[0] + 3, sums.shape[1]), np.int64)
    matrix[: sums.shape[0]] = sums
    for place in range(len(matrix) - 1):
        carry = (matrix[place] + _HALF) >> BITS
        matrix[place] -= carry << BITS
        matrix[place + 1] += carry
    first, above = _zeros_before(matrix), _zeros_before(matrix[::-1])
    last = np.maximum(len(matrix) - above, first)
    places = np.arange(len(matrix), dtype=np.int16)[:, None]
    mask = (places >= first) & (places < last)
    return first, last - first, np.compress(mask.T.ravel(), matrix.astype(np.int32).T.ravel())


def _zeros_before(matrix: np.ndarray) -> np.ndarray:
    """The number of zeros at the start of each column."""
    zeros = np.zeros(matrix.shape[1], np.int16)
    met: np.ndarray = np.zeros(matrix.shape[1], np.bool_)
    for row in matrix:
        met |= row != 0
        zeros += ~met
    return zeros


def _concat(blocks: Iterator[Accumulators]) -> Accumulators:
    parts = list(blocks)
    if not parts:
        return pa.array([], pa.int16()), pa.array([], pa.list_(pa.int32()))
    if len(parts) == 1:
        return parts[0]
    return tuple(pa.concat_arrays(columns) for columns in zip(*parts, strict=True))
