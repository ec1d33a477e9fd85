"""Rows with weights as single changes: pairs of an old and a new row, or the last row of each key.

Guarded by tests/changelogs/test_changelogs_out.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ..combiners.rows.columns import Column, flat
from ..combiners.rows.groups import Groups
from ..combiners.rows.hashing import hash_rows_128
from ..combiners.rows.key_codes import normal_keys
from ..errors import InvalidArgument, OutOfRange
from ..panes.rows.equal_rows import groups_of, netted
from ..panes.state.pane_type import PANE

MOST = 2**31
"""The number of messages that are not written at once."""


def key_groups(rows: pa.Table, keys: Sequence[str]) -> Groups:
    """The groups of rows of equal keys."""
    low, high = hash_rows_128([Column(normal_keys(flat(rows[name]))) for name in keys])
    return groups_of(low, high)[0]


def pairs(rows: pa.Table, weights: np.ndarray, keys: Sequence[str]) -> tuple[pa.Table, np.ndarray, np.ndarray]:
    """Rows of weight 1 or -1, their signs, and for each half of an update the place of the other half, else -1.

    An update is a retraction of a key that is followed by an addition of the same key. Its halves are brought together,
    in the place of the first; all other rows stay in their order. Without keys no row is half of an update.

    >>> import numpy as np, pyarrow as pa
    >>> rows, sign, partner = pairs(pa.table({"k": ["a", "b", "a"]}), np.array([-1, 1, 1]), ["k"])
    >>> rows["k"].to_pylist(), sign, partner
    (['a', 'a', 'b'], array([-1,  1,  1]), array([ 1,  0, -1]))
    """
    times = np.abs(weights)
    if float(times.sum(dtype=np.float64)) >= MOST:
        raise OutOfRange(
            f"a changelog with old rows has a message for each copy of a row, which would be {sum(times.tolist()):,} "
            "messages here, and at most 2**31 - 1 are written at once: use smaller weights"
        )
    sign = np.repeat(np.sign(weights), times)
    if (times != 1).any():
        rows = rows.take(pa.array(np.repeat(np.arange(len(weights)), times)))
    count = len(sign)
    partner = np.full(count, -1)
    if not keys or not (sign < 0).any() or not (sign > 0).any():
        return rows, sign, partner
    codes = key_groups(rows, keys).codes
    run = np.argsort(codes, kind="stable")
    half = np.flatnonzero((codes[run][:-1] == codes[run][1:]) & (sign[run][:-1] < 0) & (sign[run][1:] > 0))
    old, new = run[half], run[half + 1]
    place = np.arange(count)
    place[new] = old
    order = np.lexsort((sign > 0, place))
    back = np.empty(count, np.int64)
    back[order] = np.arange(count)
    partner[old], partner[new] = back[new], back[old]
    moved = not np.array_equal(order, np.arange(count))
    return rows.take(pa.array(order)) if moved else rows, sign[order], partner[order]


def net(rows: pa.Table, weights: np.ndarray, keys: Sequence[str]) -> tuple[pa.Table, np.ndarray]:
    """The rows whose weights do not sum to zero, with these sums; of each key the retractions come first.

    >>> import numpy as np, pyarrow as pa
    >>> rows, left = net(pa.table({"k": ["a", "a", "a"], "n": [2, 1, 7]}), np.array([1, -1, 0]), ["k"])
    >>> rows["n"].to_pylist(), left
    ([1, 2], array([-1,  1]))
    """
    if not rows.num_columns:
        return rows, weights
    low, high = hash_rows_128([Column(rows[name]) for name in rows.column_names])
    _, first, sums = netted(low, high, weights)
    first, sums = first[sums != 0], sums[sums != 0]
    rows = rows.take(pa.array(first))
    if keys and len(sums):
        order = np.lexsort((sums > 0, key_groups(rows, keys).codes))
        rows, sums = rows.take(pa.array(order)), sums[order]
    return rows, sums


def latest(rows: pa.Table, weights: np.ndarray, keys: Sequence[str], who: str) -> tuple[pa.Table, np.ndarray]:
    """The last row of each key that changed, and a mask of the keys that have none left, by first appearance.

    >>> import numpy as np, pyarrow as pa
    >>> rows = pa.table({"k": ["a", "a", "b"], "n": [1, 2, 5]})
    >>> last, deleted = latest(rows, np.array([-1, 1, -1]), ["k"], "it")
    >>> last["n"].to_pylist(), deleted
    ([2, 5], array([False,  True]))
    """
    if not keys:
        raise InvalidArgument(
            f"{who} has one row for each key: give keys=, such as the keys of the grouping and 'window'"
        )
    told = [f.name for f in rows.schema if not (f.name == "pane" and f.type == PANE)]
    low, high = hash_rows_128([Column(rows[name]) for name in told])
    _, first, net = netted(low, high, weights)
    changed = net != 0
    first, net = first[changed], net[changed]
    rows = rows.take(pa.array(first))
    groups = key_groups(rows, keys)
    added = np.bincount(groups.codes, np.maximum(net, 0), groups.count)
    retracted = np.bincount(groups.codes, np.maximum(-net, 0), groups.count)
    if (added > 1).any() or (retracted > 1).any():
        several = np.flatnonzero(((added > 1) | (retracted > 1))[groups.codes])[0]
        key = {name: rows[name][int(several)].as_py() for name in keys}
        raise InvalidArgument(
            f"{who} has one row for each key, and key {key} has several rows, or a weight other than 1: give keys= "
            "that tell rows apart, or write both rows of an update, as 'debezium', 'delta' or 'flink'"
        )
    chosen = np.full(groups.count, -1)
    for sign in (-1, 1):  # an addition takes the place of a retraction
        places = np.flatnonzero(np.sign(net) == sign)
        chosen[groups.codes[places]] = places
    return rows.take(pa.array(chosen)), net[chosen] < 0


__all__ = ["latest", "net", "pairs"]
