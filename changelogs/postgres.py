"""PostgreSQL's logical decoding as the plugin wal2json writes it, in both of its formats.

Guarded by tests/changelogs/test_changelogs_json.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..combiners.rows.columns import flat
from ..errors import InvalidArgument, TypeMismatch, require_column
from ..flows.changelog_reading import Reading
from .base import Changelog, row_schema, upserted
from .json_out import escaped, text_of
from .single_changes import latest, pairs
from .wal2json import Wal2Json

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
    >>> time = '{"name":"ts","value":"2016-01-20 12:00:26+00"}'
    >>> data = [f'{{"action":"I","columns":[{time},{{"name":"n","value":5}}]}}']
    >>> flow = uc.flow(pa.table({"data": data}), changelog=uc.changelog.Postgres(row))
    >>> flow.run().select(["n", "diff"]).to_pylist()
    [{'n': 5, 'diff': 1}]
    """

    schema: pa.Schema | None = None
    table: str | None = None
    keys: str | Sequence[str] | None = None
    order: str | Sequence[str] | None = None
    column: str = "data"
    truncate: str = "error"
    keep_deletes: str | None = None

    def __post_init__(self) -> None:
        if self.truncate not in ("error", "bad"):
            raise InvalidArgument(f"truncate= must be 'error' or 'bad', but is {self.truncate!r}")
        if self.schema is not None and not isinstance(self.schema, pa.Schema):
            raise TypeMismatch(f"schema= takes an Arrow schema of the rows, not {self.schema!r}")

    def reading(self, columns: pa.Schema) -> Reading:
        words = "uc.changelog.Postgres()"
        if self.schema is None:
            raise InvalidArgument(f"{words} reads JSON: give schema=, the columns of a row of the table")
        require_column(self.column, columns.names, words)
        keyed, row = upserted(self.keys, self.order, self.keep_deletes), row_schema(list(self.schema))
        changes = Wal2Json(
            column=self.column, row=row, table=self.table, upserted=keyed, stops=self.truncate == "error"
        )
        return Reading(
            message_schema=columns, row=row, own=frozenset([self.column]), changes=changes, words=words, upserted=keyed
        )

    def written(self, rows: pa.Table, weights: np.ndarray, keys: tuple[str, ...]) -> pa.Table:
        if self.keys is None:
            rows, sign, partner = pairs(rows, weights, keys)
        else:
            rows, deleted = latest(rows, weights, keys, "wal2json without old rows")
            sign, partner = np.where(deleted, -1, 1), np.full(len(deleted), -1)
        places = np.flatnonzero((sign < 0) | (partner < 0))
        updates = partner[places] >= 0
        kinds = np.where(updates, "U", np.where(sign[places] > 0, "I", "D"))
        whole = _columns(rows)
        old = whole.take(pa.array(places))
        new = whole.take(pa.array(np.where(updates, partner[places], places)))
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


__all__ = ["Postgres"]
