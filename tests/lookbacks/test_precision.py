"""Values that have left leave no error: the issues of pandas about rolling windows, and exact sums to the last bit."""

from __future__ import annotations

import math
import random
import statistics
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import uncombine as uc

EXACT = {
    "total": uc.Sum("x", exact=True),
    "mean": uc.Mean("x", exact=True),
    "deviation": uc.StdDev("x", exact=True),
}
FAST = {"total": uc.Sum("x"), "mean": uc.Mean("x"), "deviation": uc.StdDev("x")}

_rng = np.random.default_rng(3)
_wave = np.sin(np.linspace(0, 9 * np.pi, 700)) * np.exp(-np.linspace(0, 9 * np.pi, 700))
CASES: dict[int, tuple[list[float], int]] = {
    19308: ([1e15, -1e15, 3.0, 1e-3, 2e-3, 3e-3], 3),
    28244: ([9.54e08, 6.225e-01, math.nan, 0, 1.14, 0], 5),
    38488: ([*(_rng.random(10) * 1e6), *[0.0] * 10], 6),
    42064: ([1000.0, *[0.0] * 60], 10),
    46049: ([1e16, 1.0, 1.0, 1.0, 1e-16, 1e-16, 1e-16], 3),
    48950: ([100_000.0, 0.1, 0.2, 0.3, 0.4], 3),
    53289: (list((_wave - _wave.min()) / (_wave - _wave.min()).max()), 50),
    54518: ([1.2e3, 1.3e17, 1.5e17, 1.995e3, 1.990e3], 2),
}
"""Cases in the spirit of these issues of pandas, and the number of rows of the window."""


@pytest.mark.parametrize("issue", CASES)
def test_values_that_left_a_window(issue: int) -> None:
    values, rows = CASES[issue]
    table = pa.table({"ts": pa.array(range(len(values)), pa.timestamp("s")), "x": pa.array(values, from_pandas=True)})
    exact = uc.rolling(table, rows=rows, **EXACT).to_pylist()
    by_time = uc.rolling(table, f"{rows} seconds", **EXACT).to_pylist()
    fast = uc.rolling(table, rows=rows, **FAST).to_pylist()
    for i, row in enumerate(exact):
        seen = [float(x) for x in values[max(i + 1 - rows, 0) : i + 1] if not math.isnan(x)]
        assert row["total"] == by_time[i]["total"] == math.fsum(seen)
        assert row["mean"] == by_time[i]["mean"] == float(sum(map(Fraction, seen)) / len(seen))
        if len(seen) > 1:
            wanted = statistics.stdev(map(Fraction, seen))
            assert row["deviation"] == pytest.approx(float(wanted), rel=1e-15, abs=0)
            assert fast[i]["deviation"] == pytest.approx(float(wanted), rel=1e-9, abs=1e-12 * max(map(abs, seen)))
        bound = len(seen) * 2.0**-53 * math.fsum(map(abs, seen))
        assert abs(fast[i]["total"] - math.fsum(seen)) <= bound


@pytest.mark.parametrize("spread", [2, 300])
def test_exact_sums_to_the_last_bit(spread: int) -> None:
    """Also where the exponents lie so far apart that digits are not added place by place."""
    draw = random.Random(spread)
    values = [draw.choice([-1, 1]) * draw.random() * 10.0 ** draw.randrange(-spread, spread) for _ in range(400)]
    table = pa.table({"ts": pa.array(range(400), pa.timestamp("s")), "x": values})
    for rows in (1, 7, 100):
        found = uc.rolling(table, rows=rows, total=uc.Sum("x", exact=True))["total"].to_pylist()
        assert found == [math.fsum(values[max(i + 1 - rows, 0) : i + 1]) for i in range(400)]


def test_infinities_and_nan_leave_no_trace() -> None:
    values = [1.0, math.inf, 2.0, -math.inf, math.nan, 3.0, 1e308, 1e308, 4.0, 5.0]
    table = pa.table({"ts": pa.array(range(10), pa.timestamp("s")), "x": pa.array(values, from_pandas=False)})
    for exact in (False, True):
        found = uc.rolling(table, rows=2, total=uc.Sum("x", exact=exact))["total"].to_pylist()
        assert repr(found) == repr(
            [1.0, math.inf, math.inf, -math.inf, math.nan, math.nan, 1e308, math.inf, 1e308, 9.0]
        )
