"""Which row belongs to which group: codes from 0 to count - 1, by first appearance.

Places that are known to exist are taken with mode="clip", which is faster, as numpy then looks for no others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import TypeMismatch


class Groups:
    """A group code for each row, with the order of rows by group worked out once when somebody asks.

    >>> import numpy as np
    >>> groups = Groups(np.array([1, 0, 1]), 2)
    >>> groups.order, groups.sizes
    (array([1, 0, 2]), array([1, 2]))
    """

    __slots__ = ("_order", "_sizes", "codes", "count")

    def __init__(self, codes: np.ndarray, count: int) -> None:
        self.codes = codes
        self.count = count
        self._order: np.ndarray | None = None
        self._sizes: np.ndarray | None = None

    @classmethod
    def repeated(cls, count: int, times: int) -> Groups:
        """`times` runs of the groups 0, 1, ... count - 1, one behind the other."""
        return cls(np.tile(np.arange(count, dtype=np.int64), times), count)

    @classmethod
    def single(cls, rows: int) -> Groups:
        """All rows in one group."""
        return cls(np.zeros(rows, np.int64), 1)

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: np.ndarray) -> Groups:
        """The same groups over fewer rows (places or a mask)."""
        return Groups(self.codes[rows], self.count)

    @property
    def sizes(self) -> np.ndarray:
        """Rows in each group."""
        if self._sizes is None:
            self._sizes = np.bincount(self.codes, minlength=self.count)
        return self._sizes

    @property
    def starts(self) -> np.ndarray:
        """Where each group starts among the rows in `order`."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def order(self) -> np.ndarray:
        """The rows by group, and in their own order within a group."""
        if self._order is None:
            self._order = stable_order(self.codes, self.count)
        return self._order


