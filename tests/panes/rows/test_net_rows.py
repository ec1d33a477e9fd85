"""Net rows are those of plain Python."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest
from seeds import seeds

from uncombine.panes.rows.net_rows import net_rows


@pytest.mark.parametrize("seed", seeds(20, 500))
def test_net_rows_are_those_of_plain_python(seed: int) -> None:
    r = random.Random(seed)
    rows = [
        {"k": r.choice(["a", "b", None]), "x": r.choice([1.5, float("nan"), None]), "d": r.choice([-2, -1, 1, 1, 2])}
        for _ in range(r.randrange(30))
    ]
    columns = r.choice([["k", "x"], ["k"], []])
    table = pa.Table.from_pylist(rows, pa.schema({"k": pa.string(), "x": pa.float64(), "d": pa.int64()}))
    left: Counter[str] = Counter()
    for row in rows:
        left[repr([row[name] for name in columns])] += row["d"]
    out = net_rows(table.select([*columns, "d"]), "d").to_pylist()
    found = {repr([row[name] for name in columns]): row["d"] for row in out}
    assert len(found) == len(out)
    assert found == {row: count for row, count in left.items() if count}
