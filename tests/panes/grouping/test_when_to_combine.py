"""The choice between rows that are combined where they are read and rows that travel one by one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.panes.grouping.compiled import CompiledGrouping
from uncombine.panes.grouping.final_panes import Final
from uncombine.panes.grouping.grouping import Grouping
from uncombine.panes.grouping.lift import Lift
from uncombine.panes.grouping.when_to_combine import combining_pays, others_alike, sampled
from uncombine.windows import RowWindows

ROWS = 100_000
SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.int64(), "x": pa.float64()})


def assigned(times: np.ndarray) -> RowWindows:
    return uc.Fixed("1 minute").assign(times)


@pytest.mark.parametrize("keys", [400, 20_000, 80_000, 500_000, 2_000_000])
@pytest.mark.parametrize("ordered", [False, True])
def test_a_sample_tells_how_many_rows_share_a_cell(keys: int, ordered: bool) -> None:
    """Against the mean over all rows, of keys of which some come far more often than others."""
    rng = np.random.default_rng(keys)
    drawn = np.where(rng.random(ROWS) < 0.001, 0, rng.integers(0, keys, ROWS))
    if ordered:
        drawn.sort()
    _, cell, sizes = np.unique(drawn, return_inverse=True, return_counts=True)
    want = float((sizes[cell] - 1).mean())
    found = others_alike([pa.array(drawn[sampled(ROWS, 8_000)])], ROWS)
    assert abs(found - want) < 0.2 + 0.25 * want


def test_combining_pays_where_cells_are_few() -> None:
    """Rows alone in their windows travel one by one, unless they are few or their texts repeat."""
    at, rng = assigned(np.sort(np.random.default_rng(0).integers(0, 600_000_000, ROWS))), np.random.default_rng(1)
    alone = pa.array(rng.permutation(ROWS))
    texts = [alone.cast(pa.string()), alone.cast(pa.string()).dictionary_encode()]
    for key in (alone, *texts):
        assert not combining_pays([key], at, ROWS)
        assert not combining_pays([key, pa.array(["a"] * ROWS)], at, ROWS)
        assert combining_pays([key.slice(0, 60_000)], assigned(np.zeros(60_000, np.int64)), 60_000)
    few = pa.array(rng.integers(0, 1_000, ROWS))
    assert combining_pays([few], at, ROWS)
    hot = pa.array(np.where(rng.random(ROWS) < 0.3, 0, np.asarray(alone)))
    assert combining_pays([hot], at, ROWS)
    seconds = uc.Fixed("1 microsecond").assign(np.arange(ROWS))
    assert not combining_pays([few], seconds, ROWS)
    assert combining_pays([few.cast(pa.string())], seconds, ROWS)  # a text travels once with cells


def test_rows_alone_in_their_windows_travel_one_by_one() -> None:
    """The same shards, counts and results as those of cells, in a stream and in final panes."""
    rng = np.random.default_rng(3)
    times = rng.integers(0, 120_000_000, ROWS)
    rows = pa.table({"ts": times, "k": rng.permutation(ROWS), "x": rng.random(ROWS).round(3)}).cast(SCHEMA)
    bad = pa.table({"ts": [None], "k": [7], "x": [1.0]}, schema=SCHEMA)
    grouping = Grouping({"n": uc.Count(), "total": uc.Sum("x")}, uc.Fixed("1 minute"), by=("k",))
    lift = Lift(CompiledGrouping.of(grouping, SCHEMA), 3)
    parcels = lift(pa.concat_tables([rows, bad]), at=200_000_000)
    assert [parcel.kind for _, parcel in parcels] == ["rows"] * 3
    assert sum(parcel.table.num_rows for _, parcel in parcels) == ROWS + 1
    want = {shard: sorted(part.table["key.0"].to_pylist()) for shard, part in lift(rows.slice(0, 50_000), 200_000_000)}
    for shard, parcel in parcels:
        assert set(want[shard]) <= set(parcel.table["k"].to_pylist())
    final = Final(grouping, SCHEMA)
    sent = [parcel for _, parcel in final.lift(1)(rows)]
    assert {parcel.kind for parcel in sent} == {"rows"}
    early, rest = final.cut(sent, 1 << 15)
    panes = pa.concat_tables(final.lean(final.merged(some)) for some in (early, rest))
    assert panes.num_rows == ROWS
    both = panes.select(["k", "total"]).sort_by("k")
    assert both.equals(rows.select(["k", "x"]).rename_columns(["k", "total"]).sort_by("k"))
