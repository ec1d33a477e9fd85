"""The form in which the rows that a flow leaves out are shown beside its result: each with its step and the reason.

Each step decides for itself: `panes/grouping/admission.py`, `panes/join/side_rows.py`, and `Columns.take` of
`panes/rows/options.py` for the others.

Guarded by tests/flows/test_left_out.py, tests/sparkops/test_left_out.py and tests/sparkops/test_late_rows.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..combiners.rows.columns import flat
from ..panes.shard.shard import Instant
from ..windows.times import UTC_MICROS

LEFT_OUT = "left_out"
"""The column of a row that was left out, where such rows stand beside the rows of a result."""

REASONS = ("late", "bad", "unassigned", "finished")
"""The window of the row, or its time, had expired; its time was null or too far in the future; no window took it; the
trigger of its window had finished."""

UNREADABLE = "unreadable"
"""The reason of a row of a file that could not be read, which comes to no step."""


@dataclass(frozen=True)
class LeftOut:
    """The form in which a step shows the rows that it left out. Its columns are the same for all steps of a flow."""

    stage: int | None
    """The number of the stage, which `explain()` shows; None for rows of a source that come to no step."""
    sides: tuple[str | None, ...]
    """For each input of the operator, "left" or "right" in a join and None elsewhere."""
    fields: tuple[Mapping[str, str], ...]
    """For each input of the operator, the field of `row` for each of its columns."""
    row: pa.StructType
    reasons: tuple[str, ...] = REASONS
    """The reasons to leave a row out. Late rows with a window of their own are not left out."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of rows that were left out."""
        return left_out_schema(self.row)

    def table(self, instants: Iterable[Instant]) -> pa.Table:
        """The rows that some steps left out."""
        parts = [self.schema.empty_table()]
        for instant in instants:
            for why in self.reasons:
                for port, rows in enumerate(instant.left_out(why)):
                    if rows.num_rows:
                        parts.append(self._shown(rows, port, why, instant.before if why == "late" else None))
        return pa.concat_tables(parts)

    def _shown(self, rows: pa.Table, port: int, why: str, watermark: int | None = None) -> pa.Table:
        named = self.fields[port]
        own = {named[name]: flat(rows[name]) for name in rows.column_names if name in named}
        count = rows.num_rows
        columns = [own[f.name].cast(f.type) if f.name in own else pa.nulls(count, f.type) for f in self.row]
        labels = [self.stage, self.sides[port], why]
        label_columns = [pa.repeat(pa.scalar(v, f.type), count) for v, f in zip(labels, self.schema, strict=False)]
        whole = pa.StructArray.from_arrays(columns, fields=list(self.row))
        before = pa.repeat(pa.scalar(watermark, UTC_MICROS), count)
        places = [pa.nulls(count, field.type) for field in _PLACE]
        return pa.Table.from_arrays([*label_columns, whole, before, *places], schema=self.schema)

    def bad(self, rows: pa.Table) -> pa.Table:
        """Messages of a changelog that cannot be read, of a source whose rows come to no step."""
        return self._shown(rows, 0, "bad")

    def unreadable(self, rows: pa.Table, port: int) -> pa.Table:
        """Rows of files that could not be read, on their way to an input of the operator."""
        return unreadable_rows(rows, self.row, self.stage, self.sides[port])


_PLACE = (
    pa.field("file", pa.string()),
    pa.field("line", pa.int64()),
    pa.field("text", pa.string()),
    pa.field("cause", pa.string()),
)
"""The place of a row that could not be read, the beginning of its text, and its fault."""


def left_out_schema(row: pa.StructType) -> pa.Schema:
    """The columns of rows that were left out, of which `row` has the columns of all inputs of all steps.

    `watermark` is that of the step from before the row, if it is late.
    """
    labels = [("stage", pa.int32()), ("side", pa.string()), ("why", pa.string())]
    return pa.schema([*labels, ("row", row), ("watermark", UTC_MICROS), *_PLACE])


