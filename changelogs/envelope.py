"""The reading of Debezium's envelope: an operation, the row before it and the row after it.

Guarded by tests/changelogs/test_changelogs_in.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..combiners.rows.columns import flat
from ..errors import InvalidArgument
from ..flows.changelog_reading import UpsertKeys, WeightedRows, without
from ..messages.json_columns.json_in import Texts
from .base import UNAVAILABLE, lacking, only_keys

UNSENT = (
    f"a row of Debezium has {UNAVAILABLE!r} in place of a large value that did not change: let the database send whole "
    "rows (in PostgreSQL: REPLICA IDENTITY FULL), or give keys=, the primary key, to take it from the last row"
)
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

    def __call__(self, messages: pa.Table, names: Sequence[str]) -> WeightedRows:
        count, unread = messages.num_rows, np.zeros(messages.num_rows, np.bool_)
        if self.texts is not None:
            messages, unread = self.texts(messages)
            messages = _unwrapped(messages)
        op = flat(messages["op"]).cast(pa.string())
        before, after = flat(messages["before"]), flat(messages["after"])
        there = {"before": np.asarray(before.is_valid()), "after": np.asarray(after.is_valid())}
        is_a = {word: np.asarray(pc.equal(op, word).fill_null(False)) for word in "crudtm"}
        if self.stops and is_a["t"].any():
            raise InvalidArgument(TRUNCATED)
        silent = (np.asarray(op.is_null()) & ~there["before"] & ~there["after"] & ~unread) | is_a["m"]
        adds = is_a["c"] | is_a["r"] | is_a["u"]
        removes = is_a["d"] | is_a["u"]
        if self.upserted is not None:
            removes = is_a["d"] | (is_a["u"] & there["before"])
        bad = ~silent & ~adds & ~removes
        bare = (adds & ~there["after"]) | (removes & ~there["before"])
        fault = self._fault(op, unread, bad, bare, there["after"])
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

    def _fault(self, op: pa.Array, unread: np.ndarray, bad: np.ndarray, bare: np.ndarray, after: np.ndarray) -> str:
        """The sentence about the first message that cannot be read."""
        if not (bad | bare).any():
            return ""
        place = int(np.flatnonzero(bad | bare)[0])
        word = op[place].as_py()
        if unread[place]:
            assert self.texts is not None
            return f"column {self.texts.column!r} has a text that is no JSON of Debezium's envelope"
        if bad[place]:
            return f"Debezium's op must be one of c, r, u, d, but is {word!r} in a row"
        if word != "d" and not after[place]:
            return f"a message of Debezium with op {word!r} lacks its 'after'"
        return (
            f"a message of Debezium with op {word!r} lacks its 'before': give keys=, the primary key, or let the "
            "database send old rows (in PostgreSQL: REPLICA IDENTITY FULL)"
        )


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
    that the other one has. Fields that no row is made of are left out, and may have any value.
    """
    if "op" not in columns.names:
        payload = columns.field("payload") if "payload" in columns.names else None
        if payload is None or not pa.types.is_struct(payload.type) or payload.type.get_field_index("op") < 0:
            return columns
        inner = typed_envelopes(pa.schema(list(payload.type)), order)
        roots = {"op", "before", "after", *(path.partition(".")[0] for path in order)}
        payload = payload.with_type(pa.struct([f for f in inner if f.name in roots]))
        return pa.schema([payload if f.name == "payload" else f for f in columns if f.name != "schema"])
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
