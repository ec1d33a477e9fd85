"""A grouped aggregate of a table in memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..advice import DIFF, NAME_WEIGHTS, uncounted
from ..errors import InvalidArgument, OutOfRange, TypeMismatch, require_column
from .algebra import Accumulators, Weights
from .column_names import check_named, key_names
from .combiner import Combiner
from .plan import Plan
from .rows.columns import flat
from .rows.decoded_sizes import cut, varies
from .rows.group_sums import sum_counts, sum_weights
from .rows.groups import Groups, group_rows, unordered_groups
from .rows.key_codes import group_keys, normal_keys
from .rows.plain_types import text_room

if TYPE_CHECKING:
    import pandas as pd


class ArrowStream(Protocol):
    """A value that gives its rows as a stream of Arrow, such as a DataFrame of Polars."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The stream, as a capsule of the C data interface."""


PIECE_BYTES = 1 << 30
"""Bytes of text and lists that are combined at once; an Arrow column of text holds at most 2 GiB."""


def aggregate(
    table: pa.Table | pa.RecordBatch | pd.DataFrame | Iterable[Mapping[str, Any]] | Mapping[str, Any] | ArrowStream,
    by: str | Sequence[str] = (),
    diff: str | None = None,
    *unnamed: Never,
    **combiners: Combiner,
) -> pa.Table:
    """The results of `combiners` for each group of rows that agree in the columns `by`.

    Parameters
    ----------
    table
        An Arrow table or record batch, a pandas DataFrame (whose NaN means missing, as in pandas), a list of dicts, a
        dict of columns, or anything with `__arrow_c_stream__`, such as a Polars DataFrame. Columns may be of any size.
        Large and view types are computed as the plain types, extension types as those that store them, and results have
        plain types.
    by
        The key columns. Null is a key of its own, and NaN equals NaN. Without key columns all rows are one group,
        and the result always has one row; the result of no rows is 0 for counts and null for most combiners.
    diff
        An int64 column of weights; a row of weight -1 is a retraction. A key whose weights sum to zero has no row in
        the result. Without key columns the result is then that of no rows. A column `diff` with other weights than 1
        that nothing names gives a warning.
    **combiners
        The name of each result column, and its combiner.

    Returns
    -------
    pyarrow.Table
        The keys and the results, groups in the order of their first appearance. It is an Arrow table for any type of
        input: `.to_pandas()` makes it a pandas DataFrame, and `polars.from_arrow()` a Polars one.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> scores = pa.table(
    ...     {"user": ["a", "b", "a", "a"], "score": [3, 5, 4, 4], "diff": [1, 1, 1, -1]}
    ... )
    >>> sums = {"total": uc.Sum("score"), "best": uc.Max("score")}
    >>> uc.aggregate(scores, by="user", diff="diff", **sums).to_pylist()
    [{'user': 'a', 'total': 3, 'best': 3}, {'user': 'b', 'total': 5, 'best': 5}]
    """
    check_named("aggregate()", [diff] if isinstance(diff, Combiner | Mapping) else unnamed)
    source, keys = as_table(table), key_names(by)
    for name in keys:
        require_column(name, source.column_names, "by=")
        if name in combiners:
            raise InvalidArgument(f"{name!r} is both a key column and the name of a result: rename the result")
    weights = None if diff is None else weights_of(source, diff)
    plan = Plan(combiners, source.schema, append_only=diff is None)
    if not keys and not combiners:
        raise InvalidArgument("aggregate() needs a key column or a combiner: write by='k' or n=Count()")
    if weights is None:
        warn_of_weights(source, {*keys, *plan.columns})
    pieces = list(_pieces(plan, keys, source, weights))
    if keys and len(pieces) == 1:
        return _of_one_piece(plan, keys, source, weights)
    states = [_State.of(plan, keys, rows, weighed) for rows, weighed in pieces]
    state = states[0] if len(states) == 1 else _State.joined(plan, states)
    if not keys:
        nothing = source.num_rows == 0 if state.weights is None else bool(state.weights[0] == 0)
        return pa.table(dict(zip(combiners, plan.extract(plan.zero(1) if nothing else state.acc), strict=True)))
    out = dict(zip([*keys, *combiners], [*state.keys, *plan.extract(state.acc)], strict=True))
    result = pa.table(out)
    return result if state.weights is None else result.filter(pa.array(state.weights != 0))


