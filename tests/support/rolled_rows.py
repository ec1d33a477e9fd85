"""The rows that a row sees of others, and its results over them, in plain Python."""

from __future__ import annotations

from statistics import median
from typing import Any

import uncombine as uc
from uncombine.lookbacks.lookback import LookBack

COMBINERS = {
    "n": uc.Count(),
    "total": uc.Sum("x"),
    "best": uc.Max("x"),
    "middle": uc.Median("x"),
    "kinds": uc.CountDistinct("x"),
}
Row = tuple[int, Any, float]


def results(seen: list[Row], min_rows: int) -> tuple[Any, ...]:
    if len(seen) < min_rows > 1:
        return (None,) * len(COMBINERS)
    xs = [x for _, _, x in seen]
    return (len(xs), sum(xs), max(xs), median(xs), len(set(xs))) if xs else (0, None, None, None, 0)


def sees(lookback: LookBack, row: Row, other: Row) -> bool:
    after_start = lookback.ever or other[0] >= first(lookback, row[0])
    return other[1] == row[1] and after_start and (other[0] < row[0] or (other[0] == row[0] and lookback.sees_ties))


def first(lookback: LookBack, time: int) -> int:
    start = time - lookback.micros + lookback.first_open
    return start - start % lookback.coarse
