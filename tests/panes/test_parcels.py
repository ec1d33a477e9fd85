"""The parcels of rows: any cut into tasks and shards gives the panes of one operator."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from combining import drawn_combining
from finals import COMBINERS, POLICIES, SECOND, WINDOWS, found, oracle, rows
from opened import run_script
from seeds import share

import uncombine as uc
from uncombine.panes.grouping.final_panes import Final, FinalLift
from uncombine.panes.grouping.grouping import Grouping
from uncombine.panes.grouping.lift import Lift
from uncombine.panes.grouping.operator import Operator
from uncombine.panes.parcels import Parcel
from uncombine.windows.calendar import UNITS
from uncombine.windows.times import MAX_TIME

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int64()})


@pytest.mark.parametrize("window", [uc.Fixed("1 second"), uc.Calendar("day"), uc.Global()], ids=repr)
@pytest.mark.parametrize("by", [(), ("x",)])
def test_rows_of_one_time_and_of_several_go_to_the_same_shard(window: uc.Window, by: tuple[str, ...]) -> None:
    """Rows of one processing time travel as cells, those of several as rows."""
    trigger = uc.Repeatedly(uc.AfterCount(1))
    grouping = Grouping({"n": uc.Count()}, window, trigger, by=by)
    lift = Lift(Operator(grouping, SCHEMA).compiled, 16, timed=True)
    for second in range(20):
        rows = pa.table({"ts": [second * 1_000_000] * 2, "x": [second] * 2}).cast(SCHEMA)
        one, several = lift(rows, 5), lift(rows, np.array([5, 6]))
        assert [parcel.kind for _, parcel in one + several] == ["cells", "rows"]
        assert [shard for shard, _ in one] == [shard for shard, _ in several]


USERS = pa.schema({"ts": SCHEMA.field("ts").type, "k": pa.string(), "n": pa.int64(), "x": pa.int64()})
MINUTE = 60 * SECOND


def shards_of(grouping: Grouping) -> dict[tuple[str, int], set[int]]:
    """The shards of each key in each block of 64 windows, of rows that are combined and of rows that are not."""
    stride = grouping.window.stride or MINUTE
    starts = [i * stride for i in range(-100, 300)]
    given = [{"ts": t, "k": f"user {k}", "n": k, "x": 1} for t in starts for k in range(5)]
    table = pa.Table.from_pylist(given).cast(USERS)
    final = Final(grouping, USERS)
    found: dict[tuple[str, int], set[int]] = {}
    for combine in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(FinalLift, "combines", lambda *given, combine=combine: combine)
            parcels = final.lift(16)(table)
        assert {parcel.kind for _, parcel in parcels} == {"cells" if combine else "rows"}
        for shard, parcel in parcels:
            keys = parcel.table["key.0" if combine else grouping.by[0]].to_pylist()
            times = parcel.table["start" if combine else "ts"].cast(pa.int64()).to_numpy()
            blocks = grouping.window.assign(times).start // (64 * stride)
            for key, block in zip(keys, blocks.tolist(), strict=True):
                found.setdefault((str(key), block), set()).add(shard)
    return found


@pytest.mark.parametrize("window", [uc.Fixed("1 minute"), uc.Calendar("day"), uc.Calendar("week")], ids=repr)
@pytest.mark.parametrize(
    ("by", "combiners", "together"),
    [
        ("k", {"n": uc.Sum("x"), "m": uc.Variance("x")}, True),
        ("n", {"m": uc.Sum("x")}, False),
        ("k", {"n": uc.Sum("x"), "m": uc.Median("x")}, False),
        ("k", {"m": uc.Max("k")}, False),
    ],
    ids=["texts", "numbers", "large accumulators", "texts as accumulators"],
)
def test_windows_of_a_text_that_are_near_go_to_one_shard(
    window: uc.Window, by: str, combiners: dict[str, uc.Combiner], together: bool
) -> None:
    found = shards_of(Grouping(combiners, window, by=(by,)))
    assert {len(shards) == 1 for shards in found.values()} == {together}
    assert len(set.union(*found.values())) > 8
    of_one = [shards for (key, _), shards in found.items() if key in ("user 0", "0")]
    assert len(set.union(*of_one)) > 1, "a key with many windows is in several shards"


def test_the_time_within_which_windows_are_near() -> None:
    windows = (uc.Global(), uc.Sessions("1 minute"), uc.Fixed("2000000 days"))
    lifts = [Final(Grouping({"n": uc.Count()}, window, by=("k",)), USERS).lift(4) for window in windows]
    assert [lift.near for lift in lifts] == [0, 0, MAX_TIME], "what is too long is cut off"
    days = {unit: uc.Calendar(unit).stride // (86_400 * SECOND) for unit in UNITS}
    assert days == {"day": 1, "week": 7, "month": 30, "quarter": 90, "year": 360}


def pieces(table: pa.Table, r: random.Random) -> list[pa.Table]:
    """Any cut of the rows in any order; some pieces are empty."""
    places = list(range(table.num_rows))
    r.shuffle(places)
    shuffled = table.take(pa.array(places, pa.int64()))
    ends = sorted(r.choices(range(table.num_rows + 1), k=r.randrange(4)))
    return [shuffled.slice(a, b - a) for a, b in zip([0, *ends], [*ends, table.num_rows], strict=True)]


def final_panes(table: pa.Table, grouping: Grouping, shards: int, r: random.Random) -> pa.Table:
    """The panes of all shards, each merged of the parcels of every piece, which come in any order."""
    final = Final(grouping, table.schema)
    lift = final.lift(shards)
    lift.__dict__["near"] = r.choice([0, 1, 7, 86_400]) * SECOND
    sent: dict[int, list[Parcel]] = {}
    for piece in pieces(table, r):
        if not final.as_rows and r.random() < 0.3:
            place = piece.schema.get_field_index("j")
            piece = piece.set_column(place, "j", piece["j"].dictionary_encode())
        with drawn_combining(r.randrange(1000)):
            parcels = lift(piece)
        for shard, parcel in parcels:
            sent.setdefault(shard, []).append(Parcel.unpack(parcel.pack()))
    out = [final.operator.output_schema.empty_table()]
    for parcels in sent.values():
        r.shuffle(parcels)
        out.append(final.whole(final.panes_of_rows(parcels) if final.as_rows else final.lean(final.merged(parcels))))
    return pa.concat_tables(out)


def locally(table: pa.Table, options: dict[str, Any]) -> pa.Table:
    script = [uc.Elements(table), uc.Watermark(None)]
    return run_script(script, mode="retracting", schema=table.schema, **COMBINERS, **options)


@pytest.mark.weekly
@pytest.mark.parametrize("window", share(WINDOWS), ids=repr)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("changelog", [False, True], ids=["rows", "changelog"])
def test_final_panes_of_any_cut(window: uc.Window, policy: str, changelog: bool) -> None:
    for seed, (count, by) in enumerate([(0, ("k",)), (1, ()), (30, ("k", "j")), (150, ("j",))]):
        r = random.Random(seed)
        table = rows(count, seed, changelog)
        options = {"window": window, "by": by, "timestamp": policy, "diff": "d" if changelog else None}
        panes = final_panes(table, Grouping(COMBINERS, mode="retracting", **options), r.choice([1, 2, 5]), r)
        assert found(panes, by) == found(locally(table, options), by)
        if not (changelog and policy in ("earliest", "latest")):  # of all rows, also retracted ones
            assert found(panes, by) == oracle(table, window, by, policy)


@pytest.mark.weekly
@pytest.mark.parametrize("window", WINDOWS, ids=repr)
def test_final_panes_of_weights_that_do_not_add_up(window: uc.Window) -> None:
    """Retractions of rows that never came: all cuts give the panes of one operator."""
    for seed in range(3):
        r = random.Random(seed)
        table = rows(60, seed)
        weights = pa.array([r.choice([1, 1, -1, 2, -2, 0]) for _ in range(60)], pa.int64())
        table = table.set_column(table.schema.get_field_index("d"), "d", weights)
        options = {"window": window, "by": ("k",), "diff": "d"}
        panes = final_panes(table, Grouping(COMBINERS, mode="retracting", **options), 3, r)
        assert found(panes, ("k",)) == found(locally(table, options), ("k",))


def test_texts_that_repeat_travel_as_dictionaries() -> None:
    """A parcel has the texts of its own cells, and texts that do not repeat travel as they are."""
    seconds = [second for second in range(40) for _ in range(8)]
    users = [f"user {i % 8}" if i % 8 else None for i in range(320)]
    table = pa.table({"ts": pa.array([s * 1_000_000 for s in seconds], SCHEMA.field("ts").type), "k": users})
    final = Final(Grouping({"n": uc.Count()}, uc.Fixed("1 second"), by=("k",)), table.schema)
    repeated = [Parcel.unpack(parcel.pack()) for _, parcel in final.lift(3)(table)]
    alone = [Parcel.unpack(parcel.pack()) for _, parcel in final.lift(3)(table.slice(0, 8))]
    kinds = {pa.types.is_dictionary(parcel.table["key.0"].type) for parcel in repeated}
    assert (kinds, {parcel.table["key.0"].type for parcel in alone}) == ({True}, {pa.string()})
    assert sum(parcel.table.num_rows for parcel in repeated) == 320
    few = [Parcel.unpack(parcel.pack()) for _, parcel in final.lift(200)(table)]
    assert all(len(parcel.table["key.0"].chunk(0).dictionary) <= parcel.table.num_rows for parcel in few)
    merged = final.merged([*repeated, *alone, *few])
    assert merged.keys[0].type == pa.string()
    assert sorted(merged.count.tolist()) == [2] * 312 + [3] * 8


def test_a_parcel_is_small_where_its_columns_say_little() -> None:
    table = pa.table({"count": np.ones(100_000, np.int64), "time": np.repeat(np.arange(100), 1_000)})
    parcel = Parcel("cells", table, at=7, bad=2, lo=5, input=1)
    packed = parcel.pack()
    assert len(packed) < table.nbytes / 20
    assert Parcel.unpack(packed) == parcel
