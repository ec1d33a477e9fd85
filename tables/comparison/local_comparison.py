"""The comparison of two tables in this process.

Guarded by tests/tables/comparison/test_local_comparison.py and tests/test_comparing.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import Column, flat
from ...combiners.rows.group_sums import sum_counts
from ...combiners.rows.groups import Groups
from ...combiners.rows.hashing import hash_rows_128
from ...combiners.rows.plain_types import plain_table, text_room
from ...errors import InvalidArgument, OutOfRange
from ...panes.rows.equal_rows import groups_of, netted
from .common_types import SIDES, common_schema
from .comparison import CHANGED, EQUAL, KINDS, ONLY_NEW, ONLY_OLD, Comparison
from .equal_values import equal_values
from .options import DIFFERENCE, WEIGHT, ComparisonOptions


@dataclass(frozen=True)
class WeightedRows:
    """The rows of a side, without their weights, and these."""

    rows: pa.Table
    weights: np.ndarray | None = None
    """None if each row stands for one."""


def compared(old: WeightedRows, new: WeightedRows, options: ComparisonOptions) -> Comparison:
    """The comparison of two sides in this process.

    >>> import pyarrow as pa
    >>> old, new = (WeightedRows(pa.table({"k": [1, 2], "x": [x, 5.0]})) for x in (1.0, 1.5))
    >>> compared(old, new, ComparisonOptions.of("k", None, None, 10)).to_arrow().to_pylist()
    [{'difference': 'changed', 'k': 1, 'x_old': 1.0, 'x_new': 1.5}]
    """
    schema = common_schema(old.rows.schema, new.rows.schema)
    options = options.settled(schema)
    one, other = (WeightedRows(in_schema(side.rows, schema), side.weights) for side in (old, new))
    with text_room:
        return (_by_keys if options.keys else _whole_rows)(one, other, options)


def in_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows in the types in which they are compared."""
    rows = plain_table(rows.select(schema.names))
    columns = list[pa.ChunkedArray]()
    for field, column in zip(schema, rows.columns, strict=True):
        try:
            columns.append(column.cast(field.type))
        except pa.ArrowInvalid as error:
            raise OutOfRange(
                f"a value of column {field.name!r} does not fit {field.type}, in which it is compared: cast the column "
                f"of the other side ({error})"
            ) from None
    return pa.table(columns, schema=schema)


def chosen_examples(kinds: np.ndarray, count: int) -> np.ndarray:
    """The places of examples: so many of all, of each kind as many as there is room for, the first of each.

    >>> import numpy as np
    >>> chosen_examples(np.array([1, 1, 1, 1, 2, 3]), 4)
    array([0, 1, 4, 5])
    """
    ranks = np.zeros(len(kinds), np.int64)
    for kind in np.unique(kinds):
        of_kind = kinds == kind
        ranks[of_kind] = np.arange(np.count_nonzero(of_kind))
    chosen = np.lexsort((kinds, ranks))[:count]
    return chosen[np.lexsort((chosen, kinds[chosen]))]


def _whole_rows(old: WeightedRows, new: WeightedRows, options: ComparisonOptions) -> Comparison:
    rows = pa.concat_tables([old.rows, new.rows])
    groups, first = _groups(rows, rows.column_names)
    zeros = [np.zeros(side.rows.num_rows, np.int64) for side in (old, new)]
    of_old = sum_counts(groups, np.concatenate([_weights(old), zeros[1]]))
    of_new = sum_counts(groups, np.concatenate([zeros[0], _weights(new)]))
    more = of_new - of_old
    differ = np.flatnonzero(more)
    more = more[differ]
    kinds = np.where(more < 0, ONLY_OLD, ONLY_NEW)
    order = np.argsort(kinds, kind="stable")
    differ, kinds, more = differ[order], kinds[order], more[order]
    table = rows.take(pa.array(first[differ])).add_column(0, DIFFERENCE, _words(kinds))
    table = table.append_column(WEIGHT, pa.array(more))
    return Comparison(
        equal=int(shared(of_old, of_new).sum()),
        changed=0,
        only_old=-int(more[more < 0].sum()),
        only_new=int(more[more > 0].sum()),
        examples=table.take(pa.array(chosen_examples(kinds, options.examples))),
        difference=table,
    )


def shared(of_old: np.ndarray, of_new: np.ndarray) -> np.ndarray:
    """The numbers of rows that both sides have; those that both lack, as a changelog may, count too.

    >>> import numpy as np
    >>> shared(np.array([3, -2, 1]), np.array([2, -1, -1]))
    array([2, 1, 0])
    """
    least = np.minimum(np.abs(of_old), np.abs(of_new))
    return np.where((of_old > 0) == (of_new > 0), least, 0)


