"""Values that a feed did not send because they did not change: each is taken from the version before that has it.

A database may leave a large value out of an update, and a mark stands in its place. A version with marks says nothing
of these columns, so its row is whole only if a row of its key is known, and no deletion lies between. With an order the
version that sent a value is remembered where it is not the version of the row: one that comes later and lies between
them has the newer value.

Guarded by tests/panes/upserts/test_unsent.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...combiners.rows.columns import flat


def marked(column: pa.Array, mark: str) -> np.ndarray:
    """The values that are the mark: a text, bytes, or a list which has the mark alone.

    >>> marked(pa.array([["?"], ["?", "a"], None]), "?")
    array([ True, False, False])
    """
    mask = np.zeros(len(column), np.bool_)
    is_list = pa.types.is_list(column.type)
    if is_list:
        alone = pc.equal(pc.list_value_length(column), 1).fill_null(False)
        places = np.flatnonzero(np.asarray(alone))
        column = pc.list_flatten(column.filter(alone))
    if _is_text(column.type):
        value = mark if pa.types.is_string(column.type) else mark.encode()
        is_mark = np.asarray(pc.equal(column, pa.scalar(value, column.type)).fill_null(False))
        mask[places[is_mark] if is_list else is_mark] = True
    return mask


def may_be_marked(kind: pa.DataType) -> bool:
    """True for a type whose values may be a mark."""
    return _is_text(kind.value_type if pa.types.is_list(kind) else kind)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


@dataclass(frozen=True)
class KeyVersions:
    """The versions of some keys: the remembered ones first, at most one of a key, and then those that came."""

    codes: np.ndarray
    """The key of each version."""
    count: int
    """The number of keys."""
    old: int
    """The number of remembered versions."""
    lives: np.ndarray
    """A mask of the versions that are no deletions."""
    numbers: np.ndarray
    """The numbers of each version, by which it is earlier or later than another; none in the order of arrival."""

    def last(self, numbers: np.ndarray, among: np.ndarray) -> np.ndarray:
        """The place of the last of some versions of each key by these numbers; -1 for a key without one.

        Of those that are equal, it is the one that arrived last.
        """
        places = np.flatnonzero(among)
        ordered = places[_order(self.codes[places], numbers[places])]
        last = np.full(self.count, -1)
        last[self.codes[ordered]] = ordered  # of several places that a key gets the last one stays
        return last


@dataclass(frozen=True)
class Filled:
    """The versions of some keys, of which some lack values that others have.

    The row of a key is its last version that is not `lacking`, with the value of each column from the last version that
    sent it.
    """

    all: KeyVersions
    marks: np.ndarray
    """A mask of the columns that each version did not send."""
    sent: np.ndarray
    """The numbers of the version that sent each column of a version; those of its own unless it was filled before."""

    @cached_property
    def lacking(self) -> np.ndarray:
        """A mask of the new versions that no known row makes whole, less those that are older than what is known."""
        every = self.all
        partial = np.asarray(self.marks.any(axis=1))
        order = _order(every.codes, every.numbers)
        codes, places = every.codes[order], np.arange(len(order))
        starts = np.searchsorted(codes, codes)
        tells = np.maximum.accumulate(np.where(~partial[order], places, -1))
        known = (tells >= starts) & every.lives[order[tells]]
        remembered = np.zeros(every.count, np.bool_)
        remembered[every.codes[: every.old]] = True
        after = np.maximum.accumulate(np.where(order < every.old, places, -1)) >= starts
        lacking = np.zeros(len(order), np.bool_)
        lacking[order] = partial[order] & ~known & (after | ~remembered[codes])
        return lacking

    @cached_property
    def last(self) -> np.ndarray:
        """The place of the version that is the row of each key, or its deletion; -1 for a key without one."""
        return self.all.last(self.all.numbers, ~self.lacking)

    @cached_property
    def sources(self) -> np.ndarray:
        """The place of the version that sent each column of the row of a key."""
        fit = self.all.lives & ~self.lacking
        columns = range(self.marks.shape[1])
        return np.stack([self.all.last(self.sent[:, c], fit & ~self.marks[:, c]) for c in columns], axis=1)

    @property
    def corrected(self) -> np.ndarray:
        """A mask of the keys whose remembered row has a value that a version sent which came now."""
        lives = (self.last >= 0) & self.all.lives[self.last]
        return lives & (self.sources >= self.all.old).any(axis=1)

    def sent_now(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the versions that sent the columns of keys, and a mask of those that another version sent."""
        last, sources = self.last[keys], self.sources[keys]
        sent = self.sent[sources, np.arange(sources.shape[1])]
        others = (sent != self.all.numbers[last][:, None, :]).any(axis=(1, 2))
        return sent, others & self.all.lives[last]

    def whole(self, rows: pa.Table, keys: np.ndarray, columns: Sequence[str]) -> pa.Table:
        """The rows of keys, each with the values of its columns from the versions that sent them."""
        table = rows.take(pa.array(self.last[keys]))
        for number, name in enumerate(columns):
            values = flat(rows[name]).take(pa.array(self.sources[keys, number]))
            table = table.set_column(table.column_names.index(name), rows.schema.field(name), values)
        return table


def _order(codes: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The order of versions by their keys, then by their numbers, then as they came."""
    return np.lexsort((*numbers.T[::-1], codes)) if numbers.shape[-1] else np.argsort(codes, kind="stable")


__all__ = ["Filled", "KeyVersions", "marked", "may_be_marked"]
