"""A seed of a history is where a stream would be that had seen everything, and a bad history is refused."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import broadcast_flows
import join_flows
import pyarrow as pa
import pytest
import row_steps
from evolved_specs import FAR
from row_steps import SCHEMA, draw_rows, script_of
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, StateMismatch, TypeMismatch, UnknownColumn
from uncombine.panes.state.seed import read_seed

DAY = pa.schema({"ts": pa.timestamp("us", "UTC"), "user": pa.string(), "x": pa.int64()})


def rows_of(panes: pa.Table) -> list[str]:
    """The panes without the numbers of their entries."""
    return [repr(row) for row in panes.drop_columns(["step"]).to_pylist()]


def net(panes: pa.Table, weight: str = "diff") -> Counter[str]:
    """The rows that are left of a changelog, by plain Python."""
    left: Counter[str] = Counter()
    for row in panes.to_pylist():
        count = row.pop(weight, 1)
        left[repr([(name, value) for name, value in row.items() if name not in ("pane", "step")])] += count
    return Counter({row: count for row, count in left.items() if count})


def check_history(flow: uc.Flow, tables: dict[str, pa.Table], r: random.Random, folder: Path) -> bool:
    """After the seed of the rows until some time, a run gives what it would have given after these rows.

    True if the past shows something.
    """
    script = script_of(tables)
    times = sorted({entry.at for entry in script if isinstance(entry, uc.Elements)})
    stop = r.choice(times)
    past = {
        name: table.filter(pa.array([seen <= stop for seen in table["seen"].to_pylist()], pa.bool_()))
        for name, table in tables.items()
    }
    cut = next(place for place, entry in enumerate(script) if isinstance(entry, uc.Watermark) or entry.at > stop)
    whole = flow.run(script).panes
    seed = read_seed(flow.seed(past if len(past) > 1 else past.popitem()[1], to=f"{folder}/seed").folder)
    first = flow.run([], start=seed).panes
    part = flow.run(script[cut:], start=seed).panes
    steps = whole["step"].to_pylist()
    before = sum(step < cut for step in steps)
    weight = "diff" if "diff" in whole.column_names else "w"
    assert net(first, weight) == net(whole.slice(0, before), weight)
    assert rows_of(part.slice(first.num_rows)) == rows_of(whole.slice(before))
    return first.num_rows > 0


@pytest.mark.parametrize(
    "draw",
    [row_steps.draw_flow, join_flows.draw_flow, broadcast_flows.draw_flow],
    ids=["steps", "joins", "broadcast"],
)
@pytest.mark.parametrize("seed", seeds(20, 2_000))
def test_a_run_goes_on_after_its_history(draw: Any, seed: int, tmp_path: Path) -> None:
    r = random.Random(seed)
    weighted = r.random() < 0.5
    count = 1 if draw is row_steps.draw_flow else 2
    tables = {name: draw_rows(r, weighted, place) for place, name in enumerate("ab"[:count])}
    options = {"diff": "w" if weighted else None, "processing_time": "seen", "watermark": "1 minute"}
    flows = [uc.flow(SCHEMA, name=name, **options) for name in tables]
    flows = flows if weighted else [flow.select("ts", "k", "x", "id") for flow in flows]
    check_history(draw(r, flows), tables, r, tmp_path)


@pytest.mark.parametrize("draw", [row_steps.draw_flow, join_flows.draw_flow], ids=["steps", "joins"])
@pytest.mark.parametrize("seed", seeds(15, 1_000))
def test_a_history_leaves_out_rows_of_an_absurd_future(draw: Any, seed: int, tmp_path: Path) -> None:
    """Rows of the year 2099, alone or beside good ones, leave no trace but a count: the clock of the call judges."""
    r = random.Random(seed)
    names = "a" if draw is row_steps.draw_flow else "ab"
    good = {name: draw_rows(r, False, place) for place, name in enumerate(names)}
    far = {name: pa.concat_tables([table, _later(table.slice(0, r.randrange(3)))]) for name, table in good.items()}
    flows = [uc.flow(SCHEMA, name=name, watermark="1 minute").select("ts", "k", "x", "id") for name in names]
    flow, states = draw(r, flows), []
    for place, tables in enumerate((good, far)):
        seed_of = flow.seed(tables if len(tables) > 1 else tables["a"], to=f"{tmp_path}/{place}")
        marks = [[piece.watermark for piece in step.pieces] for step in seed_of.steps]
        shown = rows_of(flow.run([], start=seed_of).panes)
        states.append((marks, [step.rows for step in seed_of.steps], sorted(shown)))
    assert states[0] == states[1]


def _later(rows: pa.Table) -> pa.Table:
    times = pa.array([FAR] * rows.num_rows, pa.int64()).cast(rows.schema.field("ts").type)
    return rows.set_column(rows.column_names.index("ts"), rows.schema.field("ts"), times)


def test_the_clock_of_the_call_judges_a_history(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    past = [*some(("09:00", "ada", 1)), {"ts": "2099-01-01T00:00Z", "user": "ada", "x": 2}]
    seed = hours().seed(past, to=tmp_path / "seed")
    assert [piece.counts.bad for step in seed.steps for piece in step.pieces] == [1]
    assert "1 row of the history is bad and left out" in caplog.text
    then = hours().run([uc.Elements(some(("09:30", "ada", 4)))], start=seed)
    assert totals(then.panes)[-1] == ("ada", 5, 1)
    assert then.dropped == 0
    every = hours(max_future=None).seed(past, to=tmp_path / "every")
    assert [step.rows for step in every.steps] == [{"windows": 1}], "that of 2099, before which the other has expired"
    with pytest.raises(InvalidArgument, match="a row of the run has the time 2099-01-01T00:00:00Z, more than max_fut"):
        hours().run([uc.Elements(past)]).seed(tmp_path / "run")
    assert hours().run([uc.Elements(past, at="2024-05-01T10:00Z")]).seed(tmp_path / "clocked").steps
    assert hours(max_future=None).run([uc.Elements(past)]).seed(tmp_path / "unbounded").steps


@pytest.mark.parametrize(("options", "first"), [({}, 5), ({"diff": "w"}, 7), ({"processing_time": "seen"}, 5)])
def test_the_row_of_an_id_that_a_history_shows(options: dict[str, str], first: int, tmp_path: Path) -> None:
    """The later of two rows comes first: a stream without weights has shown it, and a history has the other."""
    rows = pa.Table.from_pylist(
        [{"ts": time, "k": "a", "id": 1, "x": x, "w": 1, "seen": seen} for time, x, seen in ((9, 5, 1), (3, 7, 2))],
        SCHEMA,
    )
    once = uc.flow(SCHEMA, watermark="1 minute", **options).distinct("id", within="1 hour")  # type: ignore[arg-type]
    sums = once.window("1 hour", "each row", "retracting").combine(x=uc.Sum("x"))
    stream = sums.run([uc.Elements(rows.slice(place, 1)) for place in range(2)])
    history = sums.run([], start=sums.seed(rows, to=f"{tmp_path}/seed"))
    shown = [[row["x"] for row in run.to_pylist() for _ in range(row["diff"])][-1] for run in (stream, history)]
    assert shown == [first, 5 if "processing_time" in options else 7]


def hours(rows: Any = DAY, **options: Any) -> uc.Flow:
    source = uc.flow(rows, **{"watermark": "1 minute", **options})
    return source.window("1 hour", "each row", mode="retracting").combine(by="user", total=uc.Sum("x"))


def some(*rows: tuple[str, str, int]) -> list[dict[str, Any]]:
    return [{"ts": f"2024-05-01T{time}Z", "user": user, "x": x} for time, user, x in rows]


def totals(panes: pa.Table) -> list[tuple[str, int, int]]:
    return [(row["user"], row["total"], row["diff"]) for row in panes.to_pylist()]


def test_the_end_of_a_history_by_time(tmp_path: Path) -> None:
    rows = some(("09:00", "ada", 1), ("09:59:59", "ada", 2), ("10:00", "ada", 4), ("10:30", "bob", 8))
    rows.append({"ts": None, "user": "eve", "x": 16})
    seed = hours().seed(rows, until="2024-05-01T10:00Z", to=tmp_path / "seed")
    assert [step.rows for step in seed.steps] == [{"windows": 1}]
    assert totals(hours().run([], start=seed).panes) == [("ada", 3, 1)]
    then = hours().run([uc.Elements(some(("10:00", "ada", 4), ("08:30", "ada", 100)))], start=seed)
    assert totals(then.panes) == [("ada", 3, 1), ("ada", 4, 1)], "the hour before is late"
    assert then.dropped == 1
    rest = uc.flow(DAY, watermark="1 minute").where(uc.col("ts") >= datetime(2024, 5, 1, 10, tzinfo=UTC))
    rest = rest.window("1 hour", "each row", mode="retracting").combine(by="user", total=uc.Sum("x"))
    assert totals(rest.run([uc.Elements(rows)], start=seed).panes) == [("ada", 3, 1), ("ada", 4, 1), ("bob", 8, 1)]
    assert seed.steps[0].pieces[0].counts.bad == 1


def test_a_flow_with_rows_is_its_own_history(tmp_path: Path) -> None:
    rows = some(("09:00", "ada", 1), ("10:30", "ada", 2))
    seed = hours(rows).seed(to=tmp_path / "seed")
    assert totals(hours().run([uc.Elements(some(("10:31", "ada", 4)))], start=seed).panes) == [
        ("ada", 1, 1),
        ("ada", 2, 1),
        ("ada", 2, -1),
        ("ada", 6, 1),
    ]


def test_histories_that_are_refused(tmp_path: Path) -> None:
    rows = some(("09:00", "ada", 1))
    with pytest.raises(InvalidArgument, match=r"its source has none: write seed\(rows, to=\)"):
        hours().seed(to=tmp_path / "seed")
    with pytest.raises(UnknownColumn, match=r"the history has no column 'user', which the flow reads"):
        hours().seed([{"ts": 0, "use": "ada", "x": 1}], to=tmp_path / "seed")
    with pytest.raises(TypeMismatch, match=r"column 'x' is double in the history and int64 in the flow: cast it"):
        hours().seed([{"ts": 0, "user": "ada", "x": 1.5}], to=tmp_path / "seed")
    with pytest.raises(InvalidArgument, match=r"rows of this flow reach its end without one: add a step"):
        uc.flow(DAY, watermark="1 minute").seed(rows, to=tmp_path / "seed")
    one, two = (uc.flow(DAY, watermark="1 minute", name=name).distinct("user", within="1 hour") for name in "ab")
    both = one.join(two, on="user", within=("0 s", "1 hour"))
    with pytest.raises(InvalidArgument, match=r"write \{'a': ..., 'b': ...\} in its place"):
        both.seed(rows, to=tmp_path / "seed")
    with pytest.raises(InvalidArgument, match=r"no rows for the source 'b'"):
        both.seed({"a": rows}, to=tmp_path / "seed")
    with pytest.raises(InvalidArgument, match=r"names 'c', and no source of the flow is called so"):
        both.seed({"a": rows, "c": rows}, to=tmp_path / "seed")
    assert not (tmp_path / "seed").exists()
    with pytest.raises(InvalidArgument, match=r"was given as a script: give seed\(\) its rows"):
        hours().seed([uc.Elements(rows)], to=tmp_path / "seed")
    none = hours().seed([], to=tmp_path / "none")
    assert hours().run([uc.Elements(rows)], start=none).num_rows == 1
    hours().seed(rows, to=tmp_path / "seed")
    with pytest.raises(InvalidArgument, match=r"a seed is written to a new folder"):
        hours().seed(rows, to=tmp_path / "seed")


@pytest.mark.parametrize("seed", range(5))
def test_a_damaged_file_of_corrections_is_refused(seed: int, tmp_path: Path) -> None:
    rows = some(*((f"09:{minute:02}", f"u{minute}", minute) for minute in range(30)))
    found = hours().seed(rows, to=tmp_path / "seed")
    (file,) = found.steps[0].corrections
    assert file.rows == 30
    path = tmp_path / "seed" / file.name
    value, r = path.read_bytes(), random.Random(seed)
    place = r.randrange(len(value))
    for damaged in (value[:place], bytes([*value[:place], value[place] ^ 1, *value[place + 1 :]])):
        path.write_bytes(damaged)
        with pytest.raises(StateMismatch, match=r"has other bytes than were written: restore it from a copy"):
            hours().run([], start=found)
    path.unlink()
    with pytest.raises(StateMismatch, match=r"has lost the file"):
        hours().run([], start=found)