def unreadable_rows(rows: pa.Table, row: pa.StructType, stage: int | None = None, side: str | None = None) -> pa.Table:
    """Rows of files that could not be read, as rows that were left out; without a stage, of a flow that has none.

    >>> rows = pa.table({"file": ["/a.csv"], "line": [7], "text": ["x"], "cause": ["'x' is no int64"]})
    >>> unreadable_rows(rows, pa.struct({"n": pa.int64()}), 1).select(["why", "row", "line"]).to_pylist()
    [{'why': 'unreadable', 'row': None, 'line': 7}]
    """
    schema, count = left_out_schema(row), rows.num_rows
    labels = [stage, side, UNREADABLE, None, None]
    columns = [pa.repeat(pa.scalar(v, f.type), count) for v, f in zip(labels, schema, strict=False)]
    return pa.Table.from_arrays([*columns, *(rows[field.name] for field in _PLACE)], schema=schema)


def past_all_steps(left_out: pa.Table) -> Counter[str]:
    """The numbers of rows that were left out of sources whose rows come to no step, by the reason."""
    if not left_out.num_columns:
        return Counter()
    return Counter(left_out.filter(left_out["stage"].is_null())["why"].to_pylist())


def fields_of(inputs: Sequence[tuple[int, Sequence[pa.Schema]]]) -> tuple[pa.StructType, list[list[dict[str, str]]]]:
    """One struct for the columns of all inputs, and the field in it for each column of each input.

    The inputs are those of steps with their numbers. Columns of the same name and type share a field; if types differ,
    the field of a later step has its number. Two columns of one input never share a field, and no two fields differ by
    case alone, which Spark takes for one name.

    >>> import pyarrow as pa
    >>> numbers, texts = pa.schema({"x": pa.int64()}), pa.schema({"x": pa.string(), "x_1": pa.string()})
    >>> fields_of([(1, [numbers, texts])])[1]
    [[{'x': 'x'}, {'x': 'x_1_1', 'x_1': 'x_1'}]]
    """
    fields: dict[str, pa.Field] = {}
    names = [[_named(fields, schema, number) for schema in schemas] for number, schemas in inputs]
    return pa.struct(list(fields.values())), names


def _named(fields: dict[str, pa.Field], schema: pa.Schema, number: int) -> dict[str, str]:
    """The field for each column of a schema; new ones are added to `fields`, each under its name in lower case."""
    own: dict[str, str] = {}  # the columns that keep their names, which no other column may take
    for column in schema:
        field = fields.get(column.name.casefold(), column)
        if (field.name, field.type) == (column.name, column.type):
            own.setdefault(column.name.casefold(), column.name)
    out: dict[str, str] = {}
    for column in schema:
        name = column.name
        while own.get(name.casefold()) != column.name and not _is_free(fields, own, out, name, column.type):
            name = f"{name}_{number}"
        fields.setdefault(name.casefold(), pa.field(name, column.type))
        out[column.name] = name
    return out


def _is_free(
    fields: Mapping[str, pa.Field], own: Mapping[str, str], out: Mapping[str, str], name: str, kind: pa.DataType
) -> bool:
    """True if a column may have the field of another name: a new one, or one of a step before."""
    if name.casefold() in own or name in out.values():
        return False
    field = fields.get(name.casefold())
    return field is None or (field.name == name and field.type == kind)


def beside(panes: pa.Table, rows: pa.Table) -> pa.Table:
    """Rows of a result, and after them rows that were left out, in the column `LEFT_OUT`."""
    kind = pa.struct(list(rows.schema))
    schema = pa.schema([*(f.with_nullable(True) for f in panes.schema), pa.field(LEFT_OUT, kind)])
    none = [pa.nulls(rows.num_rows, field.type) for field in panes.schema]
    whole = pa.StructArray.from_arrays([flat(column) for column in rows.columns], fields=list(kind))
    return pa.concat_tables(
        [
            pa.Table.from_arrays([*panes.columns, pa.nulls(panes.num_rows, kind)], schema=schema),
            pa.Table.from_arrays([*none, whole], schema=schema),
        ]
    )


__all__ = [
    "LEFT_OUT",
    "REASONS",
    "UNREADABLE",
    "LeftOut",
    "beside",
    "fields_of",
    "left_out_schema",
    "past_all_steps",
    "unreadable_rows",
]
