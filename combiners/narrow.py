"""Exact sums of columns whose values' exponents lie close together, as most do: digit by digit for all rows.

A float is cut into digits by adding and taking away large constants (Rump, Ogita and Oishi, "Accurate
floating-point summation part I", SIAM J. Sci. Comput. 31, 2008). Digits are so short that their sums by group are
exact in float64, and two are summed in one pass, as the real and the imaginary part of a complex number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from .doubles import two_product
from .groups import Groups
from .segments import CHUNK

BITS = 32
_MASK = (1 << BITS) - 1
_PAIRS = 6
_SMALLEST, _HIGHEST = -1060, 960
_ROWS = 1 << 15
_MOST_GROUPS = 1 << 20


def sum_narrow(
    groups: Groups, factors: Sequence[np.ndarray], signs: np.ndarray | None
) -> tuple[np.ndarray, int] | None:
    """The sums of the factors' products times the signs: rows of digits, and the place of the first row.

    None if the exponents lie too far apart, or so far out that a product or its error is no float.
    """
    exponents = [_exponent(factor) for factor in factors]
    if None in exponents or len(groups) == 0:
        return np.zeros((1, groups.count), np.int64), 0
    known = [e for e in exponents if e is not None]
    exponent = sum(known)
    if max(known) > _HIGHEST or exponent > _HIGHEST or groups.count > _MOST_GROUPS:
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
    return sums.total()


def _terms(factors: Sequence[np.ndarray], part: slice) -> list[tuple[np.ndarray, int]] | None:
    """The products of some rows as sums of floats, each with how many bits it is smaller; None on underflow."""
    sliced = {id(factor): factor[part] for factor in factors}
    first, *others = (sliced[id(factor)] for factor in factors)
    terms = [(first, 0)]
    for other in others:
        terms = [
            (term, lost + 53 * error)
            for whole, lost in terms
            for error, term in enumerate(two_product(whole, other))
        ]
    nonzero = np.logical_and.reduce(list(sliced.values()))
    return terms if not others or np.count_nonzero(terms[0][0]) == np.count_nonzero(nonzero) else None


def _exponent(values: np.ndarray) -> int | None:
    """The e for which all values lie below 2**e in size; None if all are zero."""
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    return int(np.frexp(largest)[1]) if largest else None


class _DigitSums:
    """Sums of digits by group, in float64 while they are sure to be exact there, then in int64."""

    def __init__(self, groups: Groups) -> None:
        self.count = groups.count
        most = CHUNK if len(groups) > CHUNK else int(groups.sizes.max(initial=0))
        self.width = 53 - max(most, 2).bit_length()
        self.rows = 0
        # By the exponent of the real part's unit; the unit of the imaginary part is `width` bits lower.
        self.open: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(self.count, np.complex128))
        self.closed: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(self.count, np.int64))

    def make_room(self, rows: int) -> None:
        if self.rows + rows > CHUNK:
            self.close()
        self.rows += rows

    def close(self) -> None:
        for unit, pair in self.open.items():
            for part, exponent in ((pair.real, unit), (pair.imag, unit - self.width)):
                self._carry((part * 2.0**-exponent).astype(np.int64), exponent)
        self.open.clear()
        self.rows = 0

    def _carry(self, sums: np.ndarray, exponent: int) -> None:
        """Integers below 2**53, in units of 2**exponent, added to digits of BITS bits."""
        place, shift = divmod(exponent, BITS)
        for half in (sums & _MASK, sums >> BITS):
            moved = half << shift
            self.closed[place] += moved & _MASK
            self.closed[place + 1] += moved >> BITS
            place += 1

    def add(self, codes: np.ndarray, values: np.ndarray, below: int, lowest: int) -> bool:
        """Add values below 2**below; False if that takes too many digits, or some below 2**lowest."""
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
                kept = np.flatnonzero(values)
                values, codes = values[kept], codes[kept]
        return False

    def total(self) -> tuple[np.ndarray, int]:
        """All digits, a row for each place from the lowest used, and that place."""
        self.close()
        places = sorted(place for place, digits in self.closed.items() if digits.any()) or [0]
        matrix = np.zeros((places[-1] - places[0] + 1, self.count), np.int64)
        for place in places:
            matrix[place - places[0]] = self.closed[place]
        return matrix, places[0]
