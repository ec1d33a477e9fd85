"""Exact sums of floats over ranges, as differences of running sums of their digits.

A finite float is a whole number of 53 bits times a power of two, so it has at most three digits of 32 bits, each at a
place of its own. The digits of each place are added up over the rows, and a range has the difference at each place.

Guarded by tests/lookbacks/test_ways.py and tests/lookbacks/test_precision.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from ..combiners.algebra import Accumulators
from ..combiners.states.exact_sum import packed
from .sorted_rows import Ranges

MOST_PLACES = 12
"""The digits up to which those of exact sums are added place by place."""

_BITS, _MASK = 32, 0xFFFF_FFFF
_BLOCK = 1 << 18

_MOST = 1 << 28
"""The number of rows up to which sums of digits fit 64 bits: each is below 2**34, pieces of a value counted."""


def exact_sums(pieces: Sequence[np.ndarray], rows: np.ndarray, count: int) -> Callable[[Ranges], Accumulators] | None:
    """The exact sums over ranges of `count` rows, of which some have values, each the sum of its pieces.

    None if the exponents lie too far apart.

    >>> import numpy as np
    >>> over = exact_sums([np.array([1.5, -2.0**40])], np.array([0, 2]), count=3)
    >>> [column.to_pylist() for column in over(Ranges(low=np.array([0, 0]), high=np.array([2, 3])))]
    [[-1, -1], [[-2147483648, 2], [-2147483648, 2, -256]]]
    """
    parts = [_digits(piece) for piece in pieces]
    filled = [(whole != 0, place) for whole, place, _ in parts]
    some = [place[there] for there, place in filled if there.any()]
    if not some or count > _MOST:
        return None
    lowest = min(int(place.min()) for place in some)
    places = max(int(place.max()) for place in some) - lowest + 3
    if places > MOST_PLACES:
        return None
    running = np.zeros((places, count + 1), np.int64)
    flat = running.reshape(-1)
    for whole, place, shift in parts:
        # The place of a zero is any.
        at = (np.clip(place, lowest, lowest + places - 3) - lowest) * (count + 1) + rows + 1
        low, high = (whole & _MASK) << shift, (whole >> _BITS) << shift
        for digits in (low & _MASK, (low >> _BITS) + (high & _MASK), high >> _BITS):
            flat[at] += digits  # the places of a row differ, and so do the rows
            at += count + 1
    np.cumsum(running, axis=1, out=running)
    return over_digits(running, lowest)


def over_digits(running: np.ndarray, lowest: int) -> Callable[[Ranges], Accumulators]:
    """The sums over ranges, from the running sums of the digits of each place, of which one is the lowest."""

    def over(ranges: Ranges) -> Accumulators:
        parts = [ranges.slice(start, start + _BLOCK) for start in range(0, len(ranges), _BLOCK)] or [ranges]
        sums = [packed(running[:, part.high] - running[:, part.low], lowest) for part in parts]
        return tuple(pa.concat_arrays(columns) for columns in zip(*sums, strict=True))

    return over


def _digits(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each value as a whole number times a power of 2**32, and of two: the number, the place, and the shift."""
    fraction, exponent = np.frexp(values)
    whole = np.ldexp(fraction, 53).astype(np.int64)
    place, shift = np.divmod(exponent.astype(np.int64) - 53, _BITS)
    return whole, place, shift


__all__ = ["MOST_PLACES", "exact_sums", "over_digits"]
