"""Rows are combined where they are read only if that pays: not if nearly every row is alone in its cell.

A random sample of the rows tells how many others share the cell of a row in the mean. The choice depends on the rows
and nothing else, and no result depends on the choice.

Guarded by tests/panes/grouping/test_when_to_combine.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

import numpy as np
import pyarrow as pa

from ...combiners.rows.key_codes import key_codes
from ...combiners.rows.plain_types import is_text
from ...windows import RowWindows

LEAST = 1 << 16
"""The number of rows below which the choice is not worth a sample: they are combined."""

FEW = 1 << 9
"""The number of rows that are looked at first."""

SURE = 4
"""The pairs of them in one cell that are too many for chance where combining does not pay."""

PAIRS = 10
"""The pairs that a sample has in the mean where combining just pays, which makes it large enough."""

OTHERS = 0.5
"""The mean number of other rows in the cell of a row from which on rows are combined.

With fewer there are at least 1 / (1 + OTHERS) as many cells as rows, by the inequality of Cauchy and Schwarz.
"""

SAME_KEY = 1.0
"""The mean number of other rows with the key of a row from which on rows are combined, if there is a text in it.

Then a text travels once with cells, and many times with rows.
"""


def combining_pays(keys: Sequence[pa.Array], assigned: RowWindows, rows: int) -> bool:
    """True if rows of these keys, each with one window, should be combined before they travel.

    >>> import numpy as np, pyarrow as pa
    >>> from uncombine.windows import Fixed
    >>> from uncombine.panes.grouping.when_to_combine import combining_pays
    >>> window = Fixed("1 minute").assign(np.zeros(100_000, np.int64))
    >>> [combining_pays([pa.array(np.arange(100_000) // n)], window, 100_000) for n in (1, 2)]
    [False, True]
    """
    if rows < LEAST:
        return True
    if pairs_alike(_sample(keys, assigned, sampled(rows, FEW))) >= SURE:
        return True  # so few cells that some rows show it
    sample = _sample(keys, assigned, sampled(rows, isqrt(int(2 * PAIRS / OTHERS * rows))))
    if others_alike(sample, rows) >= OTHERS:
        return True
    text = any(is_text(getattr(key.type, "value_type", key.type)) for key in keys)
    return text and others_alike(sample[1:], rows) >= SAME_KEY


def sampled(rows: int, count: int) -> np.ndarray:
    """The places of a random sample of about `count` rows, the same for each number of rows.

    Neighbours are as likely to be in it together as any two rows, since rows of a cell may stand together.
    """
    return np.unique(np.random.default_rng(rows).integers(0, rows, count))


def _sample(keys: Sequence[pa.Array], assigned: RowWindows, places: np.ndarray) -> list[pa.Array]:
    """The window and the keys of some rows."""
    at = pa.array(places)
    window = assigned.bounds(places)[0] if assigned.number is None else assigned.number[places]
    return [pa.array(window), *(key.take(at) for key in keys)]


def others_alike(sample: Sequence[pa.Array], rows: int) -> float:
    """The mean number of other rows that agree with a row in all columns, by the pairs in a sample that do.

    >>> import pyarrow as pa
    >>> from uncombine.panes.grouping.when_to_combine import others_alike
    >>> others_alike([pa.array([1, 1, 2, 2])], 4)
    1.0
    """
    count = len(sample[0])
    return 2 * pairs_alike(sample) * (rows - 1) / (count * (count - 1))


def pairs_alike(sample: Sequence[pa.Array]) -> int:
    """The number of pairs of rows that agree in all columns."""
    codes = np.sort(key_codes(sample, len(sample[0])).codes)
    sizes = np.diff(np.flatnonzero(np.append(codes[1:] != codes[:-1], True)), prepend=-1)
    return int((sizes * (sizes - 1)).sum()) // 2


__all__ = ["combining_pays"]
