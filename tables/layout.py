"""The layout of a live table: its columns, and the columns that no two of its rows share.

Guarded by tests/tables/test_tables.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from ..combiners.column_names import column_names
from ..combiners.rows.hashing import require_hash
from ..errors import InvalidArgument, TypeMismatch, UnknownColumn, require_column
from ..flows.flow import Flow, check_filters
from ..flows.flow_steps import input_of
from ..flows.settle import shows_again
from ..panes.grouping.grouping import DIFF
from ..panes.grouping.pane_columns import WINDOW
from ..panes.grouping.stage import GroupingStage
from ..panes.state.pane_type import PANE
from ..panes.transforms import name_after
from .column_types import table_type

CHANGE = "_uncombine_change"
"""The column that says how the row of a key changes: 1 for a new row, 0 for another row, -1 for none any more."""

_PANE = "pane"
_WINDOW = "window"
_ENDS = ("start", "end")


@dataclass(frozen=True)
class Layout:
    """The columns of a live table, made of those of a flow.

    >>> import pyarrow as pa
    >>> rows = pa.schema([("user", pa.string()), ("n", pa.int64()), ("diff", pa.int64())])
    >>> layout = Layout(rows, ("user",), "diff")
    >>> layout.schema.names, layout.keys
    (['user', 'n'], ('user',))
    """

    rows: pa.Schema
    """The columns of the flow."""
    keys: tuple[str, ...]
    """The key columns of the table."""
    diff: str | None = None
    """The column of the flow that has the weights; None if every row is an addition."""

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the table. A window is two columns, because few databases have structs."""
        fields = list[pa.Field]()
        for field in self.rows:
            if field.name == self.diff or is_pane(field):
                continue
            ends = [(f"{field.name}_{end}", WINDOW.field(end).type) for end in _ENDS]
            columns = [pa.field(*each) for each in ends] if _is_window(field) else [pa.field(field.name, field.type)]
            fields += [one.with_type(table_type(one.type)) for one in columns]
        return pa.schema(fields)

    @cached_property
    def changes(self) -> pa.Schema:
        """The columns of changes: those of the table, and the column `CHANGE`."""
        return self.schema.append(pa.field(CHANGE, pa.int8()))

    @property
    def values(self) -> list[str]:
        """The columns of the table that are not keys."""
        return [name for name in self.schema.names if name not in self.keys]

    def flat(self, rows: pa.Table) -> pa.Table:
        """Rows of the flow in the columns of the table, each in its own type."""
        columns, names = list[pa.ChunkedArray](), list[str]()
        for field in self.rows:
            if field.name == self.diff or is_pane(field):
                continue
            column = rows[field.name]
            parts = zip(_ENDS, column.flatten(), strict=True) if _is_window(field) else [("", column)]
            for end, part in parts:
                columns.append(part)
                names.append(f"{field.name}_{end}" if end else field.name)
        return pa.table(columns, names=names)

    def text(self) -> str:
        """The layout as text, to be kept with the table."""
        return json.dumps({"columns": {f.name: str(f.type) for f in self.schema}, "keys": list(self.keys)})

    def differences(self, text: str) -> str:
        """The differences from a layout that was kept with a table, in words; empty if there are none."""
        facts = json.loads(text)
        ours = {field.name: str(field.type) for field in self.schema}
        theirs: dict[str, str] = facts["columns"]
        sentences = [f"column {name!r} is new" for name in ours if name not in theirs]
        sentences += [f"column {name!r} is missing" for name in theirs if name not in ours]
        both = [name for name in ours if name in theirs and ours[name] != theirs[name]]
        sentences += [f"column {name!r} was {theirs[name]} and is {ours[name]}" for name in both]
        if facts["keys"] != list(self.keys):
            sentences.append(f"the keys were {facts['keys']} and are {list(self.keys)}")
        return "; ".join(sentences)

    def added(self, text: str) -> list[pa.Field]:
        """The columns that a layout which was kept with a table does not have."""
        return [field for field in self.schema if field.name not in json.loads(text)["columns"]]

    def dropped(self, text: str) -> list[str]:
        """The columns that a layout which was kept with a table has, and this one has not."""
        return [name for name in json.loads(text)["columns"] if name not in self.schema.names]

    def follows(self, text: str) -> bool:
        """True if a table of a kept layout becomes one of this by new columns and dropped ones."""
        facts = json.loads(text)
        theirs: dict[str, str] = facts["columns"]
        same = all(str(field.type) == theirs.get(field.name, str(field.type)) for field in self.schema)
        return same and facts["keys"] == list(self.keys)


