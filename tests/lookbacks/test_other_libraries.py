"""Rolling aggregates against those of Polars and pandas, where they mean the same."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from seeds import seeds

import uncombine as uc

COMBINERS = {
    "n": uc.Count(),
    "total": uc.Sum("x"),
    "mean": uc.Mean("y"),
    "best": uc.Max("y"),
    "least": uc.Min("x"),
    "middle": uc.Median("y"),
    "different": uc.CountDistinct("x"),
    "deviation": uc.StdDev("y"),
}
POLARS = {
    "n": pl.len(),
    "total": pl.col("x").sum(),
    "mean": pl.col("y").mean(),
    "best": pl.col("y").max(),
    "least": pl.col("x").min(),
    "middle": pl.col("y").median(),
    "different": pl.col("x").n_unique(),
    "deviation": pl.col("y").std(),
}


def table(seed: int, rows: int = 300) -> pa.Table:
    draw = random.Random(seed)
    times = sorted(1_700_000_000_000_000 + draw.randrange(200) * 500_000 for _ in range(rows))
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us")),
            "k": [draw.choice("abc") for _ in range(rows)],
            "x": [draw.randrange(5) for _ in range(rows)],
            "y": [draw.random() for _ in range(rows)],
        }
    )


def same(found: dict[str, list[Any]], wanted: dict[str, list[Any]]) -> None:
    for name, values in wanted.items():
        mine, yours = (np.array([math.nan if v is None else v for v in side], float) for side in (found[name], values))
        np.testing.assert_allclose(mine, yours, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("closed", ["right", "left", "both", "neither"])
@pytest.mark.parametrize("seed", seeds(8))
def test_polars(seed: int, closed: Any) -> None:
    source = table(seed)
    theirs = pl.from_arrow(source)
    assert isinstance(theirs, pl.DataFrame)
    rolled = theirs.rolling("ts", period="7s", closed={"neither": "none"}.get(closed, closed), group_by="k").agg(
        **POLARS
    )
    ours = pl.DataFrame(uc.rolling(theirs, "7 seconds", by="k", closed=closed, **COMBINERS))
    for key in "abc":
        mine = ours.filter(pl.col("k") == key).to_dict(as_series=False)
        yours = rolled.filter(pl.col("k") == key).to_dict(as_series=False)
        # Of no rows, the sum is null here, and 0 there.
        yours["total"] = [t if n else None for t, n in zip(yours["total"], yours["n"], strict=True)]
        same(mine, {name: yours[name] for name in POLARS})


@pytest.mark.parametrize("closed", ["right", "left", "both", "neither"])
@pytest.mark.parametrize("seed", seeds(8))
def test_pandas(seed: int, closed: Any) -> None:
    source = table(seed)
    frame = source.to_pandas().drop_duplicates("ts")  # rows of one time do not see each other in pandas
    rolled = frame.set_index("ts")[["x", "y"]].rolling("7s", closed=closed)
    ours = uc.rolling(frame, "7 seconds", closed=closed, **COMBINERS).to_pandas()
    pairs = {"total": rolled["x"].sum(), "mean": rolled["y"].mean(), "best": rolled["y"].max()}
    pairs |= {"middle": rolled["y"].median(), "deviation": rolled["y"].std()}
    for name, wanted in pairs.items():
        pd.testing.assert_series_equal(
            ours[name], wanted.reset_index(drop=True), check_names=False, check_dtype=False, rtol=1e-9
        )


@pytest.mark.parametrize("seed", seeds(4))
def test_pandas_by_rows(seed: int) -> None:
    frame = table(seed).to_pandas()
    rolled = frame["y"].rolling(5)
    ours = uc.rolling(frame, rows=5, min_rows=5, total=uc.Sum("y"), least=uc.Min("y")).to_pandas()
    for name, wanted in {"total": rolled.sum(), "least": rolled.min()}.items():
        pd.testing.assert_series_equal(ours[name], wanted, check_names=False, rtol=1e-9)
