"""Sliding windows put together from slices: the cells of any lengths, and no more of them than there are windows."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from reference.byrule.windows import assign
from seeds import seeds

import uncombine as uc
from uncombine.panes import Grouping
from uncombine.panes.grouping.cells import Cells
from uncombine.panes.grouping.compiled import CompiledGrouping
from uncombine.panes.grouping.rows import good_rows
from uncombine.panes.grouping.rows_to_cells import cells_of
from uncombine.windows import MIN_TIME

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.int64(), "x": pa.int64()})


def cells(window: uc.Sliding, times: list[int], keys: list[int]) -> Cells:
    """The cells of rows with these times and keys, whose x is 1, 2, 3 and so on."""
    rows = pa.table([times, keys, range(1, len(times) + 1)], names=SCHEMA.names).cast(SCHEMA)
    compiled = CompiledGrouping.of(Grouping({"s": uc.Sum("x")}, window, by=("k",)), SCHEMA)
    return cells_of(compiled, good_rows(compiled.grouping, rows, MIN_TIME), MIN_TIME)


def drawn(r: random.Random) -> uc.Sliding:
    """Lengths of any scale and ratio, most of which have no divisor in common; up to 300 windows to a time."""
    period = r.randint(1, 10 ** r.randint(1, 14))
    size = r.choice([0, 0, 1, 2, 3, 7, 64, r.randint(1, 300)]) * period + r.choice([0, r.randrange(period)])
    return uc.Sliding(uc.Span(max(size, 1)), uc.Span(period), uc.Span(r.randint(-(10**14), 10**14)))


@pytest.mark.parametrize("seed", seeds(60))
def test_windows_are_those_of_each_row(seed: int) -> None:
    r = random.Random(seed)
    window = drawn(r)
    scale = r.choice([int(window.period), int(window.size), 10**12])
    times = [r.randint(-scale, 2 * scale) for _ in range(r.randint(1, 12))]
    keys = [r.randrange(2) for _ in times]
    found = cells(window, times, keys)
    expected: Counter[tuple[int, int, int]] = Counter()
    of_row: list[tuple[int, tuple[int, int, int]]] = []
    for row, (time, key) in enumerate(zip(times, keys, strict=True)):
        for start, end in assign(window, time, {}):
            expected[key, start, end] += row + 1
            of_row.append((row, (key, start, end)))
    names = list(zip(found.keys[0].to_pylist(), found.start.tolist(), found.end.tolist(), strict=True))
    sums = uc.Sum("x").bind(SCHEMA).extract(found.acc).to_pylist()
    assert dict(zip(names, sums, strict=True)) == expected
    assert len(names) == len(expected)
    assert found.unassigned == sum(not assign(window, time, {}) for time in times)
    pairs = zip(*(side.tolist() for side in found.of_row()), strict=True)
    assert sorted((row, names[cell]) for row, cell in pairs) == sorted(of_row)


@pytest.mark.parametrize(
    ("size", "period", "windows"),
    [
        ("60 seconds", "0.033333 seconds", 1801),
        (uc.Span(10**14), uc.Span(3 * 10**13 + 7), 4),
        (uc.Span(10**14 + 1), uc.Span(10**13), 11),
        (uc.Span(10**14 - 1), uc.Span(10**14), 1),
        (uc.Span(2), uc.Span(10**14 + 1), 1),
    ],
)
def test_work_follows_the_windows_that_exist(
    size: uc.Span, period: uc.Span, windows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of lengths without a common divisor, every microsecond would be a slice of its own."""
    merged: list[int] = []
    summed = Cells.summed

    def counted(self: Cells, *given: object, **more: object) -> Cells:
        merged.append(len(self))
        return summed(self, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Cells, "summed", counted)
    found = cells(uc.Sliding(size, period), [0], [7])
    assert len(found) == windows
    assert max(merged, default=0) <= 2 * windows
    assert sum(merged) <= 5 * windows
    assert len(merged) <= 2 * int(np.log2(windows)) + 2
