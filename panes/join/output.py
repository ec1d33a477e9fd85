"""The output of a step: rows consolidated, in order, and with their columns.

Guarded by tests/panes/join/test_join_cases.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...combiners.rows.columns import Column, flat
from ...combiners.rows.group_sums import sum_counts
from ...combiners.rows.groups import group_rows, stable_order
from ...combiners.rows.hashing import hash_rows
from ...combiners.rows.ordering import order_keys, packed_keys
from ...windows import timestamps
from .compiled import CompiledJoin
from .difference import Difference, Keys
from .loaded_rows import LoadedRows
from .side_changes import hashable, identity

_FACTORS = tuple(
    np.uint64(factor)
    for factor in (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F, 0xBF58476D1CE4E5B9)
)  # fmt: skip
"""Odd numbers that spread what they are multiplied with over 64 bits."""

PIECE = 1 << 22
"""The number of rows of output whose columns are put together at once; fewer if a text may be long."""

_TEXT = 1 << 30
"""The most bytes of text in a piece, of the 2 GiB to which the offsets of an array go."""


def output(
    compiled: CompiledJoin,
    left: LoadedRows,
    right: LoadedRows,
    keys: Keys,
    change: Difference,
    of_left: bool = False,
) -> pa.Table:
    """The table of a change: retractions first, then by time, then by key.

    The time of a row is the later one of its pair, or that of its left row if it is always `of_left`.
    """
    if len(change) == 0:
        return compiled.output_schema.empty_table()
    values, parts = [], []
    for side, hand, rows in ((compiled.left, left, change.left), (compiled.right, right, change.right)):
        names = [f"value.{i}" for i in range(len(side.values))] if side.name == "left" or compiled.join.pairs else []
        table, places = row_values(hand, rows, names)
        values.append(table)
        parts.append(places)
    of_key = change.left
    if int(of_key.min()) < 0:
        of_key = np.where(of_key < 0, change.right + len(left), of_key)
    times = _times(left, change.left)
    if not of_left:
        times = np.maximum(times, _times(right, change.right))
    weights = change.weights
    if weights.min() < 0 < weights.max():
        survivors, weights = _consolidated(keys.codes[of_key], times, parts, values, weights)
        parts, of_key, times = [places[survivors] for places in parts], of_key[survivors], times[survivors]
    if (order := _order(compiled, keys, of_key, times, weights)) is not None:
        of_key, times, weights, *parts = (part.take(order, mode="clip") for part in (of_key, times, weights, *parts))
    pieces = [compiled.output_schema.empty_table()] if len(weights) == 0 else []
    size = rows_in_piece([*keys.columns, *(flat(column) for table in values for column in table.columns)])
    for first in range(0, len(weights), size):
        piece = slice(first, first + size)
        columns = values_at(keys.columns, of_key[piece])
        for table, places in zip(values, parts, strict=True):
            columns += values_at([flat(column) for column in table.columns], places[piece])
        columns += [timestamps(times[piece]), pa.array(weights[piece])]
        pieces.append(pa.Table.from_arrays(columns, schema=compiled.output_schema))
    return pa.concat_tables(pieces)


def values_at(columns: Sequence[pa.Array], places: np.ndarray) -> list[pa.Array]:
    """The values at some places of each column: a slice if they follow each other, and null for a place of -1."""
    if not columns or not len(places):
        return [column.slice(0, 0) for column in columns]
    first, count = int(places[0]), len(places)
    if 0 <= first == int(places[-1]) - count + 1 and np.array_equal(places, np.arange(first, first + count)):
        return [column.slice(first, count) for column in columns]
    missing = places < 0
    some = pa.array(places, mask=missing if missing.any() else None)
    return [column.take(some) for column in columns]


def rows_in_piece(columns: list[pa.Array]) -> int:
    """The number of rows whose texts fit into one array, whatever row repeats."""
    texts = [column for column in columns if pa.types.is_string(column.type) or pa.types.is_binary(column.type)]
    longest = max((pc.max(pc.binary_length(column)).as_py() or 0 for column in texts), default=0)
    return max(min(PIECE, _TEXT // max(longest, 1)), 1)


def row_values(hand: LoadedRows, rows: np.ndarray, names: list[str]) -> tuple[pa.Table, np.ndarray]:
    """Columns of the rows that occur, and the place in them of each row of output; -1 where it is missing."""
    if not names:
        return pa.table({}), np.zeros(len(rows), np.int64)
    if not len(hand.store_rows):
        return hand.changed.table.select(names).combine_chunks(), rows
    occurs = np.zeros(len(hand) + 1, np.bool_)
    occurs[rows] = True
    occurs[-1] = False
    chosen = np.flatnonzero(occurs)
    table = hand.values(chosen, names).combine_chunks()
    if len(chosen) == len(hand):
        return table, rows
    places = np.cumsum(occurs) - 1
    places[-1] = -1
    return table, places[rows]


def _times(hand: LoadedRows, rows: np.ndarray) -> np.ndarray:
    if len(hand) == 0:
        return np.full(len(rows), np.iinfo(np.int64).min)
    times = hand.times.take(rows, mode="wrap")
    return np.where(rows < 0, np.iinfo(np.int64).min, times) if rows.min() < 0 else times


def _consolidated(
    codes: np.ndarray, times: np.ndarray, parts: list[np.ndarray], values: list[pa.Table], weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows none of which has the opposite sign of an equal row, with their weights."""
    doubtful = _doubtful(codes, times, parts, values, weights)
    if not doubtful.any():
        return np.arange(len(weights)), weights
    sure, rest = np.flatnonzero(~doubtful), np.flatnonzero(doubtful)
    columns = [pa.array(codes[rest]), pa.array(times[rest])]
    for table, places in zip(values, parts, strict=True):
        some = values_at([flat(column) for column in table.columns], places[rest])
        columns += [part for column in some for part in identity(column)]
    groups, first = group_rows(columns, len(rest))
    sums = sum_counts(groups, weights[rest])
    nonzero = np.flatnonzero(sums)
    return np.concatenate([sure, rest[first[nonzero]]]), np.concatenate([weights[sure], sums[nonzero]])


