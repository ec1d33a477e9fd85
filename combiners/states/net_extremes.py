"""Least and greatest items of multisets whose rows are all there, retractions among them, without sorting them.

Each round takes the greatest item of each group and sums the weights of its rows. A group is done if the sum is
positive. Otherwise the item is not there, and the next round looks at the rows without it.

Guarded by tests/combiners/test_extremes.py.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..rows.columns import Column
from ..rows.group_sums import extreme, may_reach_most
from ..rows.groups import Groups
from ..rows.ordering import order_keys
from .zset import consolidate

_PASSES = 3
"""The rows that the rounds look at, as a multiple of all rows, before the rest is sorted."""


def net_extreme(groups: Groups, column: Column, weights: np.ndarray, greatest: bool) -> pa.Array:
    """The least or greatest item of positive weight of each group; null if there is none.

    >>> import numpy as np, pyarrow as pa
    >>> rows = Column(pa.array([3, 9, 9, 5]))
    >>> net_extreme(Groups.single(4), rows, np.array([1, 1, -1, -1]), greatest=True).to_pylist()
    [3]
    """
    keys = order_keys([column])
    better, start = (np.maximum, keys.low) if greatest else (np.minimum, keys.high)
    extremes, present = np.full(groups.count, start), np.zeros(groups.count, np.bool_)
    codes, values, weighed, rows = groups.codes, keys.keys, weights, np.arange(0)
    looked, rest = 0, bool(len(codes))
    # Sums of larger weights might wrap; sorted rows are checked for that.
    while rest and looked < _PASSES * len(groups) and not may_reach_most(weighed):
        best = extreme(Groups(codes, groups.count), values, start, better)
        at_best = values == best.take(codes, mode="clip")
        places = np.flatnonzero(at_best)
        net = np.zeros(groups.count, np.int64)
        np.add.at(net, codes[places], weighed[places])
        won = net > 0
        extremes[won], present = best[won], present | won
        at_best |= won.take(codes, mode="clip")
        left = np.flatnonzero(~at_best)
        rows = rows[left] if looked else left
        looked += len(codes)
        codes, values, weighed, rest = codes[left], values[left], weighed[left], bool(len(left))
    (items,) = keys.decode(extremes[present])
    places = np.where(present, np.cumsum(present) - 1, -1)
    if rest:
        some = column.take(rows) if looked else column
        others = consolidate(Groups(codes, groups.count), [some], weighed, present=True).present()
        ends = others.lasts() if greatest else others.firsts()
        items, places = pa.concat_arrays([items, others.columns[0]]), np.where(ends < 0, places, len(items) + ends)
    missing = places < 0
    return items.take(pa.array(places, mask=missing if missing.any() else None))
