"""The columns that several flows share: each flow's rows are given them before they run as one.

Guarded by tests/flows/test_union.py and tests/flows/test_join_rolling.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ..panes.transforms import Transform


@dataclass(frozen=True)
class CastTo(Transform):
    """Gives rows the columns of a union: each is one of theirs, a value for all of them, or null.

    >>> import pyarrow as pa
    >>> from uncombine.flows.cast_to import CastTo
    >>> schema = pa.schema({"n": pa.int64(), "side": pa.string(), "x": pa.int64()})
    >>> CastTo(schema, {"n": "count"}, {"side": "left"}).apply(pa.table({"count": [5]})).to_pylist()
    [{'n': 5, 'side': 'left', 'x': None}]
    """

    schema: pa.Schema
    columns: Mapping[str, str]
    """The column of the rows for a column of the schema."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The value for all rows of a column of the schema. A column with neither is null."""

    def apply(self, table: pa.Table) -> pa.Table:
        return pa.Table.from_arrays([self._column(table, column) for column in self.schema], schema=self.schema)

    def carrying(self, table: pa.Table, column: str) -> pa.Table:
        return self.apply(table).append_column(column, table[column])

    def meaning(self, columns: frozenset[str] | None) -> Mapping[str, Any]:
        renamed = {name: column for name, column in self.columns.items() if name != column}
        return {name: value for name, value in {**renamed, **self.values}.items() if columns is None or name in columns}

    def may_set(self, column: str) -> bool:
        return self.columns.get(column) != column

    def before(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        return frozenset(self.columns.values())

    def sources(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        return frozenset(column for name, column in self.columns.items() if columns is None or name in columns)

    def _column(self, table: pa.Table, column: pa.Field) -> pa.Array | pa.ChunkedArray:
        if column.name in self.columns:
            return table[self.columns[column.name]].cast(column.type)
        return pa.repeat(pa.scalar(self.values.get(column.name), column.type), table.num_rows)


__all__ = ["CastTo"]
