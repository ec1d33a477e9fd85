"""The rows of parts of a table: with their weights, and with the version and the time of the commit on request.

Guarded by tests/lakehouse/test_table_rows.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..combiners.rows.columns import Column, flat
from ..combiners.rows.hashing import hash_rows_128
from ..errors import InvalidArgument
from ..panes.rows.equal_rows import netted
from ..windows.times import UTC_MICROS
from .changed_files import Part
from .versions import TableVersions

VERSION, TIMESTAMP = "_commit_version", "_commit_timestamp"

ABOUT = pa.schema([(VERSION, pa.int64()), (TIMESTAMP, UTC_MICROS)])
"""The columns that say of which commit a row, or its retraction, is, by the names of change feeds."""


@dataclass(frozen=True)
class TableRows:
    """Makes rows of the parts of a table."""

    versions: TableVersions
    weight: str
    """The name of the column of weights."""
    about: tuple[str, ...] = ()
    """The columns of `ABOUT` that are asked for."""

    def __post_init__(self) -> None:
        for name in (self.weight, *self.about):
            if name in self.versions.schema.names:
                remedy = "diff='another name'" if name == self.weight else "leave it out of columns="
                raise InvalidArgument(f"{self.versions.name} has a column {name!r} of its own: give {remedy}")

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        own = [field.with_nullable(True) for field in self.versions.schema]
        return pa.schema([*own, *(ABOUT.field(name) for name in self.about), pa.field(self.weight, pa.int64())])

    def __call__(self, part: Part, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows of a part, with these columns."""
        own = [name for name in columns if name in self.versions.schema.names]
        tables = self._weighted(part, own)
        for rows, weights in _net(tables) if part.nets else tables:
            made = {name: rows[name] for name in own}
            for name, value in ((VERSION, part.version), (TIMESTAMP, part.at), (self.weight, weights)):
                if name in columns:
                    kind = self.schema.field(name).type
                    many = np.full(len(weights), value) if name != self.weight else weights
                    made[name] = pa.array(many, pa.int64()).cast(kind)
            yield pa.table(made, schema=pa.schema([self.schema.field(name) for name in made])).select(list(columns))

    def _weighted(self, part: Part, columns: list[str]) -> Iterator[tuple[pa.Table, np.ndarray]]:
        for file in part.files:
            for rows, weights in self.versions.rows(part, file, columns):
                yield rows, np.full(rows.num_rows, file.weight) if weights is None else weights


def _net(tables: Iterator[tuple[pa.Table, np.ndarray]]) -> Iterator[tuple[pa.Table, np.ndarray]]:
    """The rows whose weights do not add up to nothing, each once with the sum."""
    several = list(tables)
    if not several:
        return
    rows = pa.concat_tables([table for table, _ in several])
    weights = np.concatenate([some for _, some in several])
    if not rows.num_columns:
        yield rows, weights
        return
    low, high = hash_rows_128([Column(flat(column)) for column in rows.columns])
    _, first, sums = netted(low, high, weights)
    left = sums != 0
    yield rows.take(pa.array(first[left])), sums[left]


__all__ = ["ABOUT", "TIMESTAMP", "VERSION", "TableRows"]
