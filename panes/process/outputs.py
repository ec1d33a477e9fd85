"""The outputs of a `process` step that has several: each row of the step is a row of one of them.

The step gives all its rows in one table, with a struct column for each output that is null in the rows of the others.
A transform after the step takes the rows of one output out of it, as columns. So the rows of all outputs have one way
through lifts, shards and packed panes, and a step that reads one of them is any reader of the step.

Guarded by tests/panes/process/test_outputs.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...combiners.rows.columns import flat
from ...errors import InvalidArgument, TypeMismatch, nearest
from ..transforms import Transform

MAIN = ""
"""The column of the rows that are emitted without `to=`, which no output of a user can have as its name."""


@dataclass(frozen=True)
class OutputRows(Transform):
    """The rows of one output, with its columns in the place of those of all outputs.

    >>> rows = pa.table({"k": [1, 2], "a": [{"x": 5}, None], "b": [None, {"y": 7}], "diff": [1, 1]})
    >>> OutputRows("b", ("y",), ("a", "b")).apply(rows).to_pylist()
    [{'k': 2, 'y': 7, 'diff': 1}]
    """

    name: str
    columns: tuple[str, ...]
    """The columns of the output."""
    outputs: tuple[str, ...]
    """The names of all outputs."""

    @property
    def word(self) -> str | None:
        return None if self.name == MAIN else "output"

    def meaning(self, columns: frozenset[str] | None) -> Mapping[str, Any]:
        return {} if self.name == MAIN else {"name": self.name}

    def may_set(self, column: str) -> bool:
        return column in self.columns

    def apply(self, table: pa.Table) -> pa.Table:
        table = table.filter(table[self.name].is_valid())
        columns: dict[str, pa.Array | pa.ChunkedArray] = {}
        for name, column in zip(table.column_names, table.columns, strict=True):
            if name == self.name:
                columns |= zip(self.columns, flat(column).flatten(), strict=True)
            elif name not in self.outputs:
                columns[name] = column
        return pa.table(columns)

    def carrying(self, table: pa.Table, column: str) -> pa.Table:
        return self.apply(table)

    def before(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        return None if columns is None else columns - frozenset(self.columns) | {self.name}


def checked_outputs(outputs: object, taken: Collection[str]) -> dict[str, pa.Schema]:
    """Check the outputs that a user gave to `process`; `taken` are the columns of every result."""
    if not isinstance(outputs, Mapping) or not outputs:
        raise TypeMismatch(
            "process(outputs=) takes a dict with the columns of each output, such as "
            f"{{'alerts': pa.schema({{'n': pa.int64()}})}}, not {outputs!r}"
        )
    for name, schema in outputs.items():
        if not isinstance(name, str) or not name:
            raise InvalidArgument(f"process(outputs=) has the names of outputs as texts, and {name!r} is none")
        if name in taken:
            raise InvalidArgument(
                f"process(outputs=): {name!r} is a column of every result: give the output another name"
            )
        if not isinstance(schema, pa.Schema):
            raise TypeMismatch(
                f"process(outputs=): the columns of {name!r} must be an Arrow schema, such as "
                "pa.schema({'n': pa.int64()})"
            )
        if both := [column for column in schema.names if column in taken]:
            raise InvalidArgument(
                f"process(outputs=): {both[0]!r} is a column of every result: leave it out of {name!r}"
            )
    return dict(outputs)


def no_output(who: str, name: object, names: Collection[str]) -> InvalidArgument:
    """The error for an output that `who` names, or does not name, where the step has other ones."""
    if name is None:
        choice = " or ".join(f"to={one!r}" for one in names)
        return InvalidArgument(
            f"{who} of a step that has outputs by name needs the one to which the row goes: {choice}"
        )
    if not names:
        return InvalidArgument(
            f"{who} names an output {name!r}, and the step has none by name: write process(..., "
            f"outputs={{{name!r}: pa.schema(...)}})"
        )
    return InvalidArgument(f"{who} names an output {name!r}, which the step does not have: {nearest(str(name), names)}")


__all__ = ["MAIN", "OutputRows", "checked_outputs", "no_output"]
