"""Late rows among the panes of a stage, for a grouping with `late="emit"`."""

from __future__ import annotations

import pyarrow as pa

from ..combiners.rows.columns import flat
from .grouping import RESERVED

LATE = "late"
"""The column that holds a late row. Such a row of output has diff 0 and no window."""


def late_type(schema: pa.Schema) -> pa.StructType:
    """The type of the column `LATE` for input rows of this schema."""
    return pa.struct([f.with_nullable(True) for f in schema])


def with_late_rows(panes: pa.Table, rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The panes of a step, followed by its late rows; `schema` is that of the late rows."""
    kind = late_type(schema)
    out = [panes.append_column(LATE, pa.nulls(panes.num_rows, kind))]
    if rows.num_rows:
        whole = pa.StructArray.from_arrays([flat(rows[f.name]) for f in schema], fields=list(kind))
        given = {LATE: whole, "diff": pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows)}
        keys = [f.name for f in panes.schema if f.name in rows.column_names and f.name not in RESERVED]
        given |= {name: flat(rows[name]).cast(panes.schema.field(name).type) for name in keys}
        columns = [given.get(f.name, pa.nulls(rows.num_rows, f.type)) for f in out[0].schema]
        out.append(pa.Table.from_arrays(columns, schema=out[0].schema))
    return pa.concat_tables(out)


__all__ = ["LATE", "late_type", "with_late_rows"]
