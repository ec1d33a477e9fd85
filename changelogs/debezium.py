"""Debezium's messages: the envelope with the row before and after a change, and the flattened form.

Guarded by tests/changelogs/test_changelogs_in.py and tests/changelogs/test_changelogs_out.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..combiners.rows.columns import flat
from ..errors import InvalidArgument, TypeMismatch, require_column
from ..flows.changelog_reading import Reading, UpsertKeys, WeightedRows
from ..messages.json_columns.json_in import Texts
from .base import UNAVAILABLE, Changelog, chosen, fault_of, lacking, only_keys, row_schema, several, upserted
from .envelope import TRUNCATED, UNSENT, Envelope, envelope_columns, typed_envelopes
from .json_out import key_texts, texts_of
from .single_changes import latest, pairs


@dataclass(frozen=True)
class Debezium(Changelog):
    """Debezium's change events, as structs, as JSON, or flattened.

    The envelope has the columns `op` (`c`, `r` of a snapshot, `u`, `d`), `before` and `after`, or has them in a column
    `payload`, or in the `value` of a message of Kafka that a format such as `uc.messages.Avro` has read. An update
    retracts `before` and adds `after`. Tombstones and messages of `pg_logical_emit_message` (`m`) are left out. Other
    columns, such as `source` and `ts_ms`, are no columns of the rows, but may be named in `order=`, `processing_time=`
    and a watermark strategy.

    Parameters
    ----------
    keys
        The columns of the primary key, for a feed without old rows: PostgreSQL sends none unless the table has
        `REPLICA IDENTITY FULL`, and the flattened form never does. The last row of each key is then remembered, and
        retracted when the next one comes. State: one row for each key. A large value that PostgreSQL did not send,
        since an update did not change it (TOAST), is taken from the last row. Where no row of its key is known, a
        message without such a value is a bad row; so is every one without `keys`.
    order
        With `keys`: the column, or several, of whole numbers or times by which one version of a row is later than
        another, such as `"source.lsn"` or `("source.ts_ms", "offset")`. A version that is older than the one known is
        left out; of two that are equal the one that arrives later counts. Without it the order of arrival counts, which
        a flow on Spark does not have.
    schema
        For messages in JSON: the columns of a row. Whole numbers become timestamps by the unit of their type, so
        `timestamp("us")` reads Debezium's MicroTimestamp and `timestamp("ms")` its Timestamp.
    column
        The column of the JSON text.
    flat
        True for the form of Debezium's `ExtractNewRecordState`: the columns of a row, `__op` or `__deleted`, and
        others that begin with `__`. It needs `keys`.
    json
        True writes the envelope as JSON text, in the columns `key` (with keys) and `value`.
    truncate
        The treatment of a truncated table: "error", or "bad", which counts a bad row and keeps all rows.
    keep_deletes
        With `order`: the event time for which the deletion of a key is remembered, for ever if not given. An older
        version of the row that comes after this time counts as a new row.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> one, two = {"ts": 0, "x": 1}, {"ts": 0, "x": 2}
    >>> feed = pa.table({"op": ["c", "u"], "before": [None, one], "after": [one, two]})
    >>> flow = uc.flow(feed, changelog=uc.changelog.Debezium())
    >>> flow.run().select(["x", "diff"]).to_pylist()
    [{'x': 1, 'diff': 1}, {'x': 1, 'diff': -1}, {'x': 2, 'diff': 1}]
    """

    keys: str | Sequence[str] | None = None
    order: str | Sequence[str] | None = None
    schema: pa.Schema | None = None
    column: str = "value"
    flat: bool = False
    json: bool = False
    truncate: str = "error"
    keep_deletes: str | None = None

    def __post_init__(self) -> None:
        if self.truncate not in ("error", "bad"):
            raise InvalidArgument(f"truncate= must be 'error' or 'bad', but is {self.truncate!r}")
        if self.flat and (self.schema is not None or self.json):
            raise InvalidArgument("flat=True reads columns, not JSON: leave schema= and json= out")
        if self.schema is not None and not isinstance(self.schema, pa.Schema):
            raise TypeMismatch(f"schema= takes an Arrow schema of the rows, not {self.schema!r}")

    def typed(self, columns: pa.Schema) -> pa.Schema:
        return columns if self.flat else typed_envelopes(columns, several(self.order, "order="))

    def reading(self, columns: pa.Schema) -> Reading:
        keyed = upserted(self.keys, self.order, self.keep_deletes, mark=UNAVAILABLE)
        if self.flat:
            return self._flat(columns, keyed)
        if self.schema is None:
            return self._structs(columns, keyed)
        row = row_schema(list(self.schema))
        enclosed = self.column not in columns.names and ("op" in columns.names or bool(_inside(columns, "payload")))
        if enclosed or _inside(columns, self.column) is not None:
            raise InvalidArgument(
                "uc.changelog.Debezium(schema=...) reads an envelope from JSON text, and here it is in columns: leave "
                "schema= out, or read the files as text, uc.Files(path, format='text')"
            )
        require_column(self.column, columns.names, "uc.changelog.Debezium(schema=...)")
        order = () if keyed is None else tuple(n for n in keyed.order if n not in (*columns.names, *row.names))
        texts = Texts(self.column, envelope_columns(row, order))
        changes = Envelope(texts=texts, row=row, upserted=keyed, stops=self.truncate == "error", order=order)
        extra = pa.schema([(name, pa.int64()) for name in order])
        words = "uc.changelog.Debezium()"
        return Reading(
            message_schema=columns,
            row=row,
            own=frozenset([self.column]),
            changes=changes,
            words=words,
            extra=extra,
            upserted=keyed,
        )

    def _structs(self, columns: pa.Schema, keyed: UpsertKeys | None) -> Reading:
        words = "uc.changelog.Debezium()"
        if "op" not in columns.names and {"__op", "__deleted"} & set(columns.names):
            raise InvalidArgument(
                f"{words} takes an envelope, and the columns are those of the flattened form: give flat=True and keys="
            )
        if "op" not in columns.names:
            for name in ("payload", self.column):  # a message of Kafka has the columns of its value in one
                if (inside := _inside(columns, name)) is not None:
                    return self._enclosed(columns, name, inside, keyed)
        if "op" not in columns.names and self.column in columns.names:
            raise InvalidArgument(
                f"{words} takes an envelope in columns: give schema=, the columns of a row, to read JSON"
            )
        for name in ("op", "before", "after"):
            require_column(name, columns.names, words)
        kinds = [columns.field(name).type for name in ("after", "before")]
        kind = next((kind for kind in kinds if pa.types.is_struct(kind)), None)
        if kind is None:
            raise TypeMismatch(
                f"Debezium's before and after must be structs, but are {kinds[0]}: read JSON with schema="
            )
        row = row_schema(list(kind))
        order = () if keyed is None else tuple(n for n in keyed.order if n not in (*columns.names, *row.names))
        extra = pa.schema([(name, _kind_at(columns, name)) for name in order])
        wrapped = _inside(columns, "payload") is not None
        own = frozenset(["op", "before", "after", *(name.split(".")[0] for name in order), *["payload"] * wrapped])
        stops = self.truncate == "error"
        changes = Envelope(texts=None, row=row, upserted=keyed, stops=stops, order=order, wrapped=wrapped)
        return Reading(
            message_schema=columns, row=row, own=own, changes=changes, words=words, extra=extra, upserted=keyed
        )

    def _enclosed(self, columns: pa.Schema, name: str, payload: pa.Schema, keyed: UpsertKeys | None) -> Reading:
        """The reading of envelopes in one column: in files of messages with their schema, and in the value of Kafka."""
        own = frozenset([name, *({"schema"} & {*columns.names})] if name == "payload" else [name])
        metadata = [beside for beside in columns.names if beside not in own]
        if both := [beside for beside in metadata if beside in payload.names]:
            raise InvalidArgument(
                f"uc.changelog.Debezium() finds column {both[0]!r} in {name!r} and beside it: leave one out"
            )
        beside = pa.schema([columns.field(one) for one in metadata])
        order = () if keyed is None else tuple(n for n in keyed.order if n.split(".")[0] in payload.names)
        inner = self._structs(pa.schema([*payload, *beside]), keyed)
        order = tuple(one for one in order if one not in inner.row.names)
        changes = Envelope(texts=None, row=inner.row, upserted=keyed, stops=self.truncate == "error", order=order)
        return replace(
            inner,
            message_schema=columns,
            own=own,
            changes=Unwrapped(name, changes),
            extra=pa.schema([(one, _kind_at(payload, one)) for one in order]),
        )

    def _flat(self, columns: pa.Schema, keyed: UpsertKeys | None) -> Reading:
        words = "uc.changelog.Debezium(flat=True)"
        if keyed is None:
            raise InvalidArgument(
                f"{words} needs keys=, because the flattened form has no old rows: name the primary key"
            )
        own = [name for name in ("__op", "__deleted") if name in columns.names]
        if not own:
            raise InvalidArgument(
                f"{words} needs a column '__op' or '__deleted': set the transform's add.fields=op, or "
                "delete.tombstone.handling.mode=rewrite"
            )
        row = row_schema([f for f in columns if not f.name.startswith("__")])
        changes = Flat(own=tuple(own), upserted=keyed, stops=self.truncate == "error", row=tuple(row.names))
        own += [name for name in row.names if name not in own]
        return Reading(
            message_schema=columns, row=row, own=frozenset(own), changes=changes, words=words, upserted=keyed
        )

    def written(self, rows: pa.Table, weights: np.ndarray, keys: tuple[str, ...]) -> pa.Table:
        if self.flat or self.keys is not None:
            rows, deleted = latest(rows, weights, keys, "Debezium's form without old rows")
            if self.flat:
                op = pa.array(np.where(deleted, "d", "u"), pa.string())
                deletes = pa.array(np.where(deleted, "true", "false"), pa.string())
                return rows.append_column("__op", op).append_column("__deleted", deletes)
            sign, partner = np.where(deleted, -1, 1), np.full(len(deleted), -1)
        else:
            rows, sign, partner = pairs(rows, weights, keys)
        return self._enveloped(rows, sign, partner, keys)

    def _enveloped(self, rows: pa.Table, sign: np.ndarray, partner: np.ndarray, keys: tuple[str, ...]) -> pa.Table:
        image = pa.StructArray.from_arrays([flat(c) for c in rows.columns], fields=list(rows.schema))
        places = np.flatnonzero((sign < 0) | (partner < 0))
        old, updates = sign[places] < 0, partner[places] >= 0
        op = pa.array(np.where(updates, "u", np.where(old, "d", "c")), pa.string())
        before = image.take(pa.array(places, mask=~old))
        after = image.take(pa.array(np.where(updates, partner[places], places), mask=old & ~updates))
        messages = pa.table({"op": op, "before": before, "after": after})
        if not self.json and self.schema is None:
            return messages
        text = pa.table({self.column: texts_of(messages.select(["before", "after", "op"]))})
        return text.add_column(0, "key", key_texts(rows.take(pa.array(places)), keys)) if keys else text


@dataclass(frozen=True)
class Unwrapped:
    """Reads envelopes that are in one column."""

    column: str
    envelope: Envelope

    def __call__(self, messages: pa.Table, names: Sequence[str]) -> WeightedRows:
        payload = flat(messages[self.column])
        inner = pa.Table.from_arrays(payload.flatten(), names=[f.name for f in payload.type])
        return self.envelope(inner, names, np.asarray(payload.is_null()))


def _inside(columns: pa.Schema, name: str) -> pa.Schema | None:
    """The columns of the envelopes in a column; None if there are none."""
    kind = columns.field(name).type if name in columns.names else None
    if kind is None or not pa.types.is_struct(kind) or kind.get_field_index("op") < 0:
        return None
    return pa.schema(list(kind))


@dataclass(frozen=True)
class Flat:
    """Reads the flattened form."""

    own: tuple[str, ...]
    upserted: UpsertKeys
    stops: bool
    row: tuple[str, ...]

    WEIGHTS: ClassVar[dict[str, int]] = {"c": 1, "r": 1, "u": 1, "d": -1}

    def __call__(self, messages: pa.Table, names: Sequence[str]) -> WeightedRows:
        count = messages.num_rows
        bad, deleted, fault = np.zeros(count, np.bool_), np.zeros(count, np.bool_), ""
        empty = np.ones(count, np.bool_)
        for name in (*self.row, *self.own):
            empty &= np.asarray(flat(messages[name]).is_null())
        mask = ~empty
        if "__deleted" in self.own:
            column = messages["__deleted"]
            words = (
                column
                if pa.types.is_boolean(column.type)
                else pc.equal(pc.utf8_lower(column.cast(pa.string())), "true")
            )
            deleted |= np.asarray(flat(words).fill_null(False))
        if "__op" in self.own:
            op = messages["__op"]
            mask &= ~equals(op, "m")
            if self.stops and equals(op, "t").any():
                raise InvalidArgument(TRUNCATED)
            valid = np.asarray(flat(pc.is_in(op, value_set=pa.array(list(self.WEIGHTS)).cast(op.type))))
            bad = ~valid & ~deleted & mask
            fault = fault_of(op, bad, list(self.WEIGHTS), "Debezium's __op")
            deleted |= equals(op, "d")
        rows = only_keys(messages.select(list(names)), deleted, self.upserted.columns)
        unsent = lacking(rows, self.upserted.columns) & mask & ~bad
        if unsent.any():
            bad, fault = bad | unsent, fault or UNSENT
        return chosen(rows, np.where(deleted, -1, 1), mask, bad, fault)


def equals(column: pa.ChunkedArray, word: str) -> np.ndarray:
    """A mask of the values that are this word."""
    return np.asarray(flat(pc.equal(column, pa.scalar(word).cast(column.type))).fill_null(False))


def _kind_at(columns: pa.Schema, path: str) -> Any:
    """The type of a field inside a column."""
    first, *more = path.split(".")
    require_column(first, columns.names, "order= of uc.changelog.Debezium()")
    kind = columns.field(first).type
    for name in more:
        index = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
        require_column(name, [name] if index >= 0 else [], f"order={path!r} of uc.changelog.Debezium()")
        kind = kind.field(index).type
    return kind


__all__ = ["Debezium"]
