"""Random flows of a replay over the rows of `row_steps`, against a local run of the same rows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from bounded import bounded_flow, cut
from row_steps import draw_rows, script_of

import uncombine as uc

STRATEGIES = (uc.BoundedLag("2 minutes"), uc.BoundedLag("30 seconds"), uc.Monotonic())


def drawn(
    seed: int, draw_flow: Callable[[random.Random, list[uc.Flow]], uc.Flow], counts: Sequence[int]
) -> tuple[uc.Flow, dict[str, pa.Table]]:
    """A random flow over one of so many sources, and the rows of each."""
    r = random.Random(seed)
    weighted = r.random() < 0.5
    tables = {name: draw_rows(r, weighted, place) for place, name in enumerate("abc"[: r.choice(counts)])}
    settings: dict[str, Any] = {"processing_time": "seen", "replay": True, "close_at_end": True}
    settings |= {"diff": "w" if weighted else None, "shards": r.choice([1, 2, 3])}
    sources = [
        bounded_flow(cut(table, 3, seed), "ts", r.choice(STRATEGIES), seed, name=name, **settings)
        for name, table in tables.items()
    ]
    if not weighted:
        sources = [source.map(lambda table: table.drop_columns(["w"])) for source in sources]
    return draw_flow(r, sources), tables


def replayed(flow: uc.Flow) -> Counter[str]:
    return counted(flow.df.toArrow())


def run_locally(flow: uc.Flow, tables: dict[str, pa.Table]) -> Counter[str]:
    return counted(flow.run(script_of(tables)).drop_columns(["step"]))


def counted(rows: Any) -> Counter[str]:
    """The rows, of which one of weight 2 is two: equal rows of two shards are not netted."""
    out: Counter[str] = Counter()
    for row in rows.to_pylist():
        weight = row.get("diff") or 1
        out[repr({**row, "diff": weight > 0} if "diff" in row else row)] += abs(weight)
    return out
