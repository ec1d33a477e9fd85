"""Exact sums of columns whose exponents lie close together, as most do, digit by digit for all rows.

A float is cut into digits by adding and subtracting large constants (Rump, Ogita and Oishi, "Accurate floating-point
summation part I", SIAM J. Sci. Comput. 31, 2008). Digits are so short that their sums by group are exact in float64.
Two digits are summed in one pass, as the real and the imaginary part of a complex number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from ..rows.group_sums import CHUNK
from ..rows.groups import Groups
from .double_double import two_product

BITS = 32
_MASK = (1 << BITS) - 1
_PAIRS = 6
_SMALLEST, _HIGHEST = -1060, 960
_ROWS = 1 << 15
_MOST_GROUPS = 1 << 20
_BLOCK = 1 << 13


def sum_narrow(
    groups: Groups, factors: Sequence[np.ndarray], signs: np.ndarray | None
) -> Iterator[tuple[np.ndarray, int]] | None:
    """The sums of the factors' products times the signs, for some groups at a time.

    Each element is rows of digits, the lowest place first, and the place of the first row. None if the exponents lie
    too far apart, or if a product or its error is outside the range of floats.
    """
    exponents = [_exponent(factor) for factor in factors]
    if None in exponents or len(groups) == 0:
        return iter([(np.zeros((1, groups.count), np.int64), 0)])
    powers = [e for e in exponents if e is not None]
    exponent = sum(powers)
    if max(powers) > _HIGHEST or exponent > _HIGHEST or groups.count > _MOST_GROUPS:
        return None
    lowest = _SMALLEST + 53 * len(factors)
    sums = _DigitSums(groups)
    for start in range(0, len(groups), _ROWS):
        part = slice(start, start + _ROWS)
        codes, terms = groups.codes[part], _terms(factors, part)
        if terms is None:
            return None
        sums.make_room(len(codes))
        for term, lost in terms:
            signed = term if signs is None else term * signs[part]
            if not sums.add(codes, signed, exponent - lost, lowest):
                return None
    return sums.blocks()


def _terms(factors: Sequence[np.ndarray], part: slice) -> list[tuple[np.ndarray, int]] | None:
    """The products of some rows as sums of floats, each with the number of bits by which it is smaller.

    None if a float underflows.
    """
    sliced = {id(factor): factor[part] for factor in factors}
    first, *others = (sliced[id(factor)] for factor in factors)
    terms = [(first, 0)]
    for other in others:
        terms = [
            (term, lost + 53 * error) for whole, lost in terms for error, term in enumerate(two_product(whole, other))
        ]
    nonzero = np.logical_and.reduce(list(sliced.values()))
    return terms if not others or np.count_nonzero(terms[0][0]) == np.count_nonzero(nonzero) else None


def _exponent(values: np.ndarray) -> int | None:
    """The exponent e such that all values lie below 2**e in size; None if all are zero."""
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    return int(np.frexp(largest)[1]) if largest else None


class _DigitSums:
    """Sums of digits by group, in float64 while they are certainly exact, then in int64."""

    def __init__(self, groups: Groups) -> None:
        self.count = groups.count
        most = CHUNK if len(groups) > CHUNK else int(groups.sizes.max(initial=0))
        self.width = 53 - max(most, 2).bit_length()
        self.rows = 0
        # The key is the exponent of the real part's unit; the unit of the imaginary part is `width` bits lower.
        self.open: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(self.count, np.complex128))
        self.closed: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(self.count, np.int64))

    def make_room(self, rows: int) -> None:
        if self.rows + rows > CHUNK:
            self.close()
        self.rows += rows

    def close(self) -> None:
        for unit, pair in self.open.items():
            for place, digits in self._digits(unit, pair):
                self.closed[place] += digits
        self.open.clear()
        self.rows = 0

    def _digits(self, unit: int, pair: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """The sums of two digits as numbers of BITS bits, each with its place; the highest carries the sign."""
        for sums, exponent in ((pair.real, unit), (pair.imag, unit - self.width)):
            place, shift = divmod(exponent, BITS)
            whole = (sums * 2.0**-exponent).astype(np.int64)
            low, high = (whole & _MASK) << shift, (whole >> BITS) << shift
            yield place, low & _MASK
            yield place + 1, (low >> BITS) + (high & _MASK)
            yield place + 2, high >> BITS

    def add(self, codes: np.ndarray, values: np.ndarray, below: int, lowest: int) -> bool:
        """Add values below 2**below; False if they need too many digits or digits below 2**lowest."""
        for unit in range(below - self.width, below - self.width * 2 * _PAIRS, -2 * self.width):
            if unit - self.width < lowest:
                return False
            pair = np.empty(len(values), np.complex128)
            for exponent, digit in ((unit, pair.real), (unit - self.width, pair.imag)):
                constant = 1.5 * 2.0 ** (exponent + 52)
                cut = values + constant
                cut -= constant
                digit[...] = cut
                values = values - cut
            np.add.at(self.open[unit], codes, pair)
            left = np.count_nonzero(values)
            if left == 0:
                return True
            if left < len(values) // 2:
                places = np.flatnonzero(values)
                values, codes = values[places], codes[places]
        return False

    def blocks(self) -> Iterator[tuple[np.ndarray, int]]:
        """All digits, for some groups at a time: a row for each place from the lowest, and that place."""
        units = [exponent // BITS for unit in self.open for exponent in (unit, unit - self.width)]
        places = [*self.closed, *units, *(place + 2 for place in units)] or [0]
        low = min(places)
        for start in range(0, self.count, _BLOCK):
            part = slice(start, min(start + _BLOCK, self.count))
            matrix = np.zeros((max(places) - low + 1, part.stop - start), np.int64)
            for place, digits in self.closed.items():
                matrix[place - low] = digits[part]
            for unit, pair in self.open.items():
                for place, digits in self._digits(unit, pair[part]):
                    matrix[place - low] += digits
            yield matrix, low
