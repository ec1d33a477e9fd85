"""The net of a batch: one change for each key, of all the rows and retractions that the batch has of it.

Guarded by tests/tables/test_tables.py.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..combiners.aggregate import weights_of
from ..combiners.rows.columns import Column, flat
from ..combiners.rows.group_sums import sum_counts
from ..combiners.rows.groups import Groups, group_rows
from ..combiners.rows.hashing import hash_rows_128
from ..combiners.rows.key_codes import normal_keys
from ..combiners.rows.plain_types import text_room
from ..errors import InvalidArgument, OutOfRange
from ..panes.rows.equal_rows import netted
from .layout import CHANGE, Layout


def changes_of(rows: pa.Table, layout: Layout) -> pa.Table:
    """The changes of a table by the rows of a batch: one row for each key that changes, with the column `CHANGE`.

    A new row has 1. A row that takes the place of another has 0. A row that is retracted and not replaced has -1.

    >>> import pyarrow as pa
    >>> rows = pa.table({"k": ["a", "a", "b", "c", "c"], "n": [1, 2, 5, 7, 7], "diff": [-1, 1, 1, 1, -1]})
    >>> changes_of(rows, Layout(rows.schema, ("k",), "diff")).to_pydict()
    {'k': ['a', 'b'], 'n': [2, 5], '_uncombine_change': [0, 1]}
    """
    table = layout.flat(rows)
    weights = np.ones(rows.num_rows, np.int64) if layout.diff is None else weights_of(rows, layout.diff)
    with text_room:
        keys = [normal_keys(flat(table[name])) for name in layout.keys]
    for name, key in zip(layout.keys, keys, strict=True):  # -0.0 and 0.0 are one key, which no target need know
        table = table.set_column(table.column_names.index(name), name, key)
    groups, first = group_rows(keys, rows.num_rows)
    places, left = _survivors(table, layout, groups, first, weights)
    codes = groups.codes[places]
    new, old = left > 0, left < 0
    _check(table, layout, places, codes, left, groups.count)
    row = np.full(groups.count, -1)
    row[codes[old]] = places[old]
    row[codes[new]] = places[new]
    change = np.zeros(groups.count, np.int64)
    np.add.at(change, codes, left)
    changed = row >= 0
    out = table.take(pa.array(row[changed])).append_column(CHANGE, pa.array(change[changed].astype(np.int8)))
    return _fitted(out, layout.changes)


def _survivors(
    table: pa.Table, layout: Layout, groups: Groups, first: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The places of rows whose weights do not sum to zero, and these sums."""
    if groups.count == len(weights):
        places = np.flatnonzero(weights)
        return places, weights[places]
    # A row that is alone with its key has no equal, and mostly a retraction and a new row differ in the first values.
    settled = groups.sizes == 1
    settled[_updates(table, layout, groups, first, weights)] = True
    certain = settled[groups.codes]
    shared = np.flatnonzero(~certain)
    some = table.take(pa.array(shared))
    low, high = hash_rows_128([Column(column) for column in some.columns])
    _, firsts, sums = netted(low, high, weights[shared])
    nonzero, alone = sums != 0, np.flatnonzero(certain & (weights != 0))
    return np.concatenate([alone, shared[firsts[nonzero]]]), np.concatenate([weights[alone], sums[nonzero]])


def _fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows in the types of a table; raises for a value that its type does not hold, such as a time in seconds."""
    columns = list[pa.ChunkedArray]()
    for column, field in zip(rows.columns, schema, strict=True):
        try:
            with text_room:
                columns.append(column.cast(field.type))
        except pa.ArrowInvalid as error:
            raise OutOfRange(
                f"a value of column {field.name!r} does not fit into {field.type}, in which a table has it: leave its "
                f"row out with where(), or give the column another type with with_columns() ({error})"
            ) from None
    return pa.table(columns, schema=schema)


def _updates(table: pa.Table, layout: Layout, groups: Groups, first: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The keys of one retraction and one new row that differ for certain."""
    last = np.empty(groups.count, np.int64)
    last[groups.codes] = np.arange(len(weights))
    keys = np.flatnonzero((groups.sizes == 2) & (weights[first] * weights[last] == -1))
    left = np.arange(len(keys))
    for name in layout.values:
        if not len(left):
            break
        if pa.types.is_nested(table[name].type):
            continue
        one, other = (table[name].take(pa.array(places[keys[left]])) for places in (first, last))
        differ = pc.fill_null(pc.not_equal(one, other), False)
        if pa.types.is_floating(one.type):  # NaN equals NaN here
            differ = pc.and_not(differ, pc.fill_null(pc.and_(pc.is_nan(one), pc.is_nan(other)), False))
        left = left[~np.asarray(differ)]
    return np.delete(keys, left)


def _check(
    table: pa.Table, layout: Layout, places: np.ndarray, codes: np.ndarray, left: np.ndarray, count: int
) -> None:
    """Raise if more than one row, or more than one retraction, is left for a key."""
    groups = Groups(codes, count)
    for weights, what in ((np.maximum(left, 0), "rows"), (np.maximum(-left, 0), "retractions")):
        sums = sum_counts(groups, weights)
        if count and int(sums.max()) > 1:
            at = int(places[np.flatnonzero(sums[codes] > 1)[0]])
            key = {name: table[name][at].as_py() for name in layout.keys}
            raise InvalidArgument(
                f"a table has one row for each key, but {int(sums.max())} {what} are left for {key}: give keys= that "
                "no two rows share"
            )


__all__ = ["changes_of"]
