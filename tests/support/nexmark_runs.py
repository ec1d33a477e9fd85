"""Queries of NEXMark: scripts of their events, and what is left of a changelog beside what pandas finds."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import uncombine as uc
from uncombine.flows.flow_steps import leaves_of

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from nexmark.events import SCHEMAS, Events
from nexmark.expected import expected
from nexmark.queries import Site

LAG = uc.BoundedLag("4 seconds")


def site(made: Events) -> Site:
    """Flows over the rows of scripts."""
    given = {}
    for name, schema in SCHEMAS.items():
        known = schema if made.changes else schema.remove(schema.get_field_index("diff"))
        given[name] = uc.flow(known, name=name, watermark=LAG, diff="diff" if made.changes else None)
    return Site(given, timedelta(microseconds=made.longest), made.changes)


def script(made: Events, count: int, flow: uc.Flow, parts: int) -> list[Any]:
    """The events of the sources of a flow, in so many bundles of each."""
    names = {settings.name for _, settings in leaves_of(flow)}
    tables = {name: table for name, table in made.tables(0, count).items() if name in names}
    entries: list[Any] = []
    for part in range(parts):
        for name, table in tables.items():
            known = table if made.changes else table.drop_columns("diff")
            first, end = (i * table.num_rows // parts for i in (part, part + 1))
            entries.append(uc.Elements(known.slice(first, end - first), input=name))
    return entries + [uc.Watermark(None, input=name) for name in tables]


def fault(query: str, panes: pa.Table, tables: dict[str, pa.Table]) -> str | None:
    """The first thing that is wrong in the rows left of a query's result; None if nothing is."""
    want = expected(query, tables)
    if "start" in want.columns and "window" in panes.column_names:
        panes = panes.append_column("start", pc.struct_field(panes["window"], "start"))
    got: Counter[tuple[Any, ...]] = Counter()
    weights = panes["diff"].to_pylist() if "diff" in panes.column_names else [1] * panes.num_rows
    for row, weight in zip(_rows(panes.select(list(want.columns))), weights, strict=True):
        got[row] += weight
    expect = Counter(_rows(pa.Table.from_pandas(want, preserve_index=False)))
    got = Counter({row: weight for row, weight in got.items() if weight})
    return None if got == expect else f"{query}: too much {got - expect}, missing {expect - got}"


def _rows(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    return (tuple(row.values()) for row in table.to_pylist())
