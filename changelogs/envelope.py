"""The reading of Debezium's envelope: an operation, the row before it and the row after it.

Guarded by tests/changelogs/test_changelogs_in.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..combiners.rows.columns import flat
from ..errors import InvalidArgument
from ..flows.changelog_reading import UpsertKeys, WeightedRows, without
from ..messages.json_columns.json_faults import fault_of
from ..messages.json_columns.json_in import Texts
from .base import UNAVAILABLE, lacking, only_keys

UNSENT = (
    f"a row of Debezium has {UNAVAILABLE!r} in place of a large value that did not change: let the database send whole "
    "rows (in PostgreSQL: REPLICA IDENTITY FULL), or give keys=, the primary key, to take it from the last row"
)
_LONGEST = 200
"""The number of characters of a message that an error shows."""

_TOMBSTONE = r'^\s*(null|\{(\s*"schema"\s*:\s*null\s*,)?\s*"payload"\s*:\s*null\s*\})\s*$'

TRUNCATED = (
    "Debezium reports that the table was truncated (op 't'), which names no rows: start again from a new snapshot, or "
    "give truncate='bad', which counts the message as a bad row and keeps the rows"
)


@dataclass(frozen=True)
class Envelope:
    """Reads envelopes, from columns or from JSON texts."""

    texts: Texts | None
    row: pa.Schema
    upserted: UpsertKeys | None
    stops: bool
    order: tuple[str, ...] = ()
    """The columns of the order that are fields inside others."""
    wrapped: bool = False
    """True for columns of both forms, as files of JSON have them: each line is a message."""

    def __call__(self, messages: pa.Table, names: Sequence[str], tombstones: np.ndarray | None = None) -> WeightedRows:
        """The rows of messages; `tombstones` is a mask of those that say nothing, where it is known."""
        count, unread = messages.num_rows, np.zeros(messages.num_rows, np.bool_)
        texts = None
        if self.texts is not None:
            texts = flat(messages[self.texts.column])
            messages, unread = self.texts(messages)
            tombstones = _nulls(texts)
            unread &= ~tombstones
        elif self.wrapped:
            tombstones = np.asarray(flat(messages["payload"]).is_null())
            for name in ("op", "before", "after"):
                tombstones = tombstones & np.asarray(flat(messages[name]).is_null())
        if self.texts is not None or self.wrapped:
            messages = _unwrapped(messages)
        op = flat(messages["op"]).cast(pa.string())
        before, after = flat(messages["before"]), flat(messages["after"])
        there = {"before": np.asarray(before.is_valid()), "after": np.asarray(after.is_valid())}
        is_a = {word: np.asarray(pc.equal(op, word).fill_null(False)) for word in "crudtm"}
        if self.stops and is_a["t"].any():
            raise InvalidArgument(TRUNCATED)
        if tombstones is None:  # the columns of a message without a value are all null
            tombstones = np.asarray(op.is_null()) & ~there["before"] & ~there["after"]
        silent = tombstones | is_a["m"]
        adds = is_a["c"] | is_a["r"] | is_a["u"]
        removes = is_a["d"] | is_a["u"]
        if self.upserted is not None:
            removes = is_a["d"] | (is_a["u"] & there["before"])
        bad = ~silent & ~adds & ~removes
        bare = (adds & ~there["after"]) | (removes & ~there["before"])
        fault = self._fault(op, unread, bad, bare, there["after"], texts)
        bad |= bare
        adds, removes = adds & ~bad, removes & ~bad
        if self.upserted is not None:
            removes &= is_a["d"] | self._moved(before, after, removes & adds)
        rows = np.arange(count)
        place = np.concatenate([rows[removes], rows[adds | bad]])
        sign = np.concatenate([np.full(np.count_nonzero(removes), -1), np.where(bad, 0, 1)[adds | bad]])
        order = np.argsort(place, kind="stable")
        place, sign = place[order], sign[order]
        both = {name: self._column(messages, before, after, name, place, sign) for name in names}
        table = pa.table(both) if both else pa.table({"": pa.nulls(len(place))})
        if self.upserted is not None and both:
            table = only_keys(table, sign < 0, self.upserted.columns)
        changes = WeightedRows(rows=table, weights=sign, places=place)
        unsent = lacking(table, None if self.upserted is None else self.upserted.columns) & (sign != 0)
        if unsent.any():
            changes, fault = without(changes, unsent, UNSENT), fault or UNSENT
        return without(changes, changes.weights == 0, fault) if bad.any() else changes

    def _column(
        self, messages: pa.Table, before: pa.Array, after: pa.Array, name: str, place: np.ndarray, sign: np.ndarray
    ) -> pa.Array:
        """A column of the rows, from the images of their messages."""
        if name in self.order:
            return _at(messages, name).take(pa.array(place))
        kind = self.row.field(name).type
        parts = [_field(image, name, kind) for image in (before, after)]
        return pa.concat_arrays(parts).take(pa.array(place + np.where(sign < 0, 0, len(before))))

    def _moved(self, before: pa.Array, after: pa.Array, both: np.ndarray) -> np.ndarray:
        """A mask of the updates that changed a key, so that the row of the old key is gone."""
        moved = np.zeros(len(both), np.bool_)
        if self.upserted is None or not both.any():
            return moved
        for name in self.upserted.keys:
            kind = self.row.field(name).type
            one, other = (_field(image, name, kind) for image in (before, after))
            differs = pc.fill_null(pc.not_equal(one, other), True)
            moved |= np.asarray(differs) & ~(np.asarray(one.is_null()) & np.asarray(other.is_null()))
        return moved & both

    def _fault(
        self,
        op: pa.Array,
        unread: np.ndarray,
        bad: np.ndarray,
        bare: np.ndarray,
        after: np.ndarray,
        texts: pa.Array | None,
    ) -> str:
        """The sentence about the first message that cannot be read."""
        if not (bad | bare).any():
            return ""
        place = int(np.flatnonzero(bad | bare)[0])
        word = op[place].as_py()
        if unread[place]:
            assert self.texts is not None
            assert texts is not None
            reason = fault_of(_bytes(texts.slice(place, 1))[0].as_py(), self.texts.schema)
            return f"a message of Debezium cannot be read, because {reason}{_shown(texts, place)}"
        if bad[place] and word is None:
            return f"a message of Debezium has no op{_shown(texts, place)}"
        if bad[place]:
            return f"Debezium's op must be one of c, r, u, d, but is {word!r} in a row{_shown(texts, place)}"
        if word != "d" and not after[place]:
            return f"a message of Debezium with op {word!r} lacks its 'after'"
        return (
            f"a message of Debezium with op {word!r} lacks its 'before': give keys=, the primary key, or let the "
            "database send old rows (in PostgreSQL: REPLICA IDENTITY FULL)"
        )


def _nulls(texts: pa.Array) -> np.ndarray:
    """A mask of the messages without a value: null, and what a tombstone may be in a file."""
    short = pc.if_else(pc.less(pc.binary_length(_bytes(texts)), 100), _bytes(texts), b"-")
    return np.asarray(pc.fill_null(pc.match_substring_regex(short, _TOMBSTONE), True))


def _bytes(texts: pa.Array) -> pa.Array:
    """The bytes of texts, which may be no UTF-8."""
    return texts.cast(pa.large_string() if pa.types.is_string_view(texts.type) else texts.type).cast(pa.large_binary())


def _shown(texts: pa.Array | None, place: int) -> str:
    """The end of a sentence: the text of a message, shortened."""
    if texts is None:
        return ""
    text = _bytes(texts.slice(place, 1))[0].as_py().decode("utf8", "replace")
    return f": {text if len(text) <= _LONGEST else text[:_LONGEST] + '...'!r}"


def envelope_columns(row: pa.Schema, order: Sequence[str]) -> pa.Schema:
    """The fields of an envelope in JSON, as such and inside the `payload` of a message with its schema."""
    image = pa.struct(list(row))
    fields = [pa.field("before", image), pa.field("after", image), pa.field("op", pa.string())]
    nested: dict[str, list[str]] = {}
    for path in order:
        first, _, rest = path.partition(".")
        nested.setdefault(first, []).append(rest)
    for first, rests in nested.items():
        inner = pa.struct([(rest, pa.int64()) for rest in rests]) if rests != [""] else pa.int64()
        fields.append(pa.field(first, inner))
    return pa.schema([*fields, pa.field("payload", pa.struct(fields))])


def typed_envelopes(columns: pa.Schema, order: Sequence[str]) -> pa.Schema:
    """The columns of envelopes in JSON for those that were inferred: the two images of a row have one type.

    Files that begin with new rows alone have nulls in `before`, so each image has the fields, and the types of fields,
    that the other one has. Fields that no row is made of are left out, and may have any value. A connector writes
    messages with their `payload` or without, and in one folder after a change of its setting both: so there are columns
    for both.
    """
    payload = columns.field("payload").type if "payload" in columns.names else None
    wrapped = payload is not None and pa.types.is_struct(payload) and payload.get_field_index("op") >= 0
    if "op" not in columns.names and not wrapped:
        return columns
    plain = _typed_images(
        pa.schema([f for f in columns if f.name not in (("payload", "schema") if wrapped else ())]), order
    )
    inside = _typed_images(pa.schema(list(payload) if payload is not None and wrapped else []), order)
    roots = ["op", "before", "after", *dict.fromkeys(path.partition(".")[0] for path in order)]
    kinds = {}
    for name in roots:
        told = [one.field(name).type for one in (plain, inside) if name in one.names]
        if told:
            kinds[name] = reduce(_both, sorted(told, key=lambda kind: not pa.types.is_struct(kind)))
    typed = [f.with_type(kinds.get(f.name, f.type)) for f in plain]
    typed += [pa.field(name, kind) for name, kind in kinds.items() if name not in plain.names]
    if "payload" in plain.names:  # a column of the user's
        return pa.schema(typed)
    return pa.schema([*typed, pa.field("payload", pa.struct([pa.field(*one) for one in kinds.items()]))])


def _typed_images(columns: pa.Schema, order: Sequence[str]) -> pa.Schema:
    """The columns of envelopes of one form."""
    ordered: dict[str, set[str]] = {}
    for first, _, rest in (path.partition(".") for path in order):
        ordered.setdefault(first, set()).add(rest.partition(".")[0])
    fields = []
    for f in columns:
        if f.name in ("before", "after") and {"before", "after"} <= {*columns.names}:
            f = f.with_type(_both(columns.field("after").type, columns.field("before").type))
        elif f.name in ordered and pa.types.is_struct(f.type) and "" not in ordered[f.name]:
            f = f.with_type(pa.struct([one for one in f.type if one.name in ordered[f.name]]))
        fields.append(f)
    return pa.schema(fields)


def _both(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type of the values of two, each of which was inferred from some of them; the first where there is none."""
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        more = [f for f in other if one.get_field_index(f.name) < 0]
        kinds = {f.name: f.type for f in other}
        return pa.struct([*(f.with_type(_both(f.type, kinds.get(f.name, f.type))) for f in one), *more])
    try:
        kinds_of_both = [pa.schema([("", kind)]) for kind in (one, other)]
        return pa.unify_schemas(kinds_of_both, promote_options="permissive").field(0).type
    except pa.ArrowTypeError:  # such as a text that looks like a time in one of them
        return pa.string() if pa.string() in (one, other) and any(map(pa.types.is_timestamp, (one, other))) else one


def _unwrapped(messages: pa.Table) -> pa.Table:
    """The envelopes, out of their payloads where they have one."""
    payload = flat(messages["payload"])
    if payload.null_count == len(payload):
        return messages
    inside = payload.is_valid()
    columns = {}
    for f in payload.type:
        own, other = flat(messages[f.name]), pc.struct_field(payload, f.name)
        places = np.arange(len(own)) + np.where(np.asarray(inside), len(own), 0)
        columns[f.name] = pa.concat_arrays([own, other]).take(pa.array(places))
    return pa.table(columns)


def _at(messages: pa.Table, path: str) -> pa.Array:
    first, _, rest = path.partition(".")
    column = flat(messages[first])
    return pc.struct_field(column, rest.split(".")) if rest else column


def _field(image: pa.Array, name: str, kind: pa.DataType) -> pa.Array:
    """A field of the images; null where an image lacks it."""
    if not pa.types.is_struct(image.type) or image.type.get_field_index(name) < 0:
        return pa.nulls(len(image), kind)
    column = pc.struct_field(image, name)
    return column if column.type == kind else column.cast(kind)


__all__ = ["TRUNCATED", "UNSENT", "Envelope", "envelope_columns", "typed_envelopes"]
