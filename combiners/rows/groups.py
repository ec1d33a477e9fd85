"""Groups of rows: a code from 0 to count - 1 for each row, by first appearance.

Places that exist for certain are taken with mode="clip", which is faster because numpy does not check them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .key_codes import KeyCodes, key_codes
from .numbering import bits_below, first_rows, sorted_with_rows, starts_of_runs

_RADIX = 12
"""The bits of codes that Arrow sorts by counting."""

_FEW = 1 << 13
"""The number of rows up to which numpy sorts packed numbers faster than Arrow counts codes."""


class Groups:
    """A group code for each row; the order of rows by group is computed once, when it is first needed.

    >>> import numpy as np
    >>> groups = Groups(np.array([1, 0, 1]), 2)
    >>> groups.order, groups.sizes
    (array([1, 0, 2]), array([1, 2]))
    """

    __slots__ = ("_codes", "_order", "_sizes", "_weighed", "count")

    def __init__(self, codes: np.ndarray, count: int) -> None:
        self._codes: np.ndarray | None = codes
        self.count = count
        self._order: np.ndarray | None = None
        self._sizes: np.ndarray | None = None
        self._weighed: tuple[np.ndarray, np.ndarray] | None = None

    @classmethod
    def of_runs(cls, order: np.ndarray, sizes: np.ndarray, stable: bool = True) -> Groups:
        """Groups from an order of the rows, one group after the other, none of them empty.

        The order is `stable` if the rows of a group keep their own order.

        >>> import numpy as np
        >>> Groups.of_runs(np.array([1, 0, 2]), np.array([1, 2])).codes
        array([1, 0, 1])
        """
        groups = cls.__new__(cls)
        groups._codes, groups._order, groups._sizes, groups.count = None, order, sizes, len(sizes)
        groups._weighed = None
        if not stable:
            groups._codes, groups._order = groups.codes, None
        return groups

    @property
    def in_runs(self) -> bool:
        """True if only the order of the rows is known so far, and no group is empty."""
        return self._codes is None

    def run(self, values: np.ndarray) -> np.ndarray:
        """The values of the rows in their order by group."""
        return values.take(self.order, mode="clip")

    @property
    def codes(self) -> np.ndarray:
        """The group of each row."""
        if self._codes is None:
            assert self._order is not None
            assert self._sizes is not None
            self._codes = np.empty(len(self._order), np.int64)
            self._codes[self._order] = np.repeat(np.arange(self.count), self._sizes)
        return self._codes

    @classmethod
    def repeated(cls, count: int, times: int) -> Groups:
        """`times` runs of the groups 0, 1, ... count - 1, one after the other."""
        return cls(np.tile(np.arange(count, dtype=np.int64), times), count)

    @classmethod
    def single(cls, rows: int) -> Groups:
        """All rows in one group."""
        return cls(np.zeros(rows, np.int64), 1)

    def __len__(self) -> int:
        rows = self._order if self._codes is None else self._codes
        assert rows is not None
        return len(rows)

    def take(self, rows: np.ndarray) -> Groups:
        """The same groups over fewer rows (places or a mask)."""
        return Groups(self.codes[rows], self.count)

    @property
    def sizes(self) -> np.ndarray:
        """Rows in each group."""
        if self._sizes is None:
            self._sizes = np.bincount(self.codes, minlength=self.count)
        return self._sizes

    def weighed(self, weights: np.ndarray, total: Callable[[Groups, np.ndarray], np.ndarray]) -> np.ndarray:
        """The `total` of each group's weights, computed once for the same array of weights."""
        if self._weighed is None or self._weighed[0] is not weights:
            sums = total(self, weights)
            sums.flags.writeable = False
            self._weighed = weights, sums
        return self._weighed[1]

    @property
    def starts(self) -> np.ndarray:
        """The place in `order` at which each group starts."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def order(self) -> np.ndarray:
        """The rows by group, and in their own order within a group."""
        if self._order is None:
            self._order = stable_order(self.codes, self.count)
        return self._order


def stable_order(codes: np.ndarray, count: int) -> np.ndarray:
    """A stable argsort of codes below `count`.

    Each code is packed with its row into one number, and the numbers are sorted. Many rows of few codes are sorted by
    radix instead, 12 bits at a time, for which Arrow sorts by counting, and so are numbers that do not fit 63 bits.
    """
    if len(codes) > 1 and bool(np.all(codes[1:] >= codes[:-1])):
        return np.arange(len(codes))
    bits, row_bits = bits_below(count), bits_below(len(codes))
    if not _packs(count, len(codes)) or (bits <= _RADIX and len(codes) > _FEW):
        return _by_radix(codes, bits)
    packed = sorted_with_rows(codes)
    packed &= (1 << row_bits) - 1
    return packed


def _packs(count: int, rows: int) -> bool:
    """True if a code below `count` and the number of a row fit the 63 bits of one number."""
    return bits_below(count) + bits_below(rows) <= 63


def _by_radix(codes: np.ndarray, bits: int) -> np.ndarray:
    width = -(-bits // -(-bits // _RADIX))
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
    # Arrow's own pool would keep the memory of the intermediate arrays.
    pool = pa.system_memory_pool()
    return np.asarray(pc.array_sort_indices(pa.array(digits), memory_pool=pool)).view(np.int64)


def group_rows(columns: Sequence[pa.Array], rows: int) -> tuple[Groups, np.ndarray]:
    """The groups of rows that agree in all key columns, and the first row of each group.

    Groups are numbered by first appearance.
    """
    return _number(key_codes(columns, rows))


def unordered_groups(columns: Sequence[pa.Array], rows: int) -> tuple[Groups, np.ndarray]:
    """The same groups; few groups may be numbered in another order, so that their rows need no new numbers."""
    return _number(key_codes(columns, rows), ordered=False)


def keyed_groups(columns: Sequence[pa.Array], rows: int, coded: bool = False) -> tuple[Groups, list[pa.Array]]:
    """The same groups in the cheapest order, which depends on the columns only, and their keys.

    With `coded` keys that are texts are dictionaries.
    """
    keys = key_codes(columns, rows, coded)
    if not _packs(keys.size, rows):
        keys = keys.dense()
    groups, present = _by_code(keys.codes, keys.size)
    return groups, keys.decode(present)


def _by_code(codes: np.ndarray, size: int) -> tuple[Groups, np.ndarray]:
    """The groups of codes below `size`, in the order of the codes, and the code of each."""
    rows = len(codes)
    if size <= max(rows // 4, 1024):
        sizes = np.bincount(codes, minlength=size)
        if sizes.all():
            groups, present = Groups(codes, size), np.arange(size)
        else:
            present = np.flatnonzero(sizes != 0)
            number = np.zeros(size, np.int64)
            number[present] = np.arange(len(present))
            groups, sizes = Groups(number.take(codes, mode="clip"), len(present)), sizes[present]
        groups._sizes = sizes
        return groups, present
    if size <= 4 * rows:
        # The tables are larger than the cache, so their values are as narrow as can be.
        used = np.zeros(size, np.bool_)
        used[codes] = True
        present = np.flatnonzero(used)
        number = np.empty(size, np.int32)
        number[present] = np.arange(len(present), dtype=np.int32)
        return Groups(number.take(codes, mode="clip").astype(np.int64), len(present)), present
    packed, row_bits = sorted_with_rows(codes), bits_below(rows)
    ordered = packed >> row_bits
    packed &= (1 << row_bits) - 1
    fresh = starts_of_runs(ordered)
    group_codes = np.empty(rows, np.int64)
    group_codes[packed] = np.cumsum(fresh) - 1
    present = ordered[fresh]
    return Groups(group_codes, len(present)), present


def _number(keys: KeyCodes, ordered: bool = True) -> tuple[Groups, np.ndarray]:
    """Renumber codes by first appearance, or at least without gaps; also the first row of each."""
    if keys.sparse:
        keys = keys.dense()
    codes, size, rows = keys.codes, keys.size, len(keys.codes)
    if keys.first is not None and rows:
        return Groups(codes, size), keys.first()
    sizes: np.ndarray | None = None
    if size <= rows // 16:
        sizes = np.zeros(size, np.int64)
        np.add.at(sizes, codes, 1)
    first_row = first_rows(codes, size, None if sizes is None else int(np.count_nonzero(sizes)))
    if sizes is not None and not ordered and sizes.all():
        groups = Groups(codes, size)
        groups._sizes = sizes
        return groups, first_row
    is_first = np.zeros(rows + 1, np.bool_)
    is_first[first_row] = True
    first = np.flatnonzero(is_first[:rows])
    by_number = codes[first]
    first_row[by_number] = np.arange(len(first))
    groups = Groups(first_row.take(codes, mode="clip"), len(first))
    if sizes is not None:
        groups._sizes = sizes[by_number]
    return groups, first
