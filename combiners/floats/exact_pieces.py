"""Numbers of any type as exact sums of some columns of floats, called pieces, and their powers and products.

A float is one piece, and so are integers up to 2**53 in size. Longer integers, and the unscaled integers of decimals,
are cut every 32 bits. The product of numbers is the sum of the products of their pieces; in a power, each product of
pieces is multiplied by its multinomial coefficient.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import combinations_with_replacement, product
from math import factorial

import numpy as np
import pyarrow as pa

from ..rows.columns import Column

_HALF = 32
_MASK = np.uint64(2**_HALF - 1)
_LARGEST = 2**53


def exact_pieces(column: Column) -> list[np.ndarray]:
    """Columns of finite floats that add up to the values.

    Decimals are taken without their point and times in their units. NaN and infinities count as zero.

    >>> import pyarrow as pa
    >>> [piece.tolist() for piece in exact_pieces(Column(pa.array([2**60 + 1, 7])))]
    [[1.0, 7.0], [1.152921504606847e+18, 0.0]]
    """
    return column.memo("pieces", lambda: _pieces(column))


def products(factors: Sequence[list[np.ndarray]], power: int = 1) -> Iterator[list[np.ndarray]]:
    """Lists of floats whose products add up to the product of the factors, or to a power of a single factor."""
    if len(factors) > 1:
        yield from (list(chosen) for chosen in product(*factors))
        return
    for chosen in combinations_with_replacement(range(len(factors[0])), power):
        # If a number has several pieces, each has 32 bits and can be multiplied by 24, the most for a fourth power.
        times = factorial(power) // reduce(lambda a, n: a * factorial(n), Counter(chosen).values(), 1)
        first, *others = (factors[0][i] for i in chosen)
        yield [first if times == 1 else first * times, *others]


def _pieces(column: Column) -> list[np.ndarray]:
    kind = column.type
    if pa.types.is_decimal(kind):
        lanes = decimal_lanes(column.array)
    elif pa.types.is_floating(kind) or kind.bit_width < 64 or _fits(column.values):
        return [column.split_finite()[0]]
    else:
        lanes = [column.values]
    while len(lanes) > 1 and np.array_equal(lanes[-1], lanes[-2].view(np.int64) >> 63):
        lanes = [*lanes[:-2], lanes[-2].view(np.int64)]
    if len(lanes) == 1 and _fits(lanes[0]):
        return [lanes[0].astype(np.float64)]
    out = []
    for place, lane in enumerate(lanes):
        low, high = lane.view(np.uint64) & _MASK, lane >> _HALF
        out += [half * 2.0 ** (_HALF * (2 * place + k)) for k, half in enumerate((low, high))]
    return out


def decimal_lanes(array: pa.Array) -> list[np.ndarray]:
    """The 64-bit lanes of the unscaled integers of a decimal column, the least first; the last has the sign."""
    if array.type.bit_width < 128:
        array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    width = array.type.bit_width // 64
    if len(array) == 0:
        return [np.empty(0, np.int64)] * width
    raw = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, width)[array.offset : array.offset + len(array)]
    return [*(np.ascontiguousarray(raw[:, k]).view(np.uint64) for k in range(width - 1)), raw[:, -1]]


def _fits(values: np.ndarray) -> bool:
    return len(values) == 0 or (int(values.max()) <= _LARGEST and int(values.min()) >= -_LARGEST)