def stable_order(codes: np.ndarray, count: int) -> np.ndarray:
    """A stable argsort of codes below `count`: by radix, 12 bits at a time, which Arrow sorts by counting."""
    if len(codes) > 1 and bool(np.all(codes[1:] >= codes[:-1])):
        return np.arange(len(codes))
    bits = max((count - 1).bit_length(), 1)
    width = -(-bits // -(-bits // 12))
    order: np.ndarray | None = None
    for shift in range(0, bits, width):
        digits = ((codes >> shift) & ((1 << width) - 1)).astype(np.uint16)
        if order is None:
            order = _argsort(digits)
        else:
            order = order.take(_argsort(digits.take(order, mode="clip")), mode="clip")
    assert order is not None
    return order


def _argsort(digits: np.ndarray) -> np.ndarray:
    # Arrow's own pool would hold on to the memory that is used in between.
    pool = pa.system_memory_pool()
    return np.asarray(pc.array_sort_indices(pa.array(digits), memory_pool=pool)).view(np.int64)


def group_rows(columns: Sequence[pa.Array], rows: int) -> tuple[Groups, np.ndarray]:
    """The groups of rows that agree in all key columns, and the first row of each group.

    Null is a key of its own; NaN equals NaN and -0.0 equals 0.0, as in Spark. Groups are numbered by first appearance.
    """
    composite, size = np.zeros(rows, np.int64), 1
    for codes, card in (part for column in columns for part in _codes(column)):
        if size == 1:
            composite, size = codes, card
            continue
        if size * card >= 2**62:
            composite, size = _renumbered(composite, size)
            if size * card >= 2**62:
                codes, card = _renumbered(codes, card)
        composite, size = composite * card + codes, size * card
    return _number(composite, size)


def normal_keys(column: pa.Array) -> pa.Array:
    """A key column in the form that its groups stand for: -0.0 as 0.0, dictionaries decoded."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_floating(column.type):
        return pc.add(column, pa.scalar(0.0, column.type))
    return column


def _codes(column: pa.Array) -> list[tuple[np.ndarray, int]]:
    """One or more code columns (codes, number of codes) that are equal exactly where the keys are equal."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _codes(column.dictionary_decode())
    if pa.types.is_null(kind):
        return [(np.zeros(len(column), np.int64), 1)]
    if pa.types.is_struct(kind):
        parts = [part for child in column.flatten() for part in _codes(child)]
        if column.null_count:
            parts.append((np.asarray(column.is_valid()).astype(np.int64), 2))
        return parts or [(np.zeros(len(column), np.int64), 1)]
    if pa.types.is_nested(kind):
        raise TypeMismatch(f"a column of type {kind} cannot be a key: group by its parts")
    if pa.types.is_floating(kind):
        floats = np.asarray(column.fill_null(0.0).to_numpy(zero_copy_only=False), dtype=np.float64) + 0.0
        floats[np.isnan(floats)] = np.nan
        bits = pa.array(floats.view(np.int64), mask=_nulls(column))
        return _codes(bits)
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif pa.types.is_temporal(kind):
        column = column.view(pa.int64() if kind.bit_width == 64 else pa.int32())
    if pa.types.is_integer(column.type) and column.type != pa.uint64():
        narrow = _narrow(column)
        if narrow is not None:
            return [narrow]
    encoded = column.dictionary_encode(null_encoding="encode")
    return [(np.asarray(encoded.indices).astype(np.int64), max(len(encoded.dictionary), 1))]


def _nulls(column: pa.Array) -> np.ndarray | None:
    return np.asarray(column.is_null()) if column.null_count else None


def _narrow(column: pa.Array) -> tuple[np.ndarray, int] | None:
    """Codes by subtraction for integers that lie close together; None where they do not."""
    if len(column) == column.null_count:
        return np.zeros(len(column), np.int64), 1
    bounds = pc.min_max(column)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    span = high - low + 1
    if span > max(8 * len(column), 1024):
        return None
    nulls = _nulls(column)
    values = np.asarray((column.fill_null(low) if nulls is not None else column).to_numpy(zero_copy_only=False))
    codes = values.astype(np.int64, copy=False)
    if low or nulls is not None:
        codes = codes - low
    if nulls is None:
        return codes, span
    codes[nulls] = span
    return codes, span + 1


def _number(codes: np.ndarray, size: int) -> tuple[Groups, np.ndarray]:
    """Renumber codes by first appearance; also the first row of each."""
    rows = len(codes)
    if size > max(8 * rows, 1024):
        encoded = pa.array(codes).dictionary_encode()
        codes, size = np.asarray(encoded.indices).astype(np.int64), len(encoded.dictionary)
    first_row = np.full(size, rows)
    sizes: np.ndarray | None = None
    if size > rows // 16:
        np.minimum.at(first_row, codes, np.arange(rows))
    else:
        sizes = np.zeros(size, np.int64)
        np.add.at(sizes, codes, 1)
        _find_first(first_row, codes, int(np.count_nonzero(sizes)))
    is_first = np.zeros(rows + 1, np.bool_)
    is_first[first_row] = True
    first = np.flatnonzero(is_first[:rows])
    by_number = codes[first]
    first_row[by_number] = np.arange(len(first))
    groups = Groups(first_row.take(codes, mode="clip"), len(first))
    if sizes is not None:
        groups._sizes = sizes[by_number]
    return groups, first


def _renumbered(codes: np.ndarray, size: int) -> tuple[np.ndarray, int]:
    groups, _ = _number(codes, size)
    return groups.codes, groups.count


def _find_first(first_row: np.ndarray, codes: np.ndarray, present: int) -> None:
    """Put the first row of each code in its place; most often the first few rows tell."""
    start, stop = 0, min(4096, len(codes))
    while start < stop:
        np.minimum.at(first_row, codes[start:stop], np.arange(start, stop))
        if np.count_nonzero(first_row < len(codes)) == present:
            return
        start, stop = stop, min(8 * stop, len(codes))
