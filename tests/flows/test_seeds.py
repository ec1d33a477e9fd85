"""A run goes on from a seed as if it had not ended, and a seed says what is wrong with it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import broadcast_flows
import join_flows
import pyarrow as pa
import pytest
import replays
import row_steps
from opened import run_script
from random_pipelines import drawn
from reference.byrule.agree import combiners_of
from reference.byrule.transcripts import SCHEMA
from row_steps import SCHEMA as ROWS
from row_steps import START, Totals, draw_rows, scored, script_of
from scripts import scripted
from seeds import seeds

import uncombine as uc
from uncombine.flows.graph import graph_of
from uncombine.flows.result import Result
from uncombine.panes.parcels import Parcel
from uncombine.panes.shard.arrivals import Arrival, arrivals
from uncombine.panes.shard.shard import Shard
from uncombine.panes.state.seed import Seed, SeedStep, read_seed, write_piece
from uncombine.panes.state.shard_seed import ShardSeed
from uncombine.panes.transforms import applied
from uncombine.panes.watermarks.stored_watermarks import stored

NOW = START + 86_400_000_000


def check_resumed(run: Callable[..., Result], script: list[Any], r: random.Random, folder: Path) -> None:
    """Runs that end at some entries, and go on from seeds, give the panes and the counts of one run."""
    whole = run(script)
    cuts = sorted(r.sample(range(len(script) + 1), r.choice([1, 1, 2]) if len(script) else 1))
    panes, start, seed = [], 0, None
    for number, stop in enumerate([*cuts, len(script)]):
        part = run(script[start:stop], start=seed)
        steps = pa.array([step + start for step in part.panes["step"].to_pylist()], pa.int64())
        place = part.panes.schema.get_field_index("step")
        panes.append(part.panes.set_column(place, "step", steps))
        seed, start = read_seed(part.seed(f"{folder}/{number}").folder), stop
    assert pa.concat_tables(panes).equals(whole.panes)
    counts = {name: count for name, count in part.counts().items() if name != "unreadable"}
    assert counts.items() <= whole.counts().items()


@pytest.mark.weekly
@pytest.mark.parametrize("seed", seeds(20, 4_000))
def test_pipelines_go_on_from_seeds(seed: int, tmp_path: Path) -> None:
    pipeline, tables, _ = drawn(seed)
    names = {leaf for leaf in pipeline.names if leaf in tables}
    script = script_of({name: table for name, table in tables.items() if name in names})
    check_resumed(pipeline.flow.run, script, random.Random(seed), tmp_path)


@pytest.mark.parametrize("seed", seeds(20, 4_000))
def test_groupings_go_on_from_seeds(seed: int, tmp_path: Path) -> None:
    script, options = scripted(seed)

    def run(entries: list[Any], start: Seed | None = None) -> Result:
        return run_script(entries, from_seed=start, **options, **combiners_of(options), schema=SCHEMA)

    check_resumed(run, script, random.Random(seed), tmp_path)


DRAWS = {"steps": row_steps.draw_flow, "joins": join_flows.draw_flow, "broadcast": broadcast_flows.draw_flow}


@pytest.mark.weekly
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("seed", seeds(8, 2_000))
def test_steps_go_on_from_seeds(draw: Any, seed: int, tmp_path: Path) -> None:
    flow, tables = replays.drawn(seed, draw, [1, 2, 2] if draw is row_steps.draw_flow else [2])
    check_resumed(flow.run, script_of(tables), random.Random(seed), tmp_path)


@pytest.mark.weekly
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("window", ["1 minute", "sessions 20 seconds", uc.Sliding("2 minutes", "1 minute")], ids=str)
def test_a_window_that_expired_stays_so_under_a_longer_lateness(window: Any, seed: int, tmp_path: Path) -> None:
    """Rows of windows that have expired are late after the lateness has grown, as often as a run goes on."""
    r = random.Random(seed)

    def flow(lateness: str) -> uc.Flow:
        minutes = uc.flow(ROWS, watermark="0 seconds").window(
            window, "each row", mode="retracting", allowed_lateness=lateness
        )
        return minutes.combine(by="k", n=uc.Count())

    def some(*times: int) -> uc.Elements:
        rows = [{"ts": START + 1_000_000 * time, "k": r.choice("pq"), "id": 0, "x": 0, "w": 1} for time in times]
        return uc.Elements(pa.Table.from_pylist(rows, ROWS))

    first = [some(*(r.randrange(100) for _ in range(5))), some(300)]
    short = flow("10 seconds").run(first)
    late = [some(*(r.randrange(300) for _ in range(5))) for _ in range(3)]
    places = [[row["ts"].timestamp() - START / 1_000_000 for row in one.rows.to_pylist()] for one in late]
    expected = flow("10 seconds").run([*first, *late]).panes
    seed_now = short.seed(f"{tmp_path}/0")
    panes = [short.panes]
    for number, one in enumerate(late):
        part = flow("1 hour").run([one], start=seed_now)
        panes.append(part.panes)
        seed_now = read_seed(part.seed(f"{tmp_path}/{number + 1}").folder)
    names = ["k", "window", "n", "diff"]
    found = pa.concat_tables(panes).select(names).to_pylist()
    # Windows that had not expired may take rows that are late under the shorter lateness.
    mark = START / 1_000_000 + 300 - 10
    old = [row for row in found if row["window"]["end"].timestamp() <= mark]
    assert old == [row for row in expected.select(names).to_pylist() if row["window"]["end"].timestamp() <= mark]
    assert places


def rows_of_stores(shard: Shard) -> dict[str, Counter[str]]:
    """The rows of each store with their clocks, as texts; without their order of arrival, which is that in a shard."""
    out: dict[str, Counter[str]] = {}
    for name, store in shard.state.stores.items():
        for chunk in () if store is None else store.chunks:
            _, table, wake = chunk.living()
            clocks = [values for clock, values in wake.items() if clock != "order"]
            names = [column for column in table.column_names if column != "order"]
            times = zip(*clocks, strict=True) if clocks else [()] * table.num_rows
            rows = table.select(names).append_column("wake", pa.array(times, pa.list_(pa.int64())))
            out.setdefault(name, Counter()).update(map(repr, rows.to_pylist()))
    return {name: rows for name, rows in out.items() if rows}


def check_division(flow: uc.Flow, tables: list[pa.Table], shards: int, folder: Path) -> int:
    """Each row of the state of one shard goes to the shard that has it if the rows are divided as they come.

    Gives the number of rows of the state.
    """
    step = graph_of(flow).steps[0]
    inputs = [feed.leaf.watermarks(feed.back) for feed in step.feeds if feed.leaf is not None]
    alone = Shard.start(step.operator(), *inputs, ports=step.ports)
    alone, _ = alone.take(NOW, *(Arrival([table]) for table in tables))
    marks = stored(alone.watermarks, [""] * len(inputs))
    piece, files = write_piece(str(folder), 0, alone.state, marks)
    seed = ShardSeed(str(folder), SeedStep({}, (piece,), tuple(files)))

    def played(as_rows: bool) -> tuple[list[Shard], Any]:
        """The shards after the rows, which come to them as rows or combined, and the hashes by which they come."""
        parcels: dict[int, list[Parcel]] = {}
        for place, table in enumerate(tables):
            port = step.ports[place] if step.ports else 0
            lift = step.stage.lift(table.schema, shards, False, port, as_rows)
            for number, parcel in lift(table, NOW):
                parcels.setdefault(number, []).append(replace(parcel, input=place))
        running = []
        for number in range(shards):
            one = Shard.start(step.operator(), *inputs, ports=step.ports)
            running.append(one.play(*arrivals(parcels[number], len(inputs)))[0] if number in parcels else one)
        return running, partial(lift.routes, alone.operator)

    running, combined = played(False)
    expected = list(map(rows_of_stores, running))

    def divided(part: ShardSeed, count: int, routes: Any = combined) -> list[dict[str, Counter[str]]]:
        states = [part.state(alone.operator, number, count, routes) for number in range(count)]
        return [rows_of_stores(replace(alone, state=state)) for state in states]

    assert divided(seed, shards) == expected
    # The shards write pieces, from which the same number of shards takes its own, and another all that is its own.
    written = [write_piece(str(folder), place, one.state, marks) for place, one in enumerate(running)]
    pieces, files = tuple(piece for piece, _ in written), tuple(file for _, some in written for file in some)
    again = ShardSeed(str(folder), SeedStep({}, pieces, files))
    assert divided(again, shards) == expected
    assert divided(again, 2 * shards) == divided(seed, 2 * shards)
    assert divided(again, 3) == divided(seed, 3)
    # Rows that come as rows may belong to other shards than combined ones, of which there are as many.
    elsewhere, as_rows = played(True)
    assert divided(replace(again, moved=True), shards, as_rows) == list(map(rows_of_stores, elsewhere))
    return sum(rows.total() for one in expected for rows in one.values())


def first_steps() -> dict[str, Callable[[uc.Flow, uc.Flow], uc.Flow]]:
    """A step of each kind over one source, or two."""
    sums = {"by": ["k"], "x": uc.Sum("x"), "middle": uc.Median("x"), "ids": uc.CountDistinct("id")}
    return {
        "windows": lambda a, _: a.window("1 minute").combine(by="id", n=uc.Count()),
        "windows of texts": lambda a, _: a.window("1 minute").combine(by=["k"], n=uc.Count(), x=uc.Sum("x")),
        "long windows": lambda a, _: a.window("1 hour", "each row", mode="retracting").combine(**sums),
        "sliding": lambda a, _: a.window(uc.Sliding("1 minute", "30 seconds")).combine(**sums),
        "sessions": lambda a, _: a.window(uc.Sessions("20 seconds"), "each row").combine(**sums),
        "distinct": lambda a, _: a.distinct("id", within="1 hour"),
        "distinct of two": lambda a, _: a.distinct("k", "id", within="1 minute"),
        "remember": lambda a, _: a.map(scored, remember=True, deterministic=False),
        "in order": lambda a, _: a.in_order(by="k"),
        "process": lambda a, _: a.process(by="k", function=Totals),
        "broadcast": lambda a, b: broadcast_flows.ruled(a, b),
        "join": lambda a, b: a.select("ts", "k", "x", "w").join(
            b.select("ts", "k", "id", "w"), on="k", how="full", within=("0 seconds", "1 minute")
        ),
    }


@pytest.mark.weekly
@pytest.mark.parametrize("name", first_steps())
@pytest.mark.parametrize("weighted", [False, True])
def test_a_row_goes_to_the_shard_that_its_key_is_in(name: str, weighted: bool, tmp_path: Path) -> None:
    found = 0
    for seed in range(3):
        r = random.Random(seed)
        options = {"diff": "w" if weighted else None, "watermark": "1 hour"}
        flows = [uc.flow(ROWS, name=letter, **options) for letter in "ab"]
        flow = first_steps()[name](*flows)
        steps = graph_of(flow).steps
        tables = [applied(feed.transforms, draw_rows(r, weighted)) for feed in steps[0].feeds]
        found += check_division(flow, tables, r.choice([2, 3, 7]), tmp_path)
    assert found > 5 or (name == "remember" and not weighted)