def warn_of_weights(table: pa.Table, named: set[str], remedy: str = NAME_WEIGHTS) -> None:
    """Warn of weights that nobody named, so that retractions count as rows."""
    if DIFF not in table.column_names or DIFF in named or not pa.types.is_integer(table.schema.field(DIFF).type):
        return
    if pc.any(pc.not_equal(table[DIFF], 1)).as_py():
        warnings.warn(uncounted("the table", DIFF, remedy), stacklevel=3)


def _of_one_piece(plan: Plan, keys: list[str], rows: pa.Table, weights: Weights) -> pa.Table:
    """The results of all rows at once, of which no state is kept."""
    columns = [group_keys(flat(rows[name])) for name in keys]
    groups, first = unordered_groups(columns, rows.num_rows)
    results = plan.results(groups, rows, weights)
    left = np.arange(groups.count) if weights is None else np.flatnonzero(sum_weights(groups, weights))
    if (first[1:] < first[:-1]).any():
        left = left[np.argsort(first[left])]
    at, places = pa.array(left), pa.array(first[left])
    arrays = [normal_keys(column.take(places)) for column in columns]
    arrays += results if np.array_equal(left, np.arange(groups.count)) else [column.take(at) for column in results]
    return pa.table(dict(zip([*keys, *plan.compiled], arrays, strict=True)))


@dataclass(frozen=True)
class _State:
    """The accumulators of groups, the key of each group, and the sum of its rows' weights."""

    keys: list[pa.Array]
    acc: Accumulators
    weights: Weights

    @classmethod
    def of(cls, plan: Plan, keys: list[str], rows: pa.Table, weights: Weights) -> _State:
        columns = [group_keys(flat(rows[name])) for name in keys]
        groups, first = _groups(columns, rows.num_rows)
        acc = plan.add(groups, rows, weights)
        sums = None if weights is None else sum_weights(groups, weights)
        return cls(keys=[normal_keys(column.take(pa.array(first))) for column in columns], acc=acc, weights=sums)

    @classmethod
    def joined(cls, plan: Plan, states: list[_State]) -> _State:
        """The state of all rows; by the laws it equals the state of one pass over all rows."""
        with text_room:
            columns = [pa.concat_arrays(parts) for parts in zip(*(state.keys for state in states), strict=True)]
            acc = tuple(pa.concat_arrays(parts) for parts in zip(*(state.acc for state in states), strict=True))
        groups, first = _groups(columns, sum(state.size for state in states))
        weights = [state.weights for state in states if state.weights is not None]
        sums = sum_counts(groups, np.concatenate(weights)) if weights else None
        return cls(keys=[column.take(pa.array(first)) for column in columns], acc=plan.merge(groups, acc), weights=sums)

    @property
    def size(self) -> int:
        """The number of groups."""
        return len(self.keys[0]) if self.keys else 1


def _groups(columns: list[pa.Array], rows: int) -> tuple[Groups, np.ndarray]:
    return group_rows(columns, rows) if columns else (Groups.single(rows), np.zeros(0, np.int64))


def _pieces(plan: Plan, keys: list[str], table: pa.Table, weights: Weights) -> Iterator[tuple[pa.Table, Weights]]:
    """The rows with their weights, cut so that the texts of a column fit the offsets of one Arrow array."""
    names = dict.fromkeys([*keys, *plan.columns])
    if not any(varies(table.schema.field(name).type) for name in names):
        yield table, weights
        return
    start = 0
    for part in cut(table.select(list(names)), 0, max(table.num_rows, 1), PIECE_BYTES):
        stop = start + part.num_rows
        yield table.slice(start, part.num_rows), None if weights is None else weights[start:stop]
        start = stop


