"""Blocks of time: the rows of a key are found by the stretch of time in which they lie.

So a row reads the rows that see it and those that these see, and no others of its key. Two blocks are as long as the
longest look-back. If a look-back is a number of rows, or all that came before, a key is one block.

Guarded by tests/panes/rolled/test_time_blocks.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...combiners.rows.groups import group_rows
from ...lookbacks.lookback import LookBack
from ..state.hashes import lookup, with_start

_REACH = 2
"""The blocks that a look-back reaches into beside its own."""


@dataclass(frozen=True)
class TimeBlocks:
    """The blocks of some look-backs.

    >>> TimeBlocks.of([LookBack(micros=10)]), TimeBlocks.of([LookBack(rows=3)])
    (TimeBlocks(length=6), TimeBlocks(length=0))
    """

    length: int
    """The microseconds of a block; 0 if all rows of a key are one."""

    @classmethod
    def of(cls, lookbacks: Iterable[LookBack]) -> TimeBlocks:
        """The blocks for some look-backs."""
        every = list(lookbacks)
        if any(one.rows or one.ever for one in every):
            return cls(0)
        return cls.over(max(one.longest for one in every))

    @classmethod
    def over(cls, longest: int) -> TimeBlocks:
        """The blocks for rows that reach so far."""
        return cls(-(-longest // _REACH))

    def hashes(self, keys: np.ndarray, times: np.ndarray) -> np.ndarray:
        """The hash of the block of each row, from that of its key."""
        return with_start(keys, times // self.length) if self.length else keys

    def near(self, keys: np.ndarray, times: np.ndarray, before: bool = True, after: bool = True) -> np.ndarray:
        """The hashes of the blocks of rows, and of those that look-backs reach from there, in the form for a look-up.

        `before` are those that the rows see, and `after` those with rows that see them.
        """
        if not self.length:
            return lookup(keys)
        blocks = times // self.length
        _, first = group_rows([pa.array(with_start(keys, blocks))], len(keys))
        keys, blocks = keys[first], blocks[first]
        steps = range(-_REACH if before else 0, (_REACH if after else 0) + 1)
        return lookup(np.concatenate([with_start(keys, blocks + step) for step in steps]))


__all__ = ["TimeBlocks"]
