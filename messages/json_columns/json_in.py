"""Columns of JSON texts as columns of known types.

Arrow's reader takes all texts at once. Where it cannot, because a text is no JSON, or values of a field are of several
kinds, Python reads the texts of that piece one by one.

Guarded by tests/changelogs/test_changelogs_json.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from ...combiners.rows.columns import flat
from ...combiners.rows.decimal_casts import far_in
from .json_texts import deep, parsed
from .json_values import UNREADABLE, array_of, storable, value_of

PIECE = 65_536
"""The number of texts that are read at once, so that one bad text makes few others slow."""

PIECE_BYTES = 64 << 20

PARTS = 8
"""The number of parts into which texts are cut of which one cannot be read."""

FEW = 64
"""The texts that are not cut up."""

MANY = 1024
"""The texts in parts of which most cannot be read, that are not cut up further."""

STOPS = 4
"""The most texts at which Arrow may stop among a few hundred."""

_STOP = re.compile(r" in row (\d+)$")
"""The words of Arrow for the text at which it stops."""

SPACE = " \t\n\r"
"""The space that JSON has around a value. Unicode has more."""

SAMPLE = 64
"""The number of texts that show how a field has its times: as numbers or as texts."""


@dataclass(frozen=True)
class Texts:
    """Reads the JSON objects in a column of texts or bytes.

    >>> import pyarrow as pa
    >>> texts = Texts("value", pa.schema([("x", pa.int64())]))
    >>> rows, unread = texts(pa.table({"value": ['{"x": 1}', None, "{"]}))
    >>> rows["x"].to_pylist(), unread.tolist()
    ([1, None, None], [False, False, True])
    """

    column: str
    schema: pa.Schema

    def __call__(self, messages: pa.Table) -> tuple[pa.Table, np.ndarray]:
        """The fields of each text, null where it is null, and a mask of the texts that are no such objects."""
        texts = _as_texts(flat(messages[self.column]))
        tables, masks = [self.schema.empty_table()], [np.zeros(0, np.bool_)]
        for piece in _pieces(texts):
            rows, unread = self._piece(piece)
            tables.append(rows)
            masks.append(unread)
        return pa.concat_tables(tables), np.concatenate(masks)

    def _piece(self, texts: pa.Array) -> tuple[pa.Table, np.ndarray]:
        nested = deep(texts)
        if nested.any():
            read, unread = self._piece(pc.if_else(pa.array(nested), pa.scalar(None, texts.type), texts))
            return read, unread | nested
        if not texts.null_count:
            return self._read(texts)
        there = np.asarray(texts.is_valid())
        read, unread = self._read(texts.drop_null())
        return _spread(read, there), _within(there, unread)

    def _read(self, texts: pa.Array) -> tuple[pa.Table, np.ndarray]:
        """The fields of texts; those around a text that Arrow does not read are cut up until they are few."""
        read = self._at_once(texts)
        if isinstance(read, pa.Table):
            return read, np.zeros(len(texts), np.bool_)
        objects = _may_be_objects(texts)
        if not objects.all():  # such as texts that were cut off, which would make those around them slow
            read, unread = self._read(texts.filter(pa.array(objects)))
            return _spread(read, objects), _within(objects, unread) | ~objects
        size = len(texts) // PARTS
        if not self._is_for_arrow:
            return self._one_by_one(texts)
        if size <= FEW * 2:
            return self._without_few(texts)
        parts = [texts.slice(first, size) for first in range(0, len(texts), size)]
        tables = [self._at_once(part) for part in parts]
        # Where most of these few have such a text, so have parts of them.
        are_many = size <= MANY and sum(not isinstance(table, pa.Table) for table in tables) > len(parts) // 2
        again = self._without_few if are_many else self._read
        answers = [
            (table, np.zeros(len(part), np.bool_)) if isinstance(table, pa.Table) else again(part)
            for part, table in zip(parts, tables, strict=True)
        ]
        return pa.concat_tables([rows for rows, _ in answers]), np.concatenate([mask for _, mask in answers])

    def _without_few(self, texts: pa.Array) -> tuple[pa.Table, np.ndarray]:
        """The fields of texts, of which the first few at which Arrow stops are read by Python; else all are."""
        there = np.ones(len(texts), np.bool_)
        for _ in range(STOPS):
            rest = texts.filter(pa.array(there))
            read = self._at_once(rest)
            if isinstance(read, pa.Table):
                odd, unread = self._one_by_one(texts.filter(pa.array(~there)))
                place = np.where(there, np.cumsum(there) - 1, len(rest) + np.cumsum(~there) - 1)
                return pa.concat_tables([read, odd]).take(pa.array(place)), _within(~there, unread)
            if read is None or read >= len(rest):
                break
            there[np.flatnonzero(there)[read]] = False
        return self._one_by_one(texts)

    @cached_property
    def _is_for_arrow(self) -> bool:
        """False if Arrow's reader has no such columns."""
        try:
            self._sampled(pa.array(["{}"]))
        except UNREADABLE:
            return False
        return True

    def _at_once(self, texts: pa.Array) -> pa.Table | int | None:
        """The fields of all texts by Arrow's reader; where it cannot read them, the text at which it stops, or None."""
        if len(texts) == 0:
            return self.schema.empty_table()
        try:
            trimmed = _trimmed(texts)
            if not pc.all(_in_braces(trimmed)).as_py():  # so that as many objects as texts are one object a text
                return None
            kinds = self._sampled(trimmed)
            lines = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(trimmed)], pa.int32()), trimmed), "\n")
            data = lines[0].as_buffer()
            far = far_in(self.schema.types)
            if far is not None and far.search(data):  # Arrow's parser may be wrong
                return None
            read = pj.read_json(
                pa.BufferReader(data),
                read_options=pj.ReadOptions(use_threads=False, block_size=data.size + 16),
                parse_options=pj.ParseOptions(pa.schema(kinds), True, "ignore"),
            )
            if read.num_rows != len(texts):
                return None
            columns = [array_of(flat(read[f.name]), f.type) for f in self.schema]
        except UNREADABLE as error:
            stop = _STOP.search(str(error))
            return None if stop is None else int(stop[1])
        return pa.table(columns, schema=self.schema)

    def _sampled(self, texts: pa.Array) -> list[pa.Field]:
        """The fields with types that Arrow's reader knows: times are numbers or texts, as some of the texts show."""
        places = np.unique(np.linspace(0, len(texts) - 1, SAMPLE).astype(np.int64))
        sample = [parsed(text) for text in texts.take(pa.array(places)).to_pylist()]
        field_kinds = [_kinds(f.type, [row.get(f.name) for row in sample]) for f in self.schema]
        as_text = any(
            kind is str for kinds in field_kinds for kind in kinds
        )  # a time that no text has is like the others
        return [_shown(f, [row.get(f.name) for row in sample], as_text) for f in self.schema]

    def _one_by_one(self, texts: pa.Array) -> tuple[pa.Table, np.ndarray]:
        """The fields of each text, in a loop, because one text must not spoil the others."""
        rows: list[dict[str, Any] | None] = []
        kind = pa.struct(list(self.schema))
        for text in texts:
            try:
                value = parsed(text.as_py())
                rows.append(value_of(value, kind) if isinstance(value, dict) else None)
            except UNREADABLE:
                rows.append(None)
        whole = array_of(_built(rows, storable(kind)), kind)
        table = pa.table([pc.struct_field(whole, f.name) for f in kind], schema=self.schema)
        return table, np.array([row is None for row in rows], np.bool_)


