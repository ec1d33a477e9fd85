"""Retractions meet the rows that they retract, before the join: what a side shows of each row, before and after.

A row is identified by all its columns but its weight (and `pane`, which the state does not have). A side shows a row
as often as its weights sum to, and not at all if the sum is negative: such a row came after its retraction, or will.

Guarded by tests/panes/join/test_join.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import Column, flat, int64_column
from ...combiners.rows.group_sums import sum_counts
from ...combiners.rows.groups import group_rows
from ...combiners.rows.hashing import hash_rows_128
from ..state.store_rows import StoreRows
from .side_rows import Rows


@dataclass(frozen=True)
class ChangedRows:
    """Rows of a side that a bundle changes, with the weights that are shown before and after."""

    table: pa.Table
    """In its column `weight`, the sums that the state keeps."""
    expiry: np.ndarray
    before: np.ndarray
    after: np.ndarray
    rows: Rows
    chosen: np.ndarray | None = None
    """The places of the rows in the bundle; None for all of its rows."""

    @cached_property
    def hashes(self) -> np.ndarray:
        """The hashes of the keys."""
        return self.rows.hashes if self.chosen is None else self.rows.hashes[self.chosen]

    def __len__(self) -> int:
        return len(self.after)

    @property
    def sums(self) -> np.ndarray:
        return int64_column(self.table["weight"])


def all_new(rows: Rows) -> ChangedRows:
    """The rows of a bundle without retractions."""
    weights, none = rows.weights, np.broadcast_to(np.zeros(1, np.int64), len(rows))
    return ChangedRows(table=rows.table, expiry=rows.expiry, before=none, after=weights, rows=rows)


def netted(rows: Rows, old_rows: StoreRows, early: StoreRows) -> tuple[ChangedRows, np.ndarray, np.ndarray]:
    """The rows of a bundle netted with old rows; and masks of the old and the early rows that they replace."""
    near = np.flatnonzero(np.isin(int64_column(old_rows.read(["time"])["time"]), rows.times))
    chosen = np.zeros(len(old_rows), np.bool_)
    chosen[near] = True
    every = pa.concat_tables([rows.table, old_rows.where(chosen).read(), early.read()]).combine_chunks()
    columns = [column for name in every.column_names if name != "weight" for column in identity(flat(every[name]))]
    groups, first = group_rows(columns, every.num_rows)
    new, weights = np.arange(every.num_rows) < len(rows), int64_column(every["weight"])
    # Groups are numbered by their first rows, and those of the bundle come first.
    count = int(np.count_nonzero(first < len(rows)))
    first = first[:count]
    sums = sum_counts(groups, weights)[:count]
    old = sum_counts(groups, np.where(new, 0, weights))[:count]
    met = groups.codes[len(rows) :] < count
    replaced = np.zeros(len(old_rows), np.bool_)
    replaced[near] = met[: len(near)]
    mask = (sums != 0) | (old != 0)
    first, sums, old = first[mask], sums[mask], old[mask]
    table = rows.table.take(pa.array(first))
    table = table.set_column(table.column_names.index("weight"), table.schema.field("weight"), pa.array(sums))
    changed = ChangedRows(
        table=table,
        expiry=rows.expiry[first],
        before=np.maximum(old, 0),
        after=np.maximum(sums, 0),
        rows=rows,
        chosen=first,
    )
    return changed, replaced, met[len(near) :]


def identity(column: pa.Array) -> Sequence[pa.Array]:
    """Columns by which rows are grouped that are equal in this column: itself, or hashes of 128 bits of nested values.

    >>> import pyarrow as pa
    >>> len(identity(pa.array([[1], [2]]))), len(identity(pa.array(["a"])))
    (2, 1)
    """
    if not pa.types.is_nested(column.type):
        return [column]
    return [pa.array(half) for half in hash_rows_128([hashable(column)])]


def hashable(column: pa.Array) -> Column:
    """The column as one that can be hashed: a map as the list of its pairs."""
    if pa.types.is_map(column.type):
        pairs = pa.StructArray.from_arrays([column.keys, column.items], names=["key", "value"])
        column = pa.ListArray.from_arrays(column.offsets, pairs, mask=pa.array(np.asarray(column.is_null())))
    return Column(column)