def _by_keys(old: WeightedRows, new: WeightedRows, options: ComparisonOptions) -> Comparison:
    names, keys = old.rows.column_names, list(options.keys)
    sides = [_net(side, name, keys) for side, name in zip((old, new), SIDES, strict=True)]
    both = pa.concat_tables([side.select(keys) for side in sides])
    groups, first = _groups(both, keys)
    middle = sides[0].num_rows
    places = [
        _places(side, codes, groups.count, name, keys)
        for side, codes, name in zip(sides, (groups.codes[:middle], groups.codes[middle:]), SIDES, strict=True)
    ]
    pairs = np.flatnonzero((places[0] >= 0) & (places[1] >= 0))
    taken = [pa.array(place[pairs]) for place in places]
    kinds = np.where(places[1] < 0, ONLY_OLD, ONLY_NEW)
    kinds[pairs] = EQUAL
    changed_columns = dict[str, int]()
    for name in options.values(names):
        one, other = (flat(side[name]).take(taken_rows) for side, taken_rows in zip(sides, taken, strict=True))
        differ = ~equal_values(one, other, options.tolerance)
        kinds[pairs[differ]] = CHANGED
        if count := int(np.count_nonzero(differ)):
            changed_columns[name] = count
    differing = np.flatnonzero(kinds != EQUAL)
    differing = differing[np.argsort(kinds[differing], kind="stable")]
    columns = {DIFFERENCE: _words(kinds[differing])}
    columns |= {name: both[name].take(pa.array(first[differing])) for name in keys}
    rows = [place[differing] for place in places]
    for name in options.values(names):
        for side, side_name, at in zip(sides, SIDES, rows, strict=True):
            columns[f"{name}_{side_name}"] = side[name].take(pa.array(at, mask=at < 0))
    table = pa.table(columns)
    counts = np.bincount(kinds, minlength=len(KINDS))
    return Comparison(
        equal=int(counts[EQUAL]),
        changed=int(counts[CHANGED]),
        only_old=int(counts[ONLY_OLD]),
        only_new=int(counts[ONLY_NEW]),
        examples=table.take(pa.array(chosen_examples(kinds[differing], options.examples))),
        keys=options.keys,
        changed_columns=changed_columns,
        difference=table,
    )


def _weights(side: WeightedRows) -> np.ndarray:
    return np.ones(side.rows.num_rows, np.int64) if side.weights is None else side.weights


def _groups(rows: pa.Table, names: list[str]) -> tuple[Groups, np.ndarray]:
    return groups_of(*hash_rows_128([Column(rows[name]) for name in names]))


def _net(side: WeightedRows, name: str, keys: list[str]) -> pa.Table:
    """The rows of a side, each once; raises for a row that it has several times or less than not at all."""
    if side.weights is None:
        return side.rows
    low, high = hash_rows_128([Column(column) for column in side.rows.columns])
    _, first, sums = netted(low, high, side.weights)
    wrong = np.flatnonzero((sums < 0) | (sums > 1))
    if len(wrong):
        raise InvalidArgument(not_one_row(name, int(sums[wrong[0]]), _row(side.rows, int(first[wrong[0]]), keys)))
    return side.rows.take(pa.array(first[sums == 1]))


def _places(side: pa.Table, codes: np.ndarray, count: int, name: str, keys: list[str]) -> np.ndarray:
    """The row of each key of a side, -1 if it has none; raises if it has several."""
    counts = np.bincount(codes, minlength=count)
    if counts.size and int(counts.max()) > 1:
        at = int(np.flatnonzero(counts[codes] > 1)[0])
        raise InvalidArgument(not_one_row(name, int(counts[codes[at]]), _row(side, at, keys)))
    out = np.full(count, -1)
    out[codes] = np.arange(len(codes))
    return out


def _row(rows: pa.Table, at: int, names: list[str]) -> object:
    return rows.select(names).slice(at, 1).to_pylist()[0]


def not_one_row(side: str, count: int | None, key: object) -> str:
    """The sentence about a key that does not identify a row.

    >>> not_one_row("old", 2, {"k": 1})
    "old has 2 rows for {'k': 1}: give keys= that no two rows share, or leave keys= out"
    """
    if count is not None and count < 0:
        return f"{side} retracts {key}, which it does not have: give the whole changelog, or leave keys= out"
    of_panes = isinstance(key, Mapping) and any(name in key for name in ("window", "window_start"))
    net = "; for panes of which some are retracted, give result.table(flat=True) or their column diff too"
    told = f"{side} has {count or 'several'} rows for {key}: give keys= that no two rows share, or leave keys= out"
    return f"{told}{net if of_panes else ''}"


def _words(kinds: np.ndarray) -> pa.Array:
    return pa.array(KINDS, pa.string()).take(pa.array(kinds))


__all__ = ["WeightedRows", "chosen_examples", "compared", "in_schema", "not_one_row", "shared"]
