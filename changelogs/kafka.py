"""Kafka's compacted topics: a key with its last value, and a null for a key that is deleted.

Guarded by tests/changelogs/test_changelogs_in.py and tests/changelogs/test_changelogs_json.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..combiners.rows.columns import flat
from ..combiners.rows.decimal_casts import cast_exactly
from ..errors import InvalidArgument, TypeMismatch, require_column
from ..flows.changelog_reading import Reading, UpsertKeys, WeightedRows, without
from ..messages.json_columns.json_in import SPACE, Texts
from ..messages.json_columns.json_texts import is_utf8
from .base import Changelog, only_keys, row_schema, upserted
from .json_out import key_texts, texts_of
from .single_changes import latest


@dataclass(frozen=True)
class KafkaUpsert(Changelog):
    """A topic of Kafka in which the last value of a key counts, and a null value deletes the key.

    The columns are `key` and `value`, as Spark's source of Kafka has them. Each is a struct, or JSON text with
    `schema=`; a key of one column may also be a plain value. Other columns, such as `offset` and `timestamp`, are no
    columns of the rows, but may be named in `order=`, `processing_time=` and a watermark strategy.

    Parameters
    ----------
    keys
        The columns of the key. They stand in `key`, and may stand in `value` too.
    schema
        For JSON: the columns of a row with its keys. Times are read as `Debezium` reads them.
    order
        The column by which one message of a key is later than another; `"offset"` if there is such a column, because
        all messages of a key are in one partition.
    keep_deletes
        The event time for which a deleted key is remembered; see `Debezium`.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> row = pa.schema({"ts": pa.timestamp("us", "UTC"), "id": pa.string(), "n": pa.int64()})
    >>> values = ['{"ts": 0, "n": 1}', '{"ts": 5, "n": 2}']
    >>> topic = pa.table({"key": ["a", "a"], "value": values, "offset": [0, 1]})
    >>> flow = uc.flow(topic, changelog=uc.changelog.KafkaUpsert("id", schema=row))
    >>> flow.run().select(["id", "n", "diff"]).to_pylist()
    [{'id': 'a', 'n': 2, 'diff': 1}]
    """

    keys: str | Sequence[str]
    schema: pa.Schema | None = None
    order: str | Sequence[str] | None = None
    keep_deletes: str | None = None

    def reading(self, columns: pa.Schema) -> Reading:
        words = "uc.changelog.KafkaUpsert()"
        for name in ("key", "value"):
            require_column(name, columns.names, words)
        order = self.order if self.order is not None or "offset" not in columns.names else "offset"
        keyed = upserted(self.keys, order, self.keep_deletes)
        if keyed is None:
            raise InvalidArgument(f"{words} needs keys=: name the columns of the key")
        key, value = columns.field("key").type, columns.field("value").type
        if self.schema is not None:
            row = row_schema(list(self.schema))
        elif pa.types.is_struct(value):
            inner = [] if not pa.types.is_struct(key) else [f for f in key if value.get_field_index(f.name) < 0]
            if not pa.types.is_struct(key) and value.get_field_index(keyed.keys[0]) < 0:
                inner = [pa.field(keyed.keys[0], key)]
            row = row_schema([*inner, *value])
        else:
            raise InvalidArgument(f"{words} needs schema=, the columns of a row, because its value is {value}")
        for name in keyed.keys:
            require_column(name, row.names, f"keys= of {words}")
        if len(keyed.keys) > 1 and not pa.types.is_struct(key) and not _is_text(key):
            raise TypeMismatch(
                f"{words} has {len(keyed.keys)} columns in keys=, and its key is {key}: give a struct or JSON"
            )
        return Reading(
            message_schema=columns,
            row=row,
            own=frozenset(["key", "value"]),
            changes=TopicMessages(row, keyed),
            words=words,
            upserted=keyed,
        )

    def written(self, rows: pa.Table, weights: np.ndarray, keys: tuple[str, ...]) -> pa.Table:
        last, deleted = latest(rows, weights, keys, "a topic of Kafka")
        value = pc.if_else(pa.array(deleted), pa.scalar(None, pa.string()), texts_of(last))
        return pa.table({"key": key_texts(last, keys), "value": value})


@dataclass(frozen=True)
class TopicMessages:
    """Reads the messages of a topic."""

    row: pa.Schema
    upserted: UpsertKeys

    def __call__(self, messages: pa.Table, names: Sequence[str]) -> WeightedRows:
        count, keys = messages.num_rows, self.upserted.keys
        value, wrong = self._objects(messages, "value", pa.schema(list(self.row)))
        key, odd = self._keys(messages)
        deleted = np.asarray(flat(messages["value"]).is_null())
        columns = {}
        for name in names:
            kind = self.row.field(name).type
            own = [table[name] for table in (value, key) if name in table.column_names]
            if name not in keys:
                columns[name] = flat(own[0]).cast(kind) if own else pa.nulls(count, kind)
                continue
            # A deleted key has no value, and a value may leave its key out.
            columns[name] = pc.coalesce(*(flat(column).cast(kind) for column in reversed(own)))
        rows = only_keys(pa.table(columns), deleted, (*keys, *self.upserted.order))
        none = np.asarray(flat(messages["key"]).is_null()) & deleted
        bad = wrong | odd | none
        changes = WeightedRows(rows=rows, weights=np.where(deleted, -1, 1), places=np.arange(count))
        if not bad.any():
            return changes
        first = int(np.flatnonzero(bad)[0])
        fault = f"column {'value' if wrong[first] else 'key'!r} of a topic of Kafka has a text that is no JSON of a row"
        return without(changes, bad, "a message of Kafka has neither a key nor a value" if none[first] else fault)

    def _objects(self, messages: pa.Table, column: str, schema: pa.Schema) -> tuple[pa.Table, np.ndarray]:
        """The fields of structs, or of JSON texts."""
        kind = messages.schema.field(column).type
        if pa.types.is_struct(kind):
            whole = flat(messages[column])
            fields = {f.name: pc.struct_field(whole, f.name) for f in kind}
            return pa.table(fields), np.zeros(len(whole), np.bool_)
        return Texts(column, schema)(messages.select([column]))

    def _keys(self, messages: pa.Table) -> tuple[pa.Table, np.ndarray]:
        """The key columns; a key that is neither a struct nor a JSON object is the one column itself."""
        keys, column = self.upserted.keys, flat(messages["key"])
        kinds = pa.schema([self.row.field(name) for name in keys])
        none = np.zeros(len(column), np.bool_)
        if not pa.types.is_struct(column.type) and not _is_text(column.type):
            return pa.table({keys[0]: column}), none
        if _is_text(column.type):
            text, odd = _texts(column)
            if len(keys) == 1:
                return self._one_key(text, kinds, odd)
        return self._objects(messages, "key", kinds)

    def _one_key(self, text: pa.Array, kinds: pa.Schema, odd: np.ndarray) -> tuple[pa.Table, np.ndarray]:
        """Keys of one column, each of which is a JSON object, or the column itself."""
        is_object = np.asarray(pc.starts_with(pc.utf8_ltrim(text, characters=SPACE), "{").fill_null(False))
        if not is_object.any():
            return self._plain(text, kinds.field(0), odd)
        some = [text.filter(pa.array(mask)) for mask in (is_object, ~is_object)]
        objects, wrong = Texts("key", kinds)(pa.table({"key": some[0]}))
        plain, none = self._plain(some[1], kinds.field(0), odd[~is_object])
        order = pa.array(np.argsort(np.argsort(~is_object, kind="stable")))
        bad = odd.copy()
        bad[is_object], bad[~is_object] = wrong, none
        return pa.concat_tables([objects, plain.cast(objects.schema)]).take(order), bad

    def _plain(self, text: pa.Array, field: pa.Field, none: np.ndarray) -> tuple[pa.Table, np.ndarray]:
        """Keys of one column as plain texts, or as JSON values."""
        bare = pc.replace_substring_regex(text, r'^"(.*)"$', r"\1")
        cast, failed = cast_of(bare, field.type)
        if not failed.any():
            return pa.table({field.name: cast}), none
        left = pc.if_else(pa.array(failed), text, None)
        made = pc.binary_join_element_wise('{"key":', left, "}", "")
        read, unread = Texts("key", pa.schema([field.with_name("key")]))(pa.table({"key": made}))
        whole = pc.if_else(pa.array(failed), flat(read["key"]), cast)
        return pa.table([whole], schema=pa.schema([field])), none | unread


def cast_of(texts: pa.Array, kind: pa.DataType) -> tuple[pa.Array, np.ndarray]:
    """Texts as values of a type, and a mask of those that are none; one does not touch the others."""
    failed = np.zeros(len(texts), np.bool_)
    try:
        return cast_exactly(texts, kind), failed
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        parts = [pa.nulls(0, kind)]
    for i in range(len(texts)):  # one by one, to find those that are none
        try:
            parts.append(cast_exactly(texts.slice(i, 1), kind))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            parts.append(pa.nulls(1, kind))
            failed[i] = True
    return pa.concat_arrays(parts), failed


def _texts(column: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """A column of texts or bytes as texts, and a mask of the bytes that are no text."""
    if is_utf8(column):
        return column.cast(pa.string()), np.zeros(len(column), np.bool_)
    texts, odd = list[str | None](), np.zeros(len(column), np.bool_)
    for i, one in enumerate(column):  # one by one, to find those that are none
        raw = one.as_buffer().to_pybytes() if one.is_valid else None
        text = None if raw is None else raw.decode(errors="replace")
        texts.append(text)
        odd[i] = text is not None and text.encode() != raw
    return pa.array(texts, pa.string()), odd


def _is_text(kind: pa.DataType) -> bool:
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_kind(kind) for is_kind in (*texts, pa.types.is_binary, pa.types.is_large_binary))


__all__ = ["KafkaUpsert"]