def _doubtful(
    codes: np.ndarray, times: np.ndarray, parts: list[np.ndarray], values: list[pa.Table], weights: np.ndarray
) -> np.ndarray:
    """True where an equal row may have the opposite sign: where some row of that sign has a hash in the same slot."""
    hashes = codes.view(np.uint64) * _FACTORS[0]
    hashes += times.view(np.uint64) * _FACTORS[1]
    for table, places, factor in zip(values, parts, _FACTORS[2:], strict=True):
        if table.num_columns:
            # A row of a side that is missing is equal to one of nulls.
            of_values, of_nulls = (
                hash_rows([hashable(flat(column)) for column in some.columns]) * factor
                for some in (table, _nulls(table.schema))
            )
            hashes += np.append(of_values, of_nulls).take(places, mode="wrap")
    hashes *= _FACTORS[0]
    bits = max((8 * len(weights)).bit_length(), 10)
    slots = (hashes >> np.uint64(64 - bits)).view(np.int64)
    negative = weights < 0
    retracted, added = np.zeros((2, 1 << bits), np.bool_)
    retracted[slots[negative]] = True
    added[slots[~negative]] = True
    retracted &= added
    return retracted.take(slots, mode="clip")


def _nulls(schema: pa.Schema) -> pa.Table:
    """A row of nulls."""
    return pa.Table.from_arrays([pa.nulls(1, kind) for kind in schema.types], schema=schema)


def _order(
    compiled: CompiledJoin, keys: Keys, of_key: np.ndarray, times: np.ndarray, weights: np.ndarray
) -> np.ndarray | None:
    """Retractions first, then by time, then by key; None if the rows are in this order already."""
    count = len(compiled.join.on)
    some = pa.array(keys.firsts)
    ranks = np.zeros(keys.count, np.int64)
    if count:
        ranks = order_keys([Column(column.take(some)) for column in keys.columns[:count]]).keys
    if len(weights) == 0:
        return None
    if (weights.min() > 0 or weights.max() < 0) and bool((times[1:] >= times[:-1]).all()):
        same = times[1:] == times[:-1]
        if not same.any():
            return None
        if np.count_nonzero(same) < len(times) // 8:
            tied = np.append(False, same)
            tied[:-1] |= same
            places = np.flatnonzero(tied)
            order = np.arange(len(times))
            order[places] = places[np.lexsort((ranks.take(keys.codes.take(of_key[places])), times[places]))]
            return order
    packed = packed_keys(
        [Column(pa.array(one)) for one in (weights > 0, times, ranks.take(keys.codes.take(of_key, mode="clip")))]
    )
    if len(packed) == 1:
        return stable_order(packed[0].keys - packed[0].low, packed[0].span)
    return np.lexsort([part.keys for part in reversed(packed)])
