"""Where rows go: one window of a key always to one shard."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.panes.parcels import Lift

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int64()})


@pytest.mark.parametrize("window", [uc.Fixed("1 second"), uc.Calendar("day"), uc.Global()], ids=repr)
@pytest.mark.parametrize("by", [(), ("x",)])
def test_rows_of_one_time_and_of_several_go_to_the_same_shard(window: uc.Window, by: tuple[str, ...]) -> None:
    """Rows of one processing time travel as cells, those of several as rows."""
    trigger = uc.Repeatedly(uc.AfterCount(1))
    grouping = uc.Grouping({"n": uc.Count()}, window, trigger, by=by)
    lift = Lift(uc.Operator(grouping, SCHEMA), 16, timed=True)
    for second in range(20):
        rows = pa.table({"ts": [second * 1_000_000] * 2, "x": [second] * 2}).cast(SCHEMA)
        one, several = lift(rows, 5), lift(rows, np.array([5, 6]))
        assert [parcel.kind for _, parcel in one + several] == ["cells", "rows"]
        assert [shard for shard, _ in one] == [shard for shard, _ in several]
