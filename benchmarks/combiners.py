"""Grouped aggregates of a million rows against pandas and pyarrow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow as pa
from harness import Row, pair, peak_memory

import uncombine as uc

ROWS = 1_000_000
GROUPS = (10, 1_000, 100_000)

MEMORY = """
import numpy as np, pyarrow as pa, uncombine as uc
rng = np.random.default_rng(0)
small = pa.table({{"k": np.arange(100), "x": np.arange(100) * 0.5}})
uc.aggregate(small, by="k", r={combiner})
t = pa.table({{"k": rng.integers(0, {groups}, {rows}), "x": rng.random({rows})}})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
uc.aggregate(t, by="k", r={combiner})
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def rows() -> Iterator[Row]:
    """All rows of the table."""
    for groups in GROUPS:
        rng = np.random.default_rng(groups)
        keys = rng.integers(0, groups, ROWS)
        columns = {"int64": rng.integers(0, 1_000_000, ROWS), "float64": rng.random(ROWS)}
        for kind, values in columns.items():
            arrow = pa.table({"k": keys, "x": values})
            frame = pd.DataFrame({"k": keys, "x": values})
            yield from _against_others(f"{kind}, {groups:,} groups", arrow, frame)
            yield from _against_ourselves(f"{kind}, {groups:,} groups", arrow, kind)
    yield from _memory()


def _against_others(where: str, arrow: pa.Table, frame: pd.DataFrame) -> Iterator[Row]:
    combiners = {"sum": uc.Sum("x"), "count": uc.Count("x"), "min": uc.Min("x"), "max": uc.Max("x")}
    for name, combiner in combiners.items():
        yield pair(
            f"{name}, {where}",
            lambda c=combiner: uc.aggregate(arrow, by="k", r=c),  # type: ignore[misc]
            lambda n=name: arrow.group_by("k", use_threads=False).aggregate([("x", n)]),  # type: ignore[misc]
            "pyarrow group_by",
            1.5,
        )
    combiners |= {"mean": uc.Mean("x"), "var": uc.Variance("x")}
    big = frame["k"].max() > 10_000
    combiners |= {"median": uc.Median("x"), "nunique": uc.CountDistinct("x")}
    for name, combiner in combiners.items():
        sorts = name in ("median", "nunique")
        yield pair(
            f"{name}, {where}",
            lambda c=combiner: uc.aggregate(arrow, by="k", r=c),  # type: ignore[misc]
            lambda n=name: frame.groupby("k", sort=False)["x"].agg(n),  # type: ignore[misc]
            "pandas groupby",
            1.0 if big or not sorts else None,
        )


def _against_ourselves(where: str, arrow: pa.Table, kind: str) -> Iterator[Row]:
    def run(combiner: uc.Combiner) -> pa.Table:
        return uc.aggregate(arrow, by="k", r=combiner)

    if kind == "float64":
        for fast, exact in (
            (uc.Sum("x"), uc.Sum("x", exact=True)),
            (uc.Mean("x"), uc.Mean("x", exact=True)),
            (uc.Variance("x"), uc.Variance("x", exact=True)),
        ):
            name = type(fast).__name__
            yield pair(f"{name} exact, {where}", lambda e=exact: run(e), lambda f=fast: run(f), "the fast form", 4.0)  # type: ignore[misc]
    six = uc.Struct(
        n=uc.Count("x"), s=uc.Sum("x"), m=uc.Mean("x"), low=uc.Min("x"), high=uc.Max("x"), v=uc.Variance("x")
    )
    yield pair(f"Struct of six, {where}", lambda: run(six), lambda: run(uc.Variance("x")), "Variance alone", 2.5)


def _memory() -> Iterator[Row]:
    given = ROWS * 16 / 2**20
    for name in (
        'uc.Sum("x")',
        'uc.Sum("x", exact=True)',
        'uc.Variance("x")',
        'uc.Median("x")',
        'uc.CountDistinct("x")',
    ):
        for groups in (10, 100_000):
            used = peak_memory(MEMORY.format(combiner=name, groups=groups, rows=ROWS)) / 2**20
            what = f"peak memory of {name.removeprefix('uc.')}, {groups:,} groups"
            yield Row(what, used, given, 6.0, "the input's bytes", "MiB")