def table_flow(flow: Flow, keys: str | Sequence[str] | None = None) -> tuple[Flow, Layout]:
    """The flow, settled so that its rows are a changelog of a table, and the layout of the table."""
    if not isinstance(flow, Flow):
        ended = " that ends with window(...): add .combine(...)" if hasattr(flow, "combine") else ""
        raise InvalidArgument(f"a table is made of a flow, not of a {type(flow).__name__}{ended}")
    flow = retracting_flow(flow)
    check_filters(flow)
    output, schema = input_of(flow), flow.schema
    diff = output.diff
    require_weights(flow, "a table")
    if diff is None and output.panes and DIFF in schema.names:
        schema = schema.remove(schema.names.index(DIFF))
    layout = Layout(rows=schema, keys=tuple(_flat_names(schema, keys_of(flow, schema, keys))), diff=diff)
    _check(layout)
    return flow, layout


def retracting_flow(flow: Flow, what: str = "a table") -> Flow:
    """The flow, whose last grouping retracts a row that it shows again, for a table or a topic."""
    last = flow.stages[-1] if flow.stages else None
    if not isinstance(last, GroupingStage):
        return flow
    if not last.drops_late:
        raise InvalidArgument(
            f"late='duplicate' gives late rows a window of their own, which would replace the row that {what} has of "
            "the window that expired: use late='drop', and read them with left_out"
        )
    grouping = last.grouping
    if grouping.retracting or not shows_again(grouping, flow.settings.each_batch):
        return flow
    if last.open_grouping.options.get("mode") is not None:
        raise InvalidArgument(
            f"mode={grouping.mode!r} can show a window more than once and does not say which rows a pane replaces: use "
            f"mode='retracting' for {what}, or leave mode= out"
        )
    return replace(flow, stages=(*flow.stages[:-1], replace(last, grouping=grouping.with_mode("retracting"))))


def require_weights(flow: Flow, what: str) -> None:
    """Raise if rows that can be retracted have lost the column of their weights."""
    diff = input_of(flow).diff
    if diff is not None and diff not in flow.schema.names:
        raise UnknownColumn(
            f"{what} needs the weights of rows that can be retracted, but column {diff!r} is no longer there: keep it "
            "in select() and map()",
            diff,
        )


def keys_of(flow: Flow, schema: pa.Schema, keys: str | Sequence[str] | None) -> list[str]:
    """The columns that no two rows share: those that a user names, or the keys and the window of the last grouping."""
    if keys is not None:
        names = column_names(keys, "keys=")
        columns = [names] if isinstance(names, str) else list(names)
        if not columns:
            raise InvalidArgument("keys= must name at least one column, but is empty")
        return columns
    last = flow.stages[-1] if flow.stages else None
    if not isinstance(last, GroupingStage):
        raise InvalidArgument("only a grouping has keys of its own: give keys=, the columns that no two rows share")
    columns = [name_after(flow.transforms, name) for name in (*last.grouping.by, _WINDOW)]
    for name in columns:
        if name not in schema.names:
            raise UnknownColumn(
                f"the key column {name!r} of the last grouping is no longer there: keep it, or give keys=, the "
                "columns that no two rows share",
                name,
            )
    return columns


def _flat_names(schema: pa.Schema, keys: Sequence[str]) -> list[str]:
    out = list[str]()
    for name in keys:
        require_column(name, schema.names, "keys=")
        out += [f"{name}_{end}" for end in _ENDS] if _is_window(schema.field(name)) else [name]
    return list(dict.fromkeys(out))


def _check(layout: Layout) -> None:
    """Raise if rows of this layout cannot be told apart, or no table can have them."""
    names = layout.changes.names
    for name in names:
        if names.count(name) > 1:
            raise InvalidArgument(f"the table would have two columns {name!r}: give one of them another name")
        if not name or "\0" in name:
            raise InvalidArgument(f"a table has no column of the name {name!r}: give it another one")
    for field in layout.schema:
        require_hash(field.type, "a live table", field.name)
    for name in layout.keys:
        if name not in layout.schema.names:
            raise InvalidArgument(f"keys= names {name!r}, which no table has: leave it out")
        if pa.types.is_nested(kind := layout.schema.field(name).type):
            raise TypeMismatch(f"key column {name!r} is {kind}, by which rows are not told apart: give its parts")


def _is_window(field: pa.Field) -> bool:
    kind = field.type
    return field.name == _WINDOW and pa.types.is_struct(kind) and tuple(f.name for f in kind) == _ENDS


def is_pane(field: pa.Field) -> bool:
    """True for the column of the panes of a grouping."""
    return field.name == _PANE and field.type == PANE


__all__ = ["CHANGE", "Layout", "is_pane", "keys_of", "require_weights", "retracting_flow", "table_flow"]
