"""Random rows of keys, and what is left of the panes of runs over them, for tests that change a state."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from row_steps import SECOND, START

from uncombine.flows.result import Result


def drawn(r: random.Random, count: int) -> list[dict[str, Any]]:
    return [
        {"ts": START + r.randint(0, 300) * SECOND, "k": r.choice("abc"), "id": r.randint(1, 3), "x": r.randint(0, 9)}
        for _ in range(count)
    ]


def left(*results: Result) -> Counter[str]:
    rows: Counter[str] = Counter()
    for result in results:
        for row in result.to_arrow().to_pylist():
            about = {name: row[name] for name in row if name not in ("step", "diff", "event_time", "pane")}
            rows[repr(about)] += row["diff"]
    return Counter({row: count for row, count in rows.items() if count})
