"""Pictures of rolling results: what stands, and what was corrected."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.errors import InvalidArgument

mpl.use("agg")


def result() -> Any:
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "user": pa.string(), "x": pa.int64()})
    flow = uc.flow(schema, watermark="1 hour").rolling("1 minute", by="user").combine(n=uc.Count(), total=uc.Sum("x"))
    arrivals = [(10, "ada", 1), (40, "ada", 4), (20, "bob", 3), (5, "ada", 2)]
    return flow.run([uc.Elements([{"ts": t * 1_000_000, "user": user, "x": x}]) for t, user, x in arrivals])


def test_points_that_stand_and_those_that_were_retracted() -> None:
    axes = uc.plot.rolling(result(), by="user", title="a title").axes[0]
    points = {c.get_label(): [tuple(row[1:]) for row in c.get_offsets().tolist()] for c in axes.collections}
    heights = [[row[1] for row in c.get_offsets().tolist()] for c in axes.collections]
    assert sorted(heights) == [[1.0], [2.0, 3.0, 7.0], [3.0], [5.0]]
    assert {"user=ada", "user=bob", "shown before, and retracted"} <= set(points)
    assert axes.get_ylabel() == "total"
    assert axes.get_title() == "a title"


def test_what_cannot_be_drawn() -> None:
    with pytest.raises(InvalidArgument, match="no column 'event_time'"):
        uc.plot.rolling(pa.table({"x": [1]}))
    with pytest.raises(InvalidArgument, match="one of"):
        uc.plot.rolling(result(), "user")
    with pytest.raises(InvalidArgument, match="nothing to draw"):
        uc.plot.rolling(result(), where={"user": "eve"})