def _trimmed(texts: pa.Array) -> pa.Array:
    """The texts without space around them; raises for bytes that are no text."""
    return pc.utf8_trim(texts.cast(pa.string()), characters=SPACE)


def _in_braces(trimmed: pa.Array) -> pa.Array:
    return pc.and_(pc.starts_with(trimmed, "{"), pc.ends_with(trimmed, "}"))


def _may_be_objects(texts: pa.Array) -> np.ndarray:
    """False for texts that are no objects, as they do not begin and end like one; true for all if some are no text.

    Python reads texts that begin with a mark of their encoding, and those of two bytes a sign.
    """
    try:
        trimmed = _trimmed(texts)
    except UNREADABLE:
        return np.ones(len(texts), np.bool_)
    encoded = pc.or_(pc.starts_with(trimmed, "\ufeff"), pc.match_substring(trimmed, "\0"))
    return np.asarray(pc.or_(_in_braces(trimmed), encoded))


def _spread(rows: pa.Table, there: np.ndarray) -> pa.Table:
    """Rows of the texts that are there, with nulls for the others."""
    return rows.take(pa.array(np.cumsum(there) - 1, mask=~there))


def _within(there: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """A mask of the texts that are there as one of all texts."""
    whole = np.zeros(len(there), np.bool_)
    whole[there] = mask
    return whole


def _built(rows: list[dict[str, Any] | None], kind: pa.DataType) -> pa.Array:
    """The rows as an array. A row that Arrow refuses after all is bad, and becomes null in the list too."""
    try:
        return pa.array(rows, kind)
    except UNREADABLE:
        for i, row in enumerate(rows):
            try:
                pa.array([row], kind)
            except UNREADABLE:
                rows[i] = None
        return pa.array(rows, kind)


def _as_texts(column: pa.Array) -> pa.Array:
    """The column as texts or bytes with offsets, which all functions on texts take."""
    text_kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return column if any(is_kind(column.type) for is_kind in text_kinds) else column.cast(pa.string())


def _pieces(texts: pa.Array) -> Iterator[pa.Array]:
    """The texts in pieces of a bounded size."""
    todo = [texts.slice(first, PIECE) for first in range(0, len(texts), PIECE)][::-1]
    while todo:
        piece = todo.pop()
        if piece.nbytes > PIECE_BYTES and len(piece) > 1:
            half = len(piece) // 2
            todo += [piece.slice(half), piece.slice(0, half)]
        else:
            yield piece


def _inside(kind: pa.DataType, values: list[Any]) -> Iterator[tuple[pa.Field, list[Any]]]:
    """The fields inside a type, each with its values in some values of the type."""
    if pa.types.is_struct(kind):
        for f in kind:
            yield f, [value.get(f.name) for value in values if isinstance(value, dict)]
    elif pa.types.is_list(kind):
        yield kind.value_field, [one for value in values if isinstance(value, list) for one in value]


def _kinds(kind: pa.DataType, values: list[Any]) -> Iterator[type]:
    """The types of the values of times in some values."""
    if pa.types.is_temporal(kind):
        yield from (type(value) for value in values if value is not None)
    for f, some in _inside(kind, values):
        yield from _kinds(f.type, some)


def _shown(field: pa.Field, values: list[Any], as_text: bool) -> pa.Field:
    """The field in a type of Arrow's reader, by some of its values; `as_text` is for times without any."""
    kind, values = field.type, [value for value in values if value is not None]
    inner = [_shown(f, some, as_text) for f, some in _inside(kind, values)]
    if pa.types.is_struct(kind):
        return pa.field(field.name, pa.struct(inner))
    if pa.types.is_list(kind):
        return pa.field(field.name, pa.list_(inner[0]))
    if pa.types.is_temporal(kind):
        text = isinstance(values[0], str) if values else as_text
        return pa.field(field.name, pa.string() if text else pa.int64())
    if pa.types.is_binary(kind) or pa.types.is_map(kind):
        raise ValueError(f"Arrow's reader of JSON has no {kind}")
    return pa.field(field.name, kind)


__all__ = ["SPACE", "Texts"]
