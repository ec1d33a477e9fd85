"""Random chains of stages through the tasks of streams and replays, over several shards: as in the local runner."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from bounded import bounded_flow, cut
from reference.chains import NOON, SCHEMA, SECOND, Chain, case, later_stages, net, told
from streams import MARK, NOW, ORIGIN, Engine, punctuated, punctuated_schema, rows_flow, timed

import uncombine as uc
from uncombine.errors import InvalidArgument

MARKED = uc.Punctuated(MARK, source=ORIGIN)
SOME = [(0, 25), pytest.param((25, 2_025), marks=pytest.mark.soak)]


def flow(source: Any, chain: Chain, count: int) -> Any:
    """The first stages of a chain, with a step after them that keeps what Spark would do from being asked for."""
    for stage in chain.stages[:count]:
        options = {name: value for name, value in stage.options.items() if name != "by"}
        source = source.window(stage.window, **options).combine(by=stage.options["by"], **stage.combiners)
    return source.map(lambda panes: panes)


@pytest.mark.parametrize("seeds", SOME, ids=["some", "many"])
def test_replays_of_chains(seeds: tuple[int, int]) -> None:
    for seed in range(*seeds):
        chain, script = case(seed)
        rows = pa.concat_tables(punctuated(timed(script[:-1]), SCHEMA))
        left = []
        for count in range(1, len(chain.stages) + 1):
            settings: dict[str, Any] = {"processing_time": NOW, "replay": True, "close_at_end": True}
            settings |= {"shards": 1 + seed % 3, "diff": "d" if chain.changelog else None}
            source = bounded_flow(cut(rows, 1 + seed % 4, seed), "ts", MARKED, seed, **settings)
            left.append(net(flow(source, chain, count).df.toArrow()))
        assert later_stages(chain, left) is None, f"seed {seed}\n{told(chain, script)}"


@pytest.mark.parametrize("seeds", SOME, ids=["some", "many"])
def test_streams_of_chains(seeds: tuple[int, int]) -> None:
    """But for totals of all time, which a stream never closes."""
    played = 0
    for seed in range(*seeds):
        chain, script = case(seed)
        if any(stage.window == uc.Global() for stage in chain.stages):
            continue
        # Each later than all windows and what they wait; results with the time of the watermark need one a stage.
        ends = [uc.Watermark(NOON + 10 * i * 86_400 * SECOND, at=script[-1].at) for i in (1, 2, 3, 4)]
        batches, left = punctuated(timed([*script[:-1], *ends]), SCHEMA), []
        for count in range(1, len(chain.stages) + 1):
            settings: dict[str, Any] = {"processing_time": NOW, "diff": "d" if chain.changelog else None}
            source = rows_flow(punctuated_schema(SCHEMA), "ts", MARKED, 1 + seed % 3, **settings)
            try:
                engine = Engine(flow(source, chain, count), seed)
            except InvalidArgument:
                break
            panes, counts = zip(*(engine.batch(batch) for batch in batches), strict=True)
            assert all(number["rows_dropped"] == 0 for batch in counts for number in batch[1:] if number), seed
            left.append(net(pa.concat_tables(panes)))
        else:
            assert later_stages(chain, left) is None, f"seed {seed}\n{told(chain, script)}"
            played += 1
    assert played * 4 > seeds[1] - seeds[0]
