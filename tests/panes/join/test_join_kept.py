"""The join of rows that are kept for a time: random changelogs against plain Python, tables against pandas, flows."""

from __future__ import annotations

from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from join_flows import joined, none_of
from join_scripts import Case, compare
from opened import opened
from seeds import seeds
from table_scripts import KEPT, KeptOracle, random_kept

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.panes.join.kept import KeptJoin
from uncombine.panes.join.operator import JoinOperator


def run(case: Case, random: Random, steps: int, stored: bool) -> int:
    """Compare each step with the oracle; gives the number of rows of output."""
    operator = JoinOperator(case.join, case.schema("left"), case.schema("right"))
    corrects = case.join.left_diff is not None or not (case.join.final or case.join.how == "inner")
    return compare(KeptOracle(case), operator, random, steps, stored, corrects)


@pytest.mark.parametrize(("how", "unmatched"), KEPT, ids=lambda given: str(given))
def test_rule_101_random_scripts(how: str, unmatched: str) -> None:
    random, rows = Random(f"{how} {unmatched}"), 0
    for i in range(8):
        case = random_kept(random, how, unmatched, diff=i % 4 > 0)
        rows += run(case, random, steps=14, stored=i % 3 == 0)
    assert rows > 10


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100))
def test_many_random_scripts(seed: int) -> None:
    random = Random(seed)
    for _ in range(20):
        case = random_kept(random, *random.choice(KEPT), random.random() < 0.7)
        run(case, random, steps=random.choice([6, 30]), stored=random.random() < 0.3)


TIME = pa.timestamp("us", "UTC")
ROWS = pa.schema({"ts": TIME, "k": pa.string(), "x": pa.int64()})


def two(**options: Any) -> tuple[uc.Flow, uc.Flow]:
    left, right = (opened(ROWS.append(pa.field("w", pa.int64())), name=name, diff="w") for name in ("left", "right"))
    return left, right


def rows(name: str, *some: tuple[int, str, int, int]) -> uc.Elements:
    return uc.Elements([dict(zip(("ts", "k", "x", "w"), row, strict=True)) for row in some], input=name)


def marks(time: int) -> list[uc.Watermark]:
    return [uc.Watermark(time, input=name) for name in ("left", "right")]


def shown(result: uc.Result) -> list[tuple[Any, ...]]:
    return [(row["step"], row["x_left"], row["x_right"], row["diff"]) for row in result.to_pylist()]


def test_rule_101_a_change_of_the_table_corrects_the_rows_that_are_there() -> None:
    left, right = two()
    both = left.join(right, on="k", how="left", keep=("10 us", None))
    script = [
        *(rows("left", (5, "a", 1, 1), (9, "b", 2, 1)), rows("right", (1, "a", 10, 1)), *marks(16)),
        rows("left", (12, "a", 3, 1), (5, "a", 4, 1)),
        rows("right", (1, "a", 10, -1), (3, "a", 20, 1)),
    ]
    result = both.run(script)
    assert sorted(shown(result), key=repr) == sorted(
        [
            *((0, 1, None, 1), (0, 2, None, 1), (1, 1, None, -1), (1, 1, 10, 1)),
            (4, 3, 10, 1),  # the row of 5 has left, and what was given of it stays
            *((5, 3, 10, -1), (5, 3, 20, 1)),
        ],
        key=repr,
    )
    out = result.left_out.to_pylist()
    assert [(row["side"], row["why"], row["row"]["x"]) for row in out] == [("left", "late", 4)]
    assert result.output_watermarks[-1] == 16 - 10
    assert "state: left rows until the watermark passes their time plus 10 microseconds; right rows for ever" in (
        both.explain().replace("\n", " ")
    )


def test_rule_101_sides_that_stay_for_ever_hold_the_watermark() -> None:
    left, right = two()
    counts = left.join(right, on="k", keep=None).window("1 second").combine(n=uc.Count())
    script = [rows("left", (5, "a", 1, 1)), rows("right", (6, "a", 2, 1)), *marks(10**9)]
    assert len(counts.run(script)) == 0
    assert counts.run([*script, uc.Watermark(None)])["n"].to_pylist() == [1]


@pytest.mark.parametrize("seed", seeds(10, 500))
def test_tables_are_joined_whole_as_pandas_joins_them(seed: int) -> None:
    """A bounded flow has one bundle, in which nothing leaves."""
    r = Random(seed)
    how, unmatched = r.choice(KEPT)
    frames = [
        pd.DataFrame(
            [(t, r.choice(["a", "b", "c", None]), r.randrange(5), 1) for t in range(r.randrange(1, 9))],
            columns=["t", "k", "x", "w"],
        ).astype({"k": object, "t": object, "x": object})
        for _ in range(2)
    ]
    tables = [
        pa.table(
            {"ts": pa.array(f.t.tolist()).cast(TIME), "k": pa.array(map(none_of, f.k), pa.string()), "x": f.x.tolist()}
        )
        for f in frames
    ]
    keep = {"left": ("1 us", None), "semi": ("1 us", None), "anti": ("1 us", None), "right": (None, "1 us")}
    flows = [uc.flow(table, name=name) for name, table in zip("lr", tables, strict=True)]
    options: dict[str, Any] = {
        "how": how,
        "unmatched": unmatched,
        "keep": keep.get(how) or {"left": None, "right": None},
    }
    want = joined(frames[0], frames[1], how, None, None, ["k"])
    got = dict.fromkeys(want, 0)
    for row in flows[0].join(flows[1], on="k", **options).run().to_pylist():
        left = ("x", "ts") if how in ("semi", "anti") else ("x_left", "ts_left")
        values = [row["k"], *(row.get(name) for name in (*left, "x_right", "ts_right"))]
        got[tuple(uc.timestamp(v) if hasattr(v, "year") else v for v in values)] += row["diff"]
    assert got == dict(want)


def test_check_flow_works_through_a_kept_join() -> None:
    left, right = (uc.flow(ROWS, name=name, watermark="1 minute") for name in ("left", "right"))
    both = left.join(right, on="k", how="left", keep=None)

    def expected(frames: dict[str, pd.DataFrame]) -> pd.DataFrame:
        one, other = frames["left"], frames["right"].dropna(subset="k")
        return one.merge(other, on="k", how="left", suffixes=("_left", "_right"))

    uc.testing.check_flow(both, expected, examples=20)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"keep": "1 h", "within": ("0 s", "1 s")}, "and not both: leave one of them out"),
        ({"keep": "-1 h"}, "keep= is '-1 hour', and it cannot be negative"),
        ({"keep": ("1 h",)}, "keep= takes one length for both sides or a pair"),
        ({"keep": {"left": "1 h"}}, "or a dict with 'left' and 'right'"),
        ({"keep": "1 h", "how": "left"}, r"give keep=\('1 hour', None\), or within= in its place"),
        ({"keep": "1 h", "how": "right"}, r"give keep=\(None, '1 hour'\)"),
        ({"keep": (None, "1 h"), "how": "full"}, r"give keep=\(None, None\)"),
        ({"keep": "1 h", "unmatched": "final"}, "unmatched='final' is for rows without a match"),
    ],
)
def test_wrong_lengths_are_refused(options: dict[str, Any], says: str) -> None:
    left, right = two()
    with pytest.raises(InvalidArgument, match=says):
        left.join(right, on="k", **options)


def test_the_words_and_the_text_of_the_options() -> None:
    join = KeptJoin("k", "left", keep=("30 days", None))
    assert join.words == "left join on k, left rows kept for 30 days, right rows for ever"
    assert "keep=('30 days', None)" in repr(join)
