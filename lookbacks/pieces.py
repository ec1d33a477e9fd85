"""Accumulators of ranges from a tree of blocks: every combiner has the merge that it needs, users' own too.

The accumulators of rows are merged two by two, level by level. A range is made of at most two blocks of each level,
and all blocks of many ranges are merged at once.

Guarded by tests/lookbacks/test_rolling.py.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..combiners.algebra import Accumulators, CombineFn
from ..combiners.rows.groups import Groups
from .sorted_rows import Ranges


class Tree:
    """The accumulators of blocks of 1, 2, 4 ... rows.

    >>> import numpy as np, pyarrow as pa, uncombine as uc
    >>> fn = uc.Max("x", retractable=False).bind(pa.schema({"x": pa.int64()}))
    >>> tree = Tree(fn, fn.add(Groups(np.arange(3), 3), pa.array([5, 9, 2])), longest=3)
    >>> fn.extract(tree.over(Ranges(low=np.array([0, 2]), high=np.array([3, 3])))).to_pylist()
    [9, 2]
    """

    def __init__(self, fn: CombineFn, rows: Accumulators, longest: int) -> None:
        self.fn = fn
        self.levels = [rows]
        self._starts = [0]
        for _ in range(longest.bit_length() - 1):
            below = self.levels[-1]
            count = len(below[0])
            self._starts.append(self._starts[-1] + count)
            self.levels.append(fn.merge(Groups(np.arange(count) // 2, (count + 1) // 2), below))
        self._blocks = tuple(pa.concat_arrays(columns) for columns in zip(*self.levels, strict=True))

    def over(self, ranges: Ranges) -> Accumulators:
        """The accumulator of each range, of at most the longest rows."""
        low, high = ranges.low.copy(), ranges.high.copy()
        numbers, blocks = [], []
        open_ = np.flatnonzero(low < high)
        for start in self._starts:  # one turn a level, at most 63
            a, b = low[open_], high[open_]
            for chosen, block in (((a & 1) == 1, a), ((b & 1) == 1, b - 1)):
                numbers.append(open_[chosen])
                blocks.append(block[chosen] + start)
            low[open_], high[open_] = (a + 1) >> 1, b >> 1
            open_ = open_[low[open_] < high[open_]]
        # On the highest level a range may still have two blocks beside each other, or one.
        chosen = pa.array(np.concatenate([*blocks, np.zeros(0, np.int64)]))
        groups = Groups(np.concatenate([*numbers, np.zeros(0, np.int64)]), len(ranges))
        return self.fn.merge(groups, tuple(column.take(chosen) for column in self._blocks))


__all__ = ["Tree"]
