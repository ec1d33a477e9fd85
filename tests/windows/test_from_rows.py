"""Windows that are computed from columns of rows: sessions with a gap of each row, and functions that see columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.errors import TypeMismatch, UnknownColumn
from uncombine.windows import MAX_TIME
from uncombine.windows.from_rows import lengths

NOON = pd.Timestamp("2016-01-20T12:00:00Z")


def rows(*seconds_and_gaps: tuple[int, int | None], unit: str = "s") -> pa.Table:
    seconds, gaps = zip(*seconds_and_gaps, strict=True)
    times = pa.array([NOON + pd.Timedelta(seconds=s) for s in seconds], pa.timestamp("us", "UTC"))
    gap = pa.array(gaps, pa.int64()).cast(pa.duration("s")).cast(pa.duration(unit))
    return pa.table({"ts": times, "gap": gap, "x": pa.array(range(len(seconds)), pa.int64())})


def spans(panes: Any) -> list[tuple[float, float, int]]:
    def seconds(time: Any) -> float:
        return (pd.Timestamp(time) - NOON).total_seconds()

    found = ((row["window"], row["n"]) for row in panes.to_pylist())
    return sorted((seconds(window["start"]), seconds(window["end"]), n) for window, n in found)


def counted(table: pa.Table, window: Any) -> Any:
    return uc.flow(table).window(window).combine(n=uc.Count()).run()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_each_row_brings_its_gap(unit: str) -> None:
    table = rows((0, 10), (8, 1), (9, 100), (200, 5), (204, 1), (206, 3), unit=unit)
    assert spans(counted(table, uc.Sessions(uc.col("gap")))) == [(0, 109, 3), (200, 205, 2), (206, 209, 1)]


def test_a_long_gap_covers_later_short_ones() -> None:
    table = rows((0, 60), (10, 1), (50, 1), (70, 1))
    assert spans(counted(table, uc.Sessions(uc.col("gap")))) == [(0, 60, 3), (70, 71, 1)]


def test_rows_without_a_gap_are_unassigned() -> None:
    found = counted(rows((0, 10), (1, None), (2, 0), (3, -5)), uc.Sessions(uc.col("gap")))
    assert spans(found) == [(0, 10, 1)]
    assert found.counts()["unassigned"] == 3


def test_an_equal_gap_for_all_rows_is_a_fixed_one() -> None:
    rng = np.random.default_rng(5)
    seconds = rng.integers(0, 500, 80).tolist()
    table = rows(*((int(s), 7) for s in seconds))
    assert spans(counted(table, uc.Sessions(uc.col("gap")))) == spans(counted(table, uc.Sessions("7 seconds")))


def test_lengths_reach_the_end_of_time() -> None:
    far = pa.table({"ts": pa.array([0], pa.timestamp("us")), "gap": pa.array([2**62], pa.duration("s"))})
    assert lengths(uc.col("gap"), far).tolist() == [2**63 - 1 - (2**63 - 1) % 1_000_000]
    assigned = uc.Sessions(uc.col("gap")).assign(np.array([10**18]), rows=far)
    assert assigned.end.tolist() == [MAX_TIME]


def test_the_gap_is_a_length_of_time() -> None:
    source = uc.flow(rows((0, 1)))
    with pytest.raises(TypeMismatch, match="needs a length of time for each row, but col\\('x'\\) is int64"):
        source.window(uc.Sessions(uc.col("x"))).combine(n=uc.Count())
    with pytest.raises(UnknownColumn, match="gop"):
        source.window(uc.Sessions(uc.col("gop"))).combine(n=uc.Count())


def test_a_retraction_with_the_gap_of_its_row_splits_a_session() -> None:
    table = rows((0, 5), (4, 10), (13, 5))
    source = uc.flow(table.append_column("d", pa.array([1, 1, 1])).schema, diff="d")
    flow = source.window(uc.Sessions(uc.col("gap")), uc.Repeatedly(uc.AfterCount(1))).combine(n=uc.Count())
    signed = [table.append_column("d", pa.array([1, 1, 1]))]
    signed.append(table.slice(1, 1).append_column("d", pa.array([-1])))
    script = [uc.Elements(some.to_pylist(), at=f"2016-01-20T13:00:0{i}Z") for i, some in enumerate(signed)]
    assert spans(flow.run(script).table()) == [(0, 5, 1), (13, 18, 1)]


def auction(times: np.ndarray, columns: pa.Table) -> tuple[None, np.ndarray, np.ndarray]:
    assert columns.column_names == ["gap"]
    return None, times, times + columns["gap"].combine_chunks().view(pa.int64()).to_numpy() * 1_000_000


def test_a_function_sees_the_columns_that_it_asks_for() -> None:
    window = uc.Custom(auction, columns=["gap"])
    assert spans(counted(rows((0, 10), (5, 10), (8, 3)), window)) == [(0, 10, 1), (5, 15, 1), (8, 11, 1)]
    merged = uc.Custom(auction, "overlap", columns="gap")
    assert spans(counted(rows((0, 10), (5, 10), (15, 3)), merged)) == [(0, 15, 2), (15, 18, 1)]


def test_columns_are_named() -> None:
    source = uc.flow(rows((0, 1)))
    with pytest.raises(UnknownColumn, match="minutes"):
        source.window(uc.Custom(auction, columns=["minutes"])).combine(n=uc.Count())
    with pytest.raises(TypeMismatch, match="columns must be names"):
        uc.Custom(auction, columns=[3])  # type: ignore[list-item]


def test_the_source_brings_the_windows() -> None:
    kind = pa.struct([("start", pa.timestamp("us", "UTC")), ("end", pa.timestamp("us", "UTC"))])
    window = [{"start": NOON, "end": NOON + pd.Timedelta(seconds=s)} for s in (5, 5, 9)]
    table = rows((0, 1), (1, 1), (2, 1)).append_column("window", pa.array(window, kind))
    assert spans(counted(table, uc.Inherit())) == [(0, 5, 2), (0, 9, 1)]
