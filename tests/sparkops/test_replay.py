"""The end of a replay. `test_flows.py` has random replays, and `test_replay_golden.py` published results."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from bounded import bounded_flow
from streams import NOW

import uncombine as uc


def plain(panes: pa.Table) -> list[str]:
    """Panes without an order."""
    extra = [name for name in ("step",) if name in panes.column_names]
    return sorted(map(repr, panes.drop_columns(extra).to_pylist()))


LAST_ROW = pa.table({"k": ["a"], "ts": [5_000_000], NOW: [7_000_000]}).cast(
    pa.schema({"k": pa.string(), "ts": pa.timestamp("us", "UTC"), NOW: pa.timestamp("us", "UTC")})
)


def two_groupings(source: Any, trigger: uc.Trigger) -> Any:
    first = source.window(uc.Fixed("1 minute"), trigger).combine(by="k", n=uc.Count())
    return first.window(uc.Fixed("1 minute"), trigger).combine(total=uc.Sum("n"))


def test_the_end_of_the_input_is_a_bundle_of_its_own_in_every_grouping() -> None:
    """The last row gives an early pane and the close the pane on time, and the next grouping takes them one by one."""
    early = uc.AfterWatermark(early=uc.AfterCount(1))
    source = bounded_flow(
        [LAST_ROW], "ts", uc.PerSource("k"), shards=2, processing_time=NOW, replay=True, close_at_end=True
    )
    replay = two_groupings(source, early).df.toArrow()
    local = two_groupings(uc.flow(LAST_ROW.schema, watermark=uc.PerSource("k"), processing_time=NOW), early)
    want = local.run([uc.Elements(LAST_ROW), uc.Watermark(None)])
    assert plain(replay) == plain(want)
    assert want["step"].to_pylist() == [0, 1, 1, 1, 1]  # one early pane, then two values, each after its retraction
