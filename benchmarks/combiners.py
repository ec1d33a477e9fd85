"""Grouped aggregates of a million rows, compared with pandas and pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from datasets import drawn_ids
from harness import Row, memory, pair

import uncombine as uc

TITLE = "Combiners on their own"

ROWS = 1_000_000
BINS = 1_000
GROUPS = (10, 1_000, 100_000)
LINEAR = {"sum": uc.Sum("x"), "count": uc.Count("x"), "mean": uc.Mean("x"), "var": uc.Variance("x")}
EXTREME = {"min": uc.Min("x"), "max": uc.Max("x")}
SORTED = {"median": uc.Median("x"), "nunique": uc.CountDistinct("x")}
SIX = uc.Struct(n=uc.Count("x"), s=uc.Sum("x"), m=uc.Mean("x"), v=uc.Variance("x"), low=uc.Min("x"), high=uc.Max("x"))
MEMORY = (
    uc.Sum("x"),
    uc.Sum("x", exact=True),
    uc.Variance("x"),
    uc.Max("x"),
    uc.Median("x"),
    uc.CountDistinct("x"),
)


def rows() -> Iterator[Row]:
    """All rows of the table."""
    for groups in GROUPS:
        for kind in ("int64", "float64"):
            where = f"{kind}, {groups:,} groups"
            table = data(kind, groups, ROWS)
            yield from _against_pyarrow(where, table)
            yield from _against_pandas(where, table, groups)
            yield from _against_ourselves(where, table, kind)
    for groups in GROUPS:
        yield from _texts(groups)
    yield from _memory()


def data(kind: str, groups: int, count: int) -> pa.Table:
    """Random keys and values, and weights of which one in five is a retraction."""
    rng = np.random.default_rng(groups)
    values = rng.random(count) if kind == "float64" else rng.integers(0, 1_000_000, count)
    weights = np.where(rng.random(count) < 0.2, -1, 1)
    return pa.table({"k": rng.integers(0, groups, count), "x": values, "w": weights})


def aggregated(combiner: uc.Combiner, diff: str | None, table: pa.Table) -> pa.Table:
    """The aggregate that is measured."""
    return uc.aggregate(table, by="k", diff=diff, r=combiner)


def _against_pyarrow(where: str, table: pa.Table) -> Iterator[Row]:
    theirs = {"var": ("x", "variance", pc.VarianceOptions(ddof=1)), "nunique": ("x", "count_distinct")}
    for name, combiner in (LINEAR | EXTREME | SORTED).items():
        if name == "median":  # the median of pyarrow is approximate
            continue
        yield pair(
            f"{name}, {where}",
            partial(aggregated, combiner, None, table),
            partial(_pyarrow, table, theirs.get(name, ("x", name))),
            "pyarrow group_by",
            1.5 if name in ("sum", "count", "min", "max") else None,
        )


def _pyarrow(table: pa.Table, what: tuple[object, ...]) -> pa.Table:
    return table.group_by("k", use_threads=False).aggregate([what])


def _against_pandas(where: str, table: pa.Table, groups: int) -> Iterator[Row]:
    frame = table.to_pandas()
    for name, combiner in (LINEAR | EXTREME | SORTED).items():
        yield pair(
            f"{name}, {where}",
            partial(aggregated, combiner, None, table),
            partial(_pandas, frame, name),
            "pandas groupby",
            1.0 if name not in SORTED or groups == 100_000 else None,
        )


def _pandas(frame: pd.DataFrame, name: str) -> object:
    return frame.groupby("k", sort=False)["x"].agg(name)


def _against_ourselves(where: str, table: pa.Table, kind: str) -> Iterator[Row]:
    def against(what: str, ours: uc.Combiner, other: uc.Combiner, name: str, most: float | None) -> Row:
        run = partial(aggregated, diff=None, table=table)
        return pair(f"{what}, {where}", partial(run, ours), partial(run, other), name, most)

    if kind == "float64":
        for fast in (uc.Sum("x"), uc.Mean("x"), uc.Variance("x")):
            exact = type(fast)("x", exact=True)
            yield against(f"exact {type(fast).__name__}", exact, fast, "the fast form", 4.0)
    yield against("Struct of six", SIX, LINEAR["var"], "the slowest of them", 2.5)
    yield against("Struct of six", SIX, LINEAR["sum"], "Sum alone", 2.5)
    for name, most in (("sum", None), ("max", 4.0), ("median", 2.0)):
        combiner = (LINEAR | EXTREME | SORTED)[name]
        changelog, plain = (partial(aggregated, combiner, diff, table) for diff in ("w", None))
        yield pair(f"{name} of a changelog, {where}", changelog, plain, "without diff=", most)


def _texts(groups: int) -> Iterator[Row]:
    """Keys as people have them, as texts and as dictionaries."""
    texts = drawn_ids(ROWS, groups)
    values = np.random.default_rng(groups).random(ROWS)
    plain, coded = (pa.table({"k": keys, "x": values}) for keys in (texts, texts.dictionary_encode()))
    mine, by_codes = (partial(aggregated, uc.Sum("x"), None, table) for table in (plain, coded))
    theirs = partial(arrow, plain)
    yield pair(f"sum, text keys, {groups:,} groups", mine, theirs, "pyarrow group_by", 1)
    yield pair(f"sum, dictionary keys, {groups:,} groups", by_codes, mine, "text keys", 0.5)


def arrow(table: pa.Table) -> pa.Table:
    """The sum of pyarrow."""
    return table.group_by("k", use_threads=False).aggregate([("x", "sum")])


def _memory() -> Iterator[Row]:
    for combiner in MEMORY:
        for groups in (10, 100_000):
            for diff, columns in ((None, 2), ("w", 3)):
                used = memory(partial(data, "float64", groups), partial(aggregated, combiner, diff), ROWS)
                given = ROWS * 8 * columns
                what = f"memory of {combiner!r}{' with diff=' * bool(diff)}, {groups:,} groups"
                yield Row(what, used / 2**20, given / 2**20, 6.0, "the input's bytes", "MiB")
    counts = uc.Histogram("x", [i / BINS for i in range(BINS + 1)])
    used = memory(partial(data, "float64", 100_000), partial(aggregated, counts, None), ROWS)
    given = 100_000 * BINS * 8
    what = f"memory of Histogram('x') of {BINS:,} bins, 100,000 groups"
    yield Row(what, used / 2**20, given / 2**20, 1.2, "the result's bytes", "MiB")
