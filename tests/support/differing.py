"""The rows of two runs of a flow, compared."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from uncombine.flows.left_out import LEFT_OUT


def cut_at_random(tables: Mapping[str, pa.Table], r: random.Random, most: int) -> Iterator[dict[str, pa.Table]]:
    """The rows of all sources, those of one to so many instants at a time."""
    seen = sorted({at for table in tables.values() for at in table["seen"].cast(pa.int64()).to_pylist()})
    while seen:
        some, seen = seen[: (count := r.randrange(1, most + 1))], seen[count:]
        yield {name: between(table, some[0], some[-1]) for name, table in tables.items()}


def between(table: pa.Table, first: int, last: int) -> pa.Table:
    seen = table["seen"].cast(pa.int64())
    return table.filter(pc.and_(pc.greater_equal(seen, first), pc.less_equal(seen, last)))


def differs(who: str, got: pa.Table, want: Any, names: tuple[str, ...]) -> str | None:
    """The difference of rows, and of those left out if they are beside them, from the result of a run here."""
    if LEFT_OUT in got.column_names:
        without = got[LEFT_OUT].is_null()
        rows = [repr(row) for row in got.filter(pc.invert(without))[LEFT_OUT].to_pylist()]
        here, there = Counter(rows), Counter(map(repr, want.left_out.drop_columns(["step"]).to_pylist()))
        if here != there:
            return f"{who} left out: only here {here - there}, only in this process {there - here}"
        got = got.filter(without)
    columns = [name for name in want.panes.column_names if name != "step"]
    one, other = (table.select(columns).to_pylist() for table in (got, want.panes))
    if {"map remembered", "flat_map"} & {*names}:
        # Results of two rows can be equal. In a step they are netted within a shard, which may have both rows or one.
        one, other = left(one), left(other)
    else:
        one, other = Counter(map(repr, one)), Counter(map(repr, other))
    return None if one == other else f"{who}: only here {one - other}, only in this process {other - one}"


def left(rows: list[dict[str, Any]]) -> Counter[str]:
    """Rows that are left, each with the number of its copies."""
    out: Counter[str] = Counter()
    for row in rows:
        out[repr({name: value for name, value in row.items() if name != "diff"})] += row["diff"]
    return Counter({row: times for row, times in out.items() if times})
