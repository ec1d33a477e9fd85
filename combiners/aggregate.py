"""A grouped aggregate of a table in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument, TypeMismatch, require_column
from .combiner import Combiner
from .groups import Groups, group_rows
from .keycodes import normal_keys
from .plan import Plan
from .segments import sum_weights

if TYPE_CHECKING:
    import pandas as pd


def aggregate(
    table: pa.Table | pa.RecordBatch | pd.DataFrame,
    by: str | Sequence[str] = (),
    diff: str | None = None,
    **combiners: Combiner,
) -> pa.Table:
    """The results of `combiners` for each group of rows that agree in the columns `by`.

    Parameters
    ----------
    table
        An Arrow table or record batch, or a pandas DataFrame (whose NaN means missing, as in pandas).
    by
        The key columns. Null is a key of its own, NaN equals NaN. With none, all rows are one group, which has
        a row in any case: that of no rows holds what the combiners make of nothing, 0 for counts, null for most.
    diff
        An int64 column of weights: -1 takes a row back. A key whose weights sum to zero has no row; without keys the
        row is then that of no rows.
    **combiners
        Name of each result column and what to compute.

    Returns
    -------
    pyarrow.Table
        The keys and the results, groups in the order of their first appearance.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> scores = pa.table({"user": ["a", "b", "a", "a"], "score": [3, 5, 4, 4], "diff": [1, 1, 1, -1]})
    >>> uc.aggregate(scores, by="user", diff="diff", total=uc.Sum("score"), best=uc.Max("score")).to_pylist()
    [{'user': 'a', 'total': 3, 'best': 3}, {'user': 'b', 'total': 5, 'best': 5}]
    """
    source = as_table(table)
    keys = [by] if isinstance(by, str) else list(by)
    for name in keys:
        require_column(name, source.column_names, "by=")
        if name in combiners:
            raise InvalidArgument(f"{name!r} is both a key column and the name of a result: rename one of them")
    weights = None if diff is None else weights_of(source, diff)
    plan = Plan(combiners, source.schema, append_only=diff is None)
    columns = [normal_keys(flat(source[name])) for name in keys]
    if not keys:
        if not combiners:
            raise InvalidArgument("aggregate needs a key column or a combiner, such as n=Count()")
        groups = Groups.single(source.num_rows)
        added = plan.add(groups, source, weights)
        nothing = bool(sum_weights(groups, weights)[0] == 0)
        return pa.table(dict(zip(combiners, plan.extract(plan.zero(1) if nothing else added), strict=True)))
    groups, first = group_rows(columns, source.num_rows)
    results = plan.extract(plan.add(groups, source, weights))
    out: dict[str, pa.Array] = {}
    for name, column in zip(keys, columns, strict=True):
        out[name] = column.take(pa.array(first))
    out.update(zip(combiners, results, strict=True))
    result = pa.table(out)
    if weights is None:
        return result
    return result.filter(pa.array(sum_weights(groups, weights) != 0))


def as_table(table: Any) -> pa.Table:
    """A table from what users hold: Arrow as it is, a pandas DataFrame without its index."""
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if type(table).__module__.partition(".")[0] == "pandas" and hasattr(table, "columns"):
        return pa.Table.from_pandas(table, preserve_index=False)
    raise TypeMismatch(f"an Arrow table or a pandas DataFrame is needed, not {type(table).__name__}")


def weights_of(table: pa.Table, diff: str) -> np.ndarray:
    """The weight column as int64."""
    require_column(diff, table.column_names, "diff=")
    column = table[diff]
    if not pa.types.is_integer(column.type):
        raise TypeMismatch(f"diff= takes an int64 column of weights, and {diff!r} is {column.type}")
    if column.null_count:
        raise InvalidArgument(f"the weight column {diff!r} has {column.null_count} nulls: every row needs a weight")
    return np.asarray(flat(column).cast(pa.int64()).to_numpy(zero_copy_only=False))


def flat(column: pa.ChunkedArray) -> pa.Array:
    """A table's column in one piece."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
