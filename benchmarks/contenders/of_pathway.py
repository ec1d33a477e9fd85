"""Pathway, over CSV files, which it reads without a licence key."""

from __future__ import annotations

from functools import partial
from typing import Any

import pathway as pw
from contender import GAP, MINUTE, Task, serve

WINDOWS = {
    "windows": pw.temporal.tumbling(duration=MINUTE),
    "sessions": pw.temporal.session(max_gap=GAP),
}


class Rows(pw.Schema):
    k: int
    ts: int
    v: int


def run(window: Any, folder: str) -> dict[Any, int]:
    """The rest of the changes that a subscriber sees: Pathway reads the files one after the other."""
    pw.internals.parse_graph.G.clear()
    rows = pw.io.csv.read(folder, schema=Rows, mode="static")
    grouped = rows.windowby(rows.ts, window=window, instance=rows.k)
    made = grouped.reduce(k=pw.this._pw_instance, s=pw.reducers.sum(pw.this.v), c=pw.reducers.count())
    sums: dict[Any, int] = {}

    def changed(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        if is_addition:
            sums[key] = row["s"]
        elif sums.get(key) == row["s"]:
            del sums[key]

    pw.io.subscribe(made, on_change=changed)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return sums


def facts(sums: dict[Any, int]) -> tuple[int, float, float]:
    return len(sums), sum(sums.values()), max(sums.values())


if __name__ == "__main__":
    serve("pathway", {f"{name} of CSV": Task(partial(run, window), facts) for name, window in WINDOWS.items()})
