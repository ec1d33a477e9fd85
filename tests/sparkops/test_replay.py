"""Replays of history: the panes that a stream has given, whatever tasks and shards the rows are cut into."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from bounded import bounded_flow, cut
from reference.compare import SCHEMA, combiners
from scripts import apart, locally, scripted
from streams import MARK, NOW, ORIGIN, punctuated

import uncombine as uc
from uncombine.errors import InvalidArgument

MARKED = uc.Punctuated(MARK, source=ORIGIN)


def plain(panes: pa.Table) -> list[str]:
    """Panes without an order."""
    extra = [name for name in ("step", "late") if name in panes.column_names]
    return sorted(map(repr, panes.drop_columns(extra).to_pylist()))


def agree(seed: int) -> bool:
    """True if a replay can have the grouping of this seed; then both ways to run it give the same panes."""
    entries, options = scripted(seed)
    script = apart(entries)
    given = dict(options)
    diff, by = given.pop("diff"), given.pop("by")
    given["allowed_lateness"] = f"{options['allowed_lateness']} microseconds"
    parts = cut(pa.concat_tables(punctuated(script, SCHEMA)), 1 + seed % 4, seed)
    if options["granularity"] == "record":  # rows one by one are in the order of their task
        parts = [pa.concat_tables(punctuated(script, SCHEMA))]
    # Each shard decides which rows are before the output watermark and so count for no timestamp.
    shards = 1 if options["timestamp"] in ("earliest", "latest") or options["window"] == uc.Global() else 3
    flow = bounded_flow(parts, "ts", MARKED, seed, shards=shards, diff=diff, processing_time=NOW, replay=True)
    try:
        flow = flow.window(**given).combine(by=by, **combiners(options))
    except InvalidArgument as refused:
        if "can never fire on Global()" not in str(refused):
            raise
        return False
    want = locally(script, options)
    got = flow.df.toArrow()
    late = pc.equal(got["diff"], 0)
    assert plain(got.filter(pc.invert(late))) == plain(want)
    if options["late"] == "emit":
        rows = [{name: row[name] for name in SCHEMA.names} for row in got.filter(late)["late"].to_pylist()]
        known = want.late_rows()
        assert sorted(map(repr, rows)) == sorted(map(repr, [] if known is None else known.to_pylist()))
    return True


def test_random_scripts_give_the_panes_of_the_local_runner() -> None:
    assert sum(agree(seed) for seed in range(200)) > 150


@pytest.mark.soak
def test_many_random_scripts_give_the_panes_of_the_local_runner() -> None:
    for seed in range(200, 5_000):
        agree(seed)


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
    local = two_groupings(uc.local.source(LAST_ROW.schema, watermark=uc.PerSource("k"), processing_time=NOW), early)
    want = uc.local.run([uc.Elements(LAST_ROW), uc.Watermark(None)], local)
    assert plain(replay) == plain(want)
    assert want["step"].to_pylist() == [0, 1, 1, 1, 1]  # one early pane, then two values, each after its retraction
