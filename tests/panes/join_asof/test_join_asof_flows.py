"""As-of joins in flows, run in this process: tables against polars, pandas and a double loop; scripts; wrong use."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from asof_scripts import DIRECTIONS, met
from opened import opened
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch, UnknownColumn
from uncombine.testing import check_flow

TIME = pa.timestamp("us", "UTC")
LEFT = pa.schema({"ts": TIME, "k": pa.string(), "x": pa.int64()})
RIGHT = pa.schema({"at": TIME, "k": pa.string(), "n": pa.int64(), "y": pa.list_(pa.int64()), "z": pa.float64()})
SIDES = ("left", "right")


def table(schema: pa.Schema, rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def micros(value: Any) -> Any:
    return uc.timestamp(value) if hasattr(value, "year") else value


def rows_of(result: uc.Result, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(micros(row[name]) for name in (*names, "diff")) for row in result.panes.to_pylist()]


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("seed", seeds(4, 400))
def test_random_tables_against_polars_and_pandas(direction: Any, seed: int) -> None:
    """Each key has a right time once, and no two right times are as far from a left one."""
    r = random.Random(f"{direction} {seed}")
    left = [(2 * r.randrange(300) + 1, r.choice("abc"), place) for place in range(r.randrange(1, 200))]
    right = [(4 * place, key, place) for place in range(150) for key in "abd" if r.random() < 0.3]
    right = [row for row in right if direction != "nearest" or row[0] % 8 == 0 or r.random() < 0.5]
    left, tolerance, exact = sorted(left), r.choice([None, 1, 5, 9]), r.random() < 0.7
    if direction != "nearest":
        left = [(time - time % 4 if r.random() < 0.5 else time, *rest) for time, *rest in left]
        left.sort()
    frames = [
        pl.DataFrame(rows, names, orient="row") for rows, names in ((left, ["t", "k", "x"]), (right, ["t", "k", "y"]))
    ]
    if not right:
        return
    options: dict[str, Any] = {"on": "t", "by": "k", "tolerance": tolerance}
    of_polars = frames[0].join_asof(frames[1], strategy=direction, allow_exact_matches=exact, **options)
    of_pandas = pd.merge_asof(
        *(frame.to_pandas() for frame in frames), direction=direction, allow_exact_matches=exact, **options
    )
    ours = [
        uc.flow(table(LEFT, left)),
        uc.flow(
            pa.table({"ts": pa.array([row[0] for row in right]).cast(TIME)})
            .append_column("k", pa.array([row[1] for row in right]))
            .append_column("y", pa.array([row[2] for row in right]))
        ),
    ]
    tie = {(row[2], row[1]): row[0] for row in left}
    result = (
        ours[0]
        .join_asof(
            ours[1],
            by="k",
            direction=direction,
            allow_exact=exact,
            tolerance=None if tolerance is None else f"{tolerance} us",
            emit=r.choice(["at_once", "final"]),
        )
        .run()
    )
    got = {row["x"]: row["y"] for row in result.to_pylist()}
    times: dict[Any, list[int]] = {}
    for time, key, _ in right:
        times.setdefault(key, []).append(time)
    want_polars = dict(zip(of_polars["x"].to_list(), of_polars["y"].to_list(), strict=True))
    want_pandas = {int(x): None if y != y else int(y) for x, y in zip(of_pandas["x"], of_pandas["y"], strict=True)}
    assert len(got) == len(left)
    for x, y in got.items():
        ((time, key),) = [(at, key) for (place, key), at in tie.items() if place == x]
        apart = sorted(abs(other - time) for other in times.get(key, []))
        if direction == "nearest" and len(apart) > 1 and apart[0] == apart[1]:
            continue  # pandas takes the earlier one of two that are as far
        assert y == want_polars[x] == want_pandas[x], (x, time, key)


@pytest.mark.parametrize(("direction", "exact"), list(product(DIRECTIONS, [True, False])))
@pytest.mark.parametrize("seed", seeds(3, 300))
def test_random_tables_with_ties_against_a_double_loop(direction: Any, exact: bool, seed: int) -> None:
    r = random.Random(f"{direction} {exact} {seed}")
    keys, tolerance = ["a", "b", None], r.choice([None, 0 if exact else 2, 6])
    left = [(r.randrange(40), r.choice(keys), r.randrange(3)) for _ in range(30)]
    nan = float("nan")
    right = [
        (r.randrange(40), r.choice(keys), r.choice([None, 1, 2]), r.choice([None, [1], [1, 2]]), r.choice([0.5, nan]))
        for _ in range(30)
    ]
    result = (
        uc.flow(table(LEFT, left), diff=None)
        .join_asof(
            uc.flow(table(RIGHT, right), time="at"),
            by={"k": "k"},
            direction=direction,
            allow_exact=exact,
            order="z",
            tolerance=None if tolerance is None else f"{tolerance} us",
            suffixes=("", "_r"),
        )
        .run()
    )
    want: Counter[tuple[Any, ...]] = Counter()
    for time, key, x in left:
        # NaN is above every number, and null below; lists of one time and key are told apart by no order of ours.
        others = [
            (at, (z != z, n is not None, n or 0)) for at, other, n, _, z in right if key is not None and key == other
        ]
        found = met(time, others, direction, tolerance, exact)
        want[key, time, x, *(() if found is None else (found[0], found[1][0], found[1][2] or None)), time] += 1
    got: Counter[tuple[Any, ...]] = Counter()
    for k, ts, x, at, n, z, time, diff in rows_of(result, "k", "ts", "x", "at", "n", "z", "event_time"):
        assert diff > 0
        got[k, ts, x, *(() if at is None else (at, z != z, n)), time] += diff
    assert got == want


def test_a_late_row_and_a_retraction_join_again() -> None:
    flows = [
        opened(schema.append(pa.field("w", pa.int64())), name=name, time=schema.names[0], diff="w")
        for schema, name in zip((LEFT, RIGHT), SIDES, strict=True)
    ]
    both = flows[0].join_asof(flows[1], by="k", allowed_lateness="5 us").select("x", "n", "event_time", "diff")

    def quote(at: int, n: int, w: int = 1) -> uc.Elements:
        return uc.Elements([{"at": at, "k": "a", "n": n, "y": None, "z": None, "w": w}], input="right")

    script = [
        uc.Elements([{"ts": 10, "k": "a", "x": 1, "w": 1}], input="left"),
        quote(4, 40),
        *(uc.Watermark(12, input=name) for name in SIDES),
        quote(8, 80),
        quote(8, 80, -1),
        uc.Elements([{"ts": 10, "k": "a", "x": 1, "w": 2}], input="left"),
        *(uc.Watermark(16, input=name) for name in SIDES),
        quote(9, 90),
    ]
    result = both.run(script)
    assert rows_of(result, "step", "x", "n", "event_time") == [
        (0, 1, None, 10, 1),
        (1, 1, None, 10, -1),
        (1, 1, 40, 10, 1),
        (4, 1, 40, 10, -1),
        (4, 1, 80, 10, 1),
        (5, 1, 80, 10, -1),
        (5, 1, 40, 10, 1),
        (6, 1, 40, 10, 2),
    ]
    assert [row["side"] for row in result.left_out.to_pylist()] == ["right"]


def test_final_rows_wait_for_their_match_and_for_the_row_after_it() -> None:
    flows = [opened(schema, name=name, time=schema.names[0]) for schema, name in zip((LEFT, RIGHT), SIDES, strict=True)]
    both = flows[0].join_asof(flows[1], by="k", direction="forward", emit="final").select("x", "n", "event_time")
    script: list[Any] = [uc.Elements([{"ts": at, "k": "a", "x": at} for at in (1, 5)], input="left")]
    for at in (3, 9):
        script += [uc.Watermark(at, input=name) for name in SIDES]
        script.append(uc.Elements([{"at": at, "k": "a", "n": at, "y": None, "z": None}], input="right"))
    script += [uc.Watermark(10, input=name) for name in SIDES]
    names = ("step", "x", "n", "event_time")
    shown = [tuple(micros(row[name]) for name in names) for row in both.run(script).panes.to_pylist()]
    assert shown == [(5, 1, 3, 1), (8, 5, 9, 5)]


def last_before(frames: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The double loop over all rows that were in time."""
    left, right = (
        [tuple(None if pd.isna(value) else value for value in row) for row in zip(f.ts, f.k, f.x, strict=True)]
        for f in (frames["left"], frames["right"])
    )
    out = []
    for ts, k, x in left:
        others = [(at, y is not None, y or 0) for at, key, y in right if k is not None and key == k and at <= ts]
        best = max(others, default=None)
        out.append({"k": k, "ts_left": ts, "x_left": x, "x_right": None if best is None or not best[1] else best[2]})
    columns = {"k": "object", "ts_left": "datetime64[us, UTC]", "x_left": "Int64", "x_right": "Int64"}
    return pd.DataFrame(out, columns=list(columns)).astype(columns)