def as_table(table: Any) -> pa.Table:
    """A table from what users hold: Arrow as it is, a pandas DataFrame without its index, dicts, or what gives these.

    >>> as_table({"x": [1, 2]}).to_pylist()
    [{'x': 1}, {'x': 2}]
    >>> as_table({"x": i} for i in range(2)).num_rows
    2
    """
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if type(table).__module__.partition(".")[0] == "pandas" and hasattr(table, "columns"):
        try:
            return pa.Table.from_pandas(table, preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            reason = ": ".join(map(str, reversed(error.args)))
            raise TypeMismatch(f"a column of the DataFrame has values of different types: {reason}") from None
    if type(table).__name__ == "LazyFrame" and hasattr(table, "collect"):  # of Polars or narwhals
        return as_table(table.collect())
    if hasattr(table, "__arrow_c_stream__"):
        return pa.table(table)
    if type(table).__module__.startswith("pyarrow.") and hasattr(table, "to_table"):  # a dataset, or a scanner of one
        return table.to_table()
    if isinstance(table, Iterator) and not hasattr(table, "read"):
        table = list(table)
    if isinstance(table, list | tuple) and all(isinstance(row, Mapping) for row in table):
        return _table_of_rows(table)
    if isinstance(table, list | tuple) and all(isinstance(part, pa.Table | pa.RecordBatch) for part in table):
        return _table_of_tables([as_table(part) for part in table])
    if isinstance(table, Mapping):
        return _table_of_columns(table)
    then = ": read it first, as with pyarrow.parquet.read_table(path)" if isinstance(table, str | Path) else ""
    raise TypeMismatch(
        "an Arrow table, a pandas DataFrame, an Arrow stream or a list of dicts is needed, but the table is a "
        f"{type(table).__name__}{then}"
    )


def _table_of_columns(columns: Mapping[Any, Any]) -> pa.Table:
    """A table of a dict that has the values of each column."""
    for name, values in columns.items():
        if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
            raise TypeMismatch(
                f"a dict has the values of each column, but {name!r} is {values!r}: write [row] for a row"
            )
    if len(lengths := {len(values): name for name, values in columns.items()}) > 1:
        told = " and ".join(f"{length} of {name!r}" for length, name in [*lengths.items()][:2])
        raise TypeMismatch(f"a dict has one value of each column for each row, but has {told}: give as many of each")
    return pa.table({str(name): _column_of(values, f"{name!r} of the dict") for name, values in columns.items()})


def _table_of_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """One table of the rows of several."""
    for table in tables:
        if table.schema != tables[0].schema:
            raise TypeMismatch(
                f"tables of the same columns are needed, but one has {_columns_of(tables[0])}, and another "
                f"{_columns_of(table)}: cast or select their columns"
            )
    return pa.concat_tables(tables)


def _columns_of(table: pa.Table) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in table.schema)


def _table_of_rows(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """A table of dicts, with a column for each name that one of them has."""
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: _column_of([row.get(name) for row in rows], f"{name!r} of the dicts") for name in names})


def _column_of(values: Any, name: str) -> pa.Array | pa.ChunkedArray:
    """The values of a column, which an error names."""
    try:
        return values if isinstance(values, pa.ChunkedArray) else pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise TypeMismatch(f"column {name} has values of different types: {error}") from None


def weights_of(table: pa.Table, diff: str) -> np.ndarray:
    """The weight column as int64."""
    require_column(diff, table.column_names, "diff=")
    column = table[diff]
    if not pa.types.is_integer(column.type):
        raise TypeMismatch(f"diff= takes an int64 column of weights, but {diff!r} is {column.type}")
    if column.null_count:
        raise InvalidArgument(f"the weight column {diff!r} has {column.null_count} nulls: give every row a weight")
    try:
        whole = flat(column).cast(pa.int64())
    except pa.ArrowInvalid:
        most = pc.max(column)
        raise OutOfRange(
            f"the weight column {diff!r} has a weight of {most}, but weights must fit int64: use smaller weights"
        ) from None
    return np.asarray(whole.to_numpy(zero_copy_only=False))
