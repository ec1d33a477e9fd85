"""Columns of lists, as the outstanding panes of windows are kept: a list of records for each window."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ....combiners.rows.groups import Groups


def empty_lists(kind: pa.DataType, count: int) -> pa.ListArray:
    """Lists without items."""
    offsets = pa.array(np.zeros(count + 1, np.int32))
    return pa.ListArray.from_arrays(offsets, pa.array([], kind.value_type), type=kind)


def listed(items: pa.Array, sizes: np.ndarray, kind: pa.DataType) -> pa.ListArray:
    """Items cut into lists of these sizes."""
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), items, type=kind)


def list_sizes(lists: pa.ListArray) -> np.ndarray:
    """The number of items of each list."""
    return np.diff(np.asarray(lists.offsets).astype(np.int64))


def owners(lists: pa.ListArray) -> np.ndarray:
    """The row of each item of the flattened lists."""
    sizes = list_sizes(lists)
    return np.repeat(np.arange(len(sizes)), sizes)


def items_of(lists: pa.ListArray, rows: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The items of the lists at `rows[chosen]`: the entry of `chosen` that has each, and its place in the items."""
    sizes = list_sizes(lists)
    first = (np.cumsum(sizes) - sizes)[rows[chosen]]
    many = sizes[rows[chosen]]
    within = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
    return np.repeat(chosen, many), np.repeat(first, many) + within


def regroup(lists: pa.ListArray, into: np.ndarray, count: int) -> pa.ListArray:
    """The lists that go into the same place, joined in their order; `into` is the place of each, below `count`."""
    sizes = list_sizes(lists)
    items = lists.flatten()
    item_groups = Groups(np.repeat(into, sizes), count)
    if bool(np.all(into[1:] >= into[:-1])):
        return listed(items, item_groups.sizes, lists.type)
    return listed(items.take(pa.array(item_groups.order)), item_groups.sizes, lists.type)


def only(lists: pa.ListArray, kept: np.ndarray) -> pa.ListArray:
    """The lists where `kept` is true, and empty lists elsewhere."""
    sizes = list_sizes(lists)
    items = lists.flatten().filter(pa.array(np.repeat(kept, sizes)))
    return listed(items, np.where(kept, sizes, 0), lists.type)
