"""Selection: the columns that rows keep, and the names that these have.

A step here reads no column by itself, so that rows come without those that no later step needs.

Guarded by tests/panes/test_selection.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..errors import InvalidArgument, require_column
from .transforms import StorableField, Transform


@dataclass(frozen=True)
class Select(Transform):
    """Keeps some of the columns, in this order. Of rows without some of them it keeps the others."""

    names: tuple[str, ...]

    def apply(self, table: pa.Table) -> pa.Table:
        return table.select([name for name in self.names if name in table.column_names])

    def carrying(self, table: pa.Table, column: str) -> pa.Table:
        return Select((*self.names, column)).apply(table)

    def settled(self, schema: pa.Schema, storable: StorableField) -> Select:
        for name in self.names:
            require_column(name, schema.names, "select()")
            if self.names.count(name) > 1:
                raise InvalidArgument(f"select() names column {name!r} twice: leave one of them out")
        return self

    def before(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        return frozenset(self.names) if columns is None else frozenset(self.names) & columns

    def sources(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        return frozenset(self.names)


@dataclass(frozen=True)
class Rename(Transform):
    """Gives columns other names, and leaves their order and their values.

    >>> import pyarrow as pa
    >>> from uncombine.panes.selection import Rename
    >>> Rename({"x": "y"}).apply(pa.table({"x": [1], "z": [2]})).to_pylist()
    [{'y': 1, 'z': 2}]
    """

    names: Mapping[str, str]
    """The new name of each column that gets one."""

    word = "rename"

    def meaning(self, columns: frozenset[str] | None) -> Mapping[str, Any]:
        return {new: old for old, new in self.names.items() if columns is None or new in columns}

    def may_set(self, column: str) -> bool:
        return column in self.names or column in self.names.values()

    def name_after(self, column: str) -> str:
        return self.names.get(column, column)

    def apply(self, table: pa.Table) -> pa.Table:
        return table.rename_columns([self.name_after(name) for name in table.column_names])

    def carrying(self, table: pa.Table, column: str) -> pa.Table:
        return self.apply(table)

    def settled(self, schema: pa.Schema, storable: StorableField) -> Rename:
        for old, new in self.names.items():
            require_column(old, schema.names, "rename()")
            if not isinstance(new, str) or not new:
                raise InvalidArgument(f"rename() takes the new names as texts, but was given {new!r} for {old!r}")
        after = [self.name_after(name) for name in schema.names]
        for new in self.names.values():
            if after.count(new) > 1:
                raise InvalidArgument(f"rename() would give two columns the name {new!r}: rename or drop one of them")
        return self

    def before(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        names = {new: old for old, new in self.names.items()}
        return None if columns is None else frozenset(names.get(name, name) for name in columns)


def renaming(names: object, others: Mapping[str, str]) -> Rename:
    """Check the names that a user gave to `rename`, as a dict and by keyword, and make the step."""
    if not isinstance(names, Mapping):
        raise InvalidArgument(f"rename() takes a dict of old and new names, but was given {names!r}")
    for value in others.values():
        if isinstance(value, Mapping):
            raise InvalidArgument(f"rename() takes a dict without a name before it: write rename({dict(value)!r})")
    if both := sorted(set(names) & set(others)):
        raise InvalidArgument(f"rename() was given {both[0]!r} twice, in the dict and by keyword: leave one out")
    return Rename({**names, **others})


def dropping(names: Sequence[str], gone: Sequence[str], kept: Sequence[str | None]) -> Select:
    """The choice of the columns that `drop` leaves; `kept` are those by which steps and results read the rows."""
    for name in gone:
        require_column(name, names, "drop()")
        if name in kept:
            raise InvalidArgument(
                f"drop() cannot leave out {name!r}, which has the event times or the weights of the rows: leave it out "
                "with select() after the last step"
            )
    return without(names, gone)


def without(names: Sequence[str], gone: Collection[str]) -> Select:
    """The choice of all columns but some."""
    return Select(tuple(name for name in names if name not in gone))


__all__ = ["Rename", "Select", "dropping", "renaming", "without"]
