"""Messages of the usual shape in format 2 of wal2json, read as columns all at once.

A message has a list of names and values, whose values have many types. Arrow reads them as texts once the numbers among
them have quotes.

Guarded by tests/changelogs/test_changelogs_json.py and tests/changelogs/test_changelogs_in.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..combiners.rows.columns import flat
from ..messages.json_columns.json_in import Texts
from ..messages.json_columns.json_texts import utf8_of

_PAIRS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.string())]))
_MESSAGE = pa.schema(
    [
        *((name, pa.string()) for name in ("action", "schema", "table")),
        *((name, _PAIRS) for name in ("columns", "identity")),
    ]
)
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_BARE = rf'"value"\s*:\s*({_NUMBER}|true|false)(\s*[,}}])'
"""A value without quotes. Inside a text a quote has a backslash before it, so no text has this."""


@dataclass(frozen=True)
class Image:
    """The values of one list of each message."""

    values: pa.Array
    places: Mapping[str, np.ndarray]
    """The place of the value of each column in a message; -1 if the message does not have it once."""

    @classmethod
    def of(cls, pairs: pa.ChunkedArray, names: Sequence[str]) -> Image:
        """The values of these columns in the lists of messages."""
        lists = flat(pairs)
        inside = pc.list_flatten(lists)
        owner = np.asarray(pc.list_parent_indices(lists))
        inner_names, places = pc.struct_field(inside, "name"), {}
        for name in names:
            entries = np.flatnonzero(np.asarray(pc.equal(inner_names, name).fill_null(False)))
            at = np.full(len(lists), -1)
            at[owner[entries]] = entries
            if len(entries) > np.count_nonzero(at >= 0):
                at[np.bincount(owner[entries], minlength=len(lists)) > 1] = -1
            places[name] = at
        return cls(pc.struct_field(inside, "value"), places)

    def has(self, names: Sequence[str]) -> np.ndarray:
        """A mask of the messages with all of these columns."""
        return np.logical_and.reduce([self.places[name] >= 0 for name in names])

    def texts(self, name: str) -> pa.Array:
        """The values of a column; null where a message does not have it."""
        at = self.places[name]
        return self.values.take(pa.array(at, mask=at < 0))


@dataclass(frozen=True)
class Usual:
    """The rows of the messages of the usual shape."""

    done: np.ndarray
    """A mask of the messages whose rows these are, or that say nothing."""
    place: np.ndarray
    sign: np.ndarray
    old: Image
    new: Image

    def texts(self, name: str) -> pa.Array:
        """The values of a column, as texts."""
        both = pa.concat_arrays([self.old.texts(name), self.new.texts(name)])
        return both.take(pa.array(self.place + np.where(self.sign < 0, 0, len(self.done))))


@dataclass(frozen=True)
class SecondFormat:
    """Reads messages of format 2 of the usual shape: with whole rows and known actions."""

    names: tuple[str, ...]
    table: str | None
    keys: tuple[str, ...] | None
    """The keys of a feed without old rows."""

    def __call__(self, column: pa.Array) -> Usual:
        texts = utf8_of(column)
        maybe = np.asarray(pc.match_substring(texts, '"action"').fill_null(False))
        quoted = pc.replace_substring_regex(texts, _BARE, r'"value":"\1"\2')
        if not maybe.all():
            quoted = pc.if_else(pa.array(maybe), quoted, None)
        rows, unread = Texts("data", _MESSAGE)(pa.table({"data": quoted}))
        new, old = (Image.of(rows[name], self.names) for name in ("columns", "identity"))
        action = flat(rows["action"])
        insert, update, delete, *marks = (_equals(action, word) for word in "IUDBCM")
        silent = np.logical_or.reduce(marks) | (np.asarray(action.is_valid()) & ~self._is_of_table(rows))
        whole, needed = new.has(self.names), old.has(self.names if self.keys is None else self.keys)
        right = (insert & whole) | (delete & needed)
        right |= update & whole & (needed if self.keys is None else self._stays(old, new))
        right &= ~silent & ~unread
        adds = right & (insert | update)
        removes = right & (delete | (update & (self.keys is None)))
        place = np.concatenate([np.flatnonzero(removes), np.flatnonzero(adds)])
        sign = np.repeat([-1, 1], [np.count_nonzero(removes), np.count_nonzero(adds)])
        order = np.argsort(place, kind="stable")
        return Usual(
            done=silent | right | np.asarray(column.is_null()), place=place[order], sign=sign[order], old=old, new=new
        )

    def _is_of_table(self, rows: pa.Table) -> np.ndarray:
        if self.table is None:
            return np.ones(rows.num_rows, np.bool_)
        schema, _, name = self.table.rpartition(".")
        here = _equals(flat(rows["table"]), name)
        return here & _equals(flat(rows["schema"]), schema) if schema else here

    def _stays(self, old: Image, new: Image) -> np.ndarray:
        """A mask of the messages whose key is the same before and after."""
        same = np.ones(len(new.places[self.names[0]]), np.bool_)
        for key in self.keys or ():
            one, other = old.texts(key), new.texts(key)
            equal = pc.or_(pc.fill_null(pc.equal(one, other), False), pc.and_(one.is_null(), other.is_null()))
            same &= np.asarray(equal) | (old.places[key] < 0)
        return same


def _equals(column: pa.Array, word: str) -> np.ndarray:
    return np.asarray(pc.equal(column, word).fill_null(False))


__all__ = ["SecondFormat", "Usual"]
