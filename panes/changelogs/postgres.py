"""PostgreSQL's logical decoding as the plugin wal2json writes it, in both of its formats.

The values of a message stand in one field and have many types, so no reader of Arrow takes them: Python parses each
text, and Arrow then converts whole columns.

Guarded by tests/panes/test_changelogs_json.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...combiners.rows.columns import flat
from ...errors import InvalidArgument, TypeMismatch, require_column
from ..reading import Changes, Reading, Upserted, without
from .base import Changelog, only_keys, row_schema, upserted
from .json_out import escaped, text_of
from .json_values import UNREADABLE, times_of_texts, value_of
from .netting import latest, pairs

TRUNCATED = (
    "PostgreSQL reports that the table was truncated, which names no rows: start again from a new snapshot, or give "
    "truncate='bad', which counts the message as a bad row and keeps the rows"
)

Values = Mapping[str, Any]

_TYPES = {"int": "bigint", "uint": "bigint", "bool": "boolean", "timestamp": "timestamp with time zone", "date": "date"}

_TYPES |= {
    "float": "double precision",
    "double": "double precision",
    "decimal": "numeric",
    "struct": "json",
    "list": "json",
}


@dataclass(frozen=True)
class Postgres(Changelog):
    """The messages of PostgreSQL's plugin `wal2json`, of format version 1 or 2, as JSON text.

    An update retracts the old row and adds the new one, so that the table needs `REPLICA IDENTITY FULL`. With another
    identity give `keys`.

    Parameters
    ----------
    schema
        The columns of a row of the table. Values are converted to their types.
    table
        The table, as `"public.orders"` or `"orders"`; messages of other tables are left out. None takes all messages.
    keys
        The columns of the primary key, for a table without old rows; see `Debezium`.
    order
        With `keys`: the column, or several, by which one message is later than another, such as `"lsn"`.
    column
        The column of the text.
    truncate, keep_deletes
        As for `Debezium`.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> row = pa.schema({"ts": pa.timestamp("us", "UTC"), "n": pa.int64()})
    >>> data = ['{"action":"I","columns":[{"name":"ts","value":"2016-01-20 12:00:26+00"},{"name":"n","value":5}]}']
    >>> flow = uc.local.source(pa.table({"data": data}), changelog=uc.changelog.Postgres(row))
    >>> uc.local.run(flow=flow).select(["n", "diff"]).to_pylist()
    [{'n': 5, 'diff': 1}]
    """

    schema: pa.Schema | None = None
    table: str | None = None
    keys: str | Sequence[str] | None = None
    order: str | Sequence[str] | None = None
    column: str = "data"
    truncate: str = "error"
    keep_deletes: str = "1 day"

    def __post_init__(self) -> None:
        if self.truncate not in ("error", "bad"):
            raise InvalidArgument(f"truncate= must be 'error' or 'bad', but is {self.truncate!r}")
        if self.schema is not None and not isinstance(self.schema, pa.Schema):
            raise TypeMismatch(f"schema= takes an Arrow schema of the rows, not {self.schema!r}")

    def reading(self, given: pa.Schema) -> Reading:
        words = "uc.changelog.Postgres()"
        if self.schema is None:
            raise InvalidArgument(f"{words} reads JSON: give schema=, the columns of a row of the table")
        require_column(self.column, given.names, words)
        keyed, row = upserted(self.keys, self.order, self.keep_deletes), row_schema(list(self.schema))
        changes = Wal2Json(self.column, row, self.table, keyed, self.truncate == "error")
        return Reading(given, row, frozenset([self.column]), changes, words, upserted=keyed)

    def written(self, rows: pa.Table, weights: np.ndarray, keys: tuple[str, ...]) -> pa.Table:
        if self.keys is None:
            rows, sign, partner = pairs(rows, weights, keys)
        else:
            rows, deleted = latest(rows, weights, keys, "wal2json without old rows")
            sign, partner = np.where(deleted, -1, 1), np.full(len(deleted), -1)
        kept = np.flatnonzero((sign < 0) | (partner < 0))
        updates = partner[kept] >= 0
        kinds = np.where(updates, "U", np.where(sign[kept] > 0, "I", "D"))
        whole = _columns(rows)
        old = whole.take(pa.array(kept))
        new = whole.take(pa.array(np.where(updates, partner[kept], kept)))
        schema, _, name = (self.table or "public.rows").rpartition(".")
        head = f'"schema":{json.dumps(schema or "public")},"table":{json.dumps(name)}'
        start = pc.binary_join_element_wise('{"action":"', pa.array(kinds, pa.string()), f'",{head}', "")
        new = pc.binary_join_element_wise(',"columns":[', new, "]", "")
        old = pc.binary_join_element_wise(',"identity":[', old, "]", "")
        new = pc.if_else(pa.array(kinds == "D"), "", new)
        old = pc.if_else(pa.array(kinds == "I"), "", old)
        return pa.table({self.column: pc.binary_join_element_wise(start, new, old, "}", "")})


def _columns(rows: pa.Table) -> pa.Array:
    """The list of the columns of each row, without its brackets."""
    parts: list[Any] = []
    for f, column in zip(rows.schema, map(flat, rows.columns), strict=True):
        kind = next((name for start, name in _TYPES.items() if str(f.type).startswith(start)), "text")
        value = text_of(column)
        if pa.types.is_timestamp(f.type):
            value = pc.replace_substring(pc.replace_substring(value, "T", " "), "Z", "+00")
        elif pa.types.is_nested(f.type):  # a text, as wal2json writes what is no number, boolean or null
            quoted = pc.binary_join_element_wise('"', escaped(value), '"', "")
            value = pc.if_else(column.is_null(), "null", quoted)
        name = json.dumps(f.name, ensure_ascii=False)
        comma = "," if parts else ""
        parts += [f'{comma}{{"name":{name},"type":"{kind}","value":', value, "}"]
    return pc.binary_join_element_wise(*parts, "")


@dataclass(frozen=True)
class Wal2Json:
    """Reads the messages of wal2json."""

    column: str
    row: pa.Schema
    table: str | None
    upserted: Upserted | None
    stops: bool

    def __call__(self, messages: pa.Table, names: Sequence[str]) -> Changes:
        place, sign, images = list[int](), list[int](), list[Values]()
        fault = ""
        # A message is a tree whose values have types of their own, so each one is parsed by itself.
        for i, text in enumerate(flat(messages[self.column]).to_pylist()):
            try:
                found = list(self._changes(text))
            except UNREADABLE as error:
                if isinstance(error, InvalidArgument):
                    raise
                fault = fault or f"column {self.column!r} has a text that wal2json does not write: {error}"
                found = [(0, {})]
            for weight, values in found:
                place.append(i)
                sign.append(weight)
                images.append(values)
        signs = np.array(sign, np.int64)
        bad = signs == 0
        columns = {}
        for name in names:
            columns[name], wrong = column_of([image.get(name) for image in images], self.row.field(name).type)
            if wrong.any():
                fault = fault or f"column {name!r} of a message of wal2json is no {self.row.field(name).type}"
                bad |= wrong
        rows = pa.table(columns)
        if self.upserted is not None:
            rows = only_keys(rows, signs < 0, (*self.upserted.keys, *self.upserted.order))
        changes = Changes(rows, signs, np.array(place, np.int64))
        return without(changes, bad, fault) if bad.any() else changes

    def _changes(self, text: Any) -> Iterator[tuple[int, Values]]:
        """The rows of a message, each with its weight."""
        if text is None:
            return
        message = json.loads(text, parse_float=str, parse_int=str)
        for change in message.get("change", [message]):
            one = "kind" in change
            kind = change["kind"][0].upper() if one else change["action"]
            if kind in ("B", "C", "M") or not self._is_of_table(change):
                continue
            if kind == "T":
                if self.stops:
                    raise InvalidArgument(TRUNCATED)
                raise ValueError("a truncated table")
            yield from self._images(kind, *(_first_format(change) if one else _second_format(change)))

    def _images(self, kind: str, new: Values | None, old: Values | None) -> Iterator[tuple[int, Values]]:
        if kind not in ("I", "U", "D"):
            raise ValueError(f"action {kind!r}")
        if kind != "D":
            new = self._whole(new, old)
            if self.upserted is not None and kind == "U":
                keys = self.upserted.keys
                same = old is None or all(old.get(key, new[key]) == new[key] for key in keys)
                old = None if same else old
        wants_old = kind == "D" or (kind == "U" and self.upserted is None)
        needed = self.row.names if self.upserted is None else self.upserted.keys
        if wants_old and (old is None or not set(needed) <= set(old)):
            raise ValueError("no whole old row: give keys=, the primary key, or set REPLICA IDENTITY FULL")
        if kind != "I" and old is not None:
            yield -1, old
        if kind != "D":
            assert new is not None
            yield 1, new

    def _whole(self, new: Values | None, old: Values | None) -> Values:
        """The new row with large values of the old one, which PostgreSQL does not send again if they did not change."""
        if new is None:
            raise ValueError("no new row")
        whole = {**(old or {}), **new}
        if missing := [name for name in self.row.names if name not in whole]:
            raise ValueError(f"no value of column {missing[0]!r}: set REPLICA IDENTITY FULL")
        return whole

    def _is_of_table(self, change: Values) -> bool:
        if self.table is None:
            return True
        schema, _, name = self.table.rpartition(".")
        return change.get("table") == name and (not schema or change.get("schema") == schema)


def _second_format(change: Values) -> tuple[Values | None, Values | None]:
    pairs = ({c["name"]: c["value"] for c in change[key]} if key in change else None for key in ("columns", "identity"))
    new, old = pairs
    return new, old


def _first_format(change: Values) -> tuple[Values | None, Values | None]:
    new = dict(zip(change["columnnames"], change["columnvalues"], strict=True)) if "columnnames" in change else None
    keys = change.get("oldkeys")
    return new, None if keys is None else dict(zip(keys["keynames"], keys["keyvalues"], strict=True))


def column_of(values: list[Any], kind: pa.DataType) -> tuple[pa.Array, np.ndarray]:
    """A column of a type from values of JSON whose numbers are texts, and a mask of the values that are not of it."""
    wrong = np.zeros(len(values), np.bool_)
    try:
        texts = pa.array(
            [{True: "true", False: "false"}[one] if isinstance(one, bool) else one for one in values], pa.string()
        )
        if pa.types.is_timestamp(kind):
            return times_of_texts(texts, kind), wrong
        if not (pa.types.is_nested(kind) or pa.types.is_binary(kind)):
            return texts.cast(kind), wrong
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        pass
    out: list[Any] = []
    for i, value in enumerate(values):  # one by one, to find those that do not fit
        try:
            out.append(_one(value, kind))
        except UNREADABLE:
            out.append(None)
            wrong[i] = True
    return pa.array(out, kind), wrong


def _one(value: Any, kind: pa.DataType) -> Any:
    if isinstance(value, str) and pa.types.is_binary(kind):
        return bytes.fromhex(value.removeprefix("\\x"))
    return value_of(value, kind)


__all__ = ["Postgres"]
