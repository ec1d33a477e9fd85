"""Codes of numbers: equal numbers have one code, by first appearance.

Few different numbers are found in Arrow's hash table. Many make that table larger than the cache, and are sorted
instead, with their rows. Somebody who chooses the numbers can make the sort slow, but not wrong.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_SAMPLE = 1 << 12
"""The number of rows by which the number of different ones is judged."""

_OFTEN = 5
"""Up to so many rows for each different number, sorting is faster."""

_SPREAD = np.uint64(0x9E3779B97F4A7C15)


def numbered(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A code for each value of 64 bits, by first appearance, and the first row of each code.

    >>> import numpy as np
    >>> numbered(np.array([70, 50, 70]))
    (array([0, 1, 0]), array([0, 1]))
    """
    if _mostly_differ(values):
        return _by_sorting(values.view(np.uint64))
    encoded = pa.array(values.view(np.int64)).dictionary_encode()
    codes = np.asarray(encoded.indices).astype(np.int64)
    return codes, first_rows(codes, len(encoded.dictionary))


def first_rows(codes: np.ndarray, size: int, present: int | None = None) -> np.ndarray:
    """The first row of each code; the number of rows for a code without one. `present` codes have rows, or all."""
    rows = len(codes)
    first = np.full(size, rows)
    # Mostly the first few rows are enough for few codes.
    stop = rows if size > rows // 16 else 4096
    start = 0
    while start < rows:
        np.minimum.at(first, codes[start:stop], np.arange(start, min(stop, rows)))
        if np.count_nonzero(first < rows) == (size if present is None else present):
            break
        start, stop = stop, 8 * stop
    return first


def sorted_with_rows(codes: np.ndarray) -> np.ndarray:
    """The codes in their order, each with its row in the lowest bits."""
    packed = np.left_shift(codes, bits_below(len(codes)), dtype=np.int64)
    packed |= np.arange(len(codes))
    packed.sort()
    return packed


def sort_alike(seen: np.ndarray, order: np.ndarray, values: np.ndarray, most: int) -> bool:
    """Sort, in place, rows and their values that are in order by what has been `seen` of the values.

    Rows of equal values keep their order. False, with nothing done, if more than `most` rows would have to be sorted.

    >>> import numpy as np
    >>> order, values = np.array([4, 6, 2, 3]), np.array([10, 29, 21, 30])
    >>> sort_alike(values // 10, order, values, most=2)
    True
    >>> order, values
    (array([4, 2, 6, 3]), array([10, 21, 29, 30]))
    """
    back = (seen[1:] == seen[:-1]) & (values[1:] < values[:-1])
    if not back.any():
        return True
    alike = seen[1:][back]
    alike = alike[starts_of_runs(alike)]
    starts, stops = np.searchsorted(seen, alike), np.searchsorted(seen, alike, "right")
    sizes = stops - starts
    if sizes.sum() > most:
        return False
    places = np.repeat(stops - np.cumsum(sizes), sizes) + np.arange(sizes.sum())
    by = np.lexsort((values[places], seen[places]))
    order[places], values[places] = order[places[by]], values[places[by]]
    return True


def bits_below(count: int) -> int:
    """The bits of numbers below `count`."""
    return max((count - 1).bit_length(), 1)


def starts_of_runs(ordered: np.ndarray) -> np.ndarray:
    """True where a value differs from the one before it, and for the first."""
    fresh = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    return fresh


def _mostly_differ(values: np.ndarray) -> bool:
    """True if a sample shows that each number is in few rows, and that equal ones do not follow each other.

    Of n drawn rows of d different numbers, about n * n / 2d are equal to another, unless nearly all of them are. Equal
    numbers that follow each other are found in the part of the table that is in the cache.
    """
    rows = len(values)
    if rows < _SAMPLE:
        return False
    sample, together = np.sort(values[:: rows // _SAMPLE]), values[:_SAMPLE]
    drawn, equal = len(sample), int(np.count_nonzero(sample[1:] == sample[:-1]))
    few = 2 * equal * rows < _OFTEN * drawn**2 and drawn < _OFTEN * (drawn - equal)
    return few and 2 * int(np.count_nonzero(together[1:] == together[:-1])) <= len(together)


def _by_sorting(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The codes of numbers that are sorted by as many of their bits as fit beside a row."""
    rows = len(values)
    row_bits = bits_below(rows)
    hidden = np.uint64(row_bits + 1)  # the sign is one of the 64 bits
    spread = values * _SPREAD  # another number for each number, whose upper bits depend on all bits
    order = sorted_with_rows((spread >> hidden).view(np.int64))
    order &= (1 << row_bits) - 1
    ordered = spread.take(order, mode="clip")
    sort_alike(ordered >> hidden, order, ordered, most=rows)
    fresh = starts_of_runs(ordered)
    is_first = np.zeros(rows, np.bool_)
    is_first[order[fresh]] = True
    number = np.cumsum(is_first) - 1
    codes = np.empty(rows, np.int64)
    codes[order] = number[order[fresh]].take(np.cumsum(fresh) - 1, mode="clip")
    return codes, np.flatnonzero(is_first)
