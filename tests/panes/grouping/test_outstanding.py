"""The outstanding panes of windows in hand against plain lists of them."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from seeds import seeds

import uncombine as uc
from uncombine.panes import Grouping, Operator
from uncombine.panes.grouping.outstanding import OutstandingPanes

RECORD = pa.struct([("start", pa.int64()), ("text", pa.string())])
NAMES = ["start", "end", "index", "timing", "cause", "tags", "value.n", "watermark"]


def records(numbers: list[int]) -> pa.StructArray:
    return pa.array([{"start": n, "text": f"text {n}"} for n in numbers], RECORD)


def listed(lists: list[list[int]]) -> OutstandingPanes:
    return OutstandingPanes.of(pa.array([records(numbers).to_pylist() for numbers in lists], pa.list_(RECORD)))


def numbers_of(shown: OutstandingPanes) -> list[list[int]]:
    column = shown.lists()
    assert column.type == pa.list_(RECORD)
    found = column.to_pylist()
    assert all(record["text"] == f"text {record['start']}" for records in found for record in records)
    owner, flat = shown.owner.tolist(), shown.number("start").tolist()
    assert flat == [record["start"] for records in found for record in records]
    assert owner == [window for window, records in enumerate(found) for _ in records]
    assert len(shown) == len(flat)
    return [[record["start"] for record in records] for records in found]


@pytest.mark.parametrize("seed", seeds(60))
def test_moves_of_windows_move_their_panes(seed: int) -> None:
    r = random.Random(seed)
    fresh = iter(range(10_000))

    def some(most: int = 3) -> list[list[int]]:
        return [[next(fresh) for _ in range(r.randint(0, most))] for _ in range(r.randint(0, 6))]

    want = some()
    shown = listed(want) if r.random() < 0.7 or want else OutstandingPanes.none(RECORD, 0)
    for _ in range(12):
        count = len(want)
        match r.choice(["take", "join", "merge", "without", "where", "follow", "follow", "store"]):
            case "take":
                chosen = r.choices(range(count), k=r.randint(0, count)) if count else []
                want, shown = [want[i] for i in chosen], shown.take(np.array(chosen, np.int64))
            case "join":
                more = some()
                want, shown = want + more, shown.joined(listed(more))
            case "merge" if count:
                into = [r.randrange(r.randint(1, count)) for _ in want]
                into = sorted(into) if r.random() < 0.5 else into
                merged: list[list[int]] = [[] for _ in range(max(into) + 2)]
                for numbers, place in zip(want, into, strict=True):
                    merged[place] += numbers
                want, shown = merged, shown.regrouped(np.array(into), len(merged))
            case "without":
                gone = [r.random() < 0.4 for _ in want]
                want = [[] if out else numbers for numbers, out in zip(want, gone, strict=True)]
                shown = shown.without(np.array(gone, np.bool_))
            case "where":
                kept = {n for numbers in want for n in numbers if r.random() < 0.7}
                mask = np.array([n in kept for n in shown.number("start").tolist()], np.bool_)
                want, shown = [[n for n in numbers if n in kept] for numbers in want], shown.where(mask)
            case "follow":
                firing = sorted(r.sample(range(count), r.randint(0, count)))
                new = [next(fresh) for _ in firing]
                shown = shown.followed(records(new), np.array(firing, np.int64))
                for window, number in zip(firing, new, strict=True):
                    want[window] = [*want[window], number]
                assert len(shown.records) <= max(2 * len(shown), len(new))
            case "store":
                sliced = shown.lists().slice(1) if want and r.random() < 0.5 else shown.lists()
                want, shown = want[len(want) - len(sliced) :], OutstandingPanes.of(sliced)
        assert numbers_of(shown) == want
    windows = [i for i in range(len(want)) if r.random() < 0.5]
    which, places = shown.of_windows(np.array(windows, np.int64))
    found = shown.records.take(pa.array(places)).field("start").to_pylist()
    assert list(zip(which.tolist(), found, strict=True)) == [(i, n) for i, w in enumerate(windows) for n in want[w]]


@pytest.mark.parametrize("window", [uc.Fixed("1 minute"), uc.Sessions("1 minute")])
@pytest.mark.parametrize("options", [{"mode": "retracting"}, {"mode": "accumulating", "only_updated": True}])
def test_results_may_have_the_names_of_other_columns_of_a_pane(window: uc.Window, options: dict[str, object]) -> None:
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int64()})
    grouping = Grouping({name: uc.Sum("x") for name in NAMES}, window, trigger=uc.Always(), **options)  # type: ignore[arg-type]
    operator = Operator(grouping, schema)
    state, found = operator.initial(), []
    for second, x in ((0, 1), (1, 2), (1, 0)):
        stepped = operator.step(state, pa.table({"ts": [second * 1_000_000], "x": [x]}).cast(schema), watermark=0)
        state = stepped.state
        found += [(row["diff"], *(row[name] for name in NAMES)) for row in stepped.panes.to_pylist()]
    want = {"retracting": [(1, 1), (-1, 1), (1, 3), (-1, 3), (1, 3)], "accumulating": [(1, 1), (1, 3)]}
    assert found == [(diff, *[value] * len(NAMES)) for diff, value in want[str(options["mode"])]]