@pytest.mark.parametrize("emit", ["at_once", "final"])
def test_check_flow_works_through_an_as_of_join(emit: Any) -> None:
    schema = pa.schema({"ts": TIME, "k": pa.string(), "x": pa.int64()})
    flows = [uc.flow(schema, name=name, watermark="1 minute") for name in SIDES]
    both = flows[0].join_asof(flows[1], by="k", order="x", emit=emit)
    check_flow(both, last_before, examples=10)


def other(**options: Any) -> Any:
    return uc.flow(LEFT).join_asof(uc.flow(RIGHT, time="at"), **options)


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (
            lambda: uc.flow(LEFT).join_asof(3),
            InvalidArgument,
            "takes a flow, not a int: write a.join_asof",
        ),
        (lambda: other(on="k"), InvalidArgument, "has no option 'on'"),
        (lambda: other(late="drop"), InvalidArgument, "has no late="),
        (lambda: other(by="x"), UnknownColumn, "by= of the right input needs column 'x'"),
        (lambda: other(by={"x": "k"}), TypeMismatch, "by= joins the left column 'x'"),
        (lambda: other(by=3), InvalidArgument, "by= takes the name of a column"),
        (lambda: other(direction="backwards"), InvalidArgument, "did you mean 'backward'"),
        (lambda: other(how="right"), InvalidArgument, "how= is 'right'"),
        (lambda: other(emit="later"), InvalidArgument, "emit= is 'later'"),
        (lambda: other(tolerance="-1 s"), InvalidArgument, "tolerance= is '-1 second', and it cannot be negative"),
        (lambda: other(tolerance="0 s", allow_exact=False), InvalidArgument, "so that no row can match"),
        (lambda: other(allow_exact=1), InvalidArgument, "allow_exact= takes True or False"),
        (lambda: other(by="k", order="k"), InvalidArgument, "order= names 'k', which by= has too"),
        (lambda: other(by="k", order=["n", "n"]), InvalidArgument, "order= names 'n' twice"),
        (lambda: other(by="k", order="y"), TypeMismatch, "order="),
        (lambda: other(by="k", order="m"), UnknownColumn, "order= needs column 'm'"),
        (lambda: other(by="k", suffixes=("", "")), InvalidArgument, "suffixes= takes two different texts"),
        (lambda: uc.flow(LEFT).merge_asof, AttributeError, "flow.join_asof"),
        (lambda: uc.flow(LEFT).asof_join, AttributeError, "flow.join_asof"),
    ],
)
def test_wrong_use_is_refused(make: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        make()


def test_explain_says_what_the_state_keeps() -> None:
    text = other(by="k", tolerance="1 minute", allowed_lateness="5 s").explain()
    assert "left as-of join on k, backward within 1 minute, corrected" in text
    assert "left rows until the watermark passes their time plus 5 seconds" in text
    assert "and the last one of each key for 1 minute plus 5 seconds" in text
    assert "(without a match: without end)" in other(by="k", direction="forward").explain()
