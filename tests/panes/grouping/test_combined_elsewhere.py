"""Rows that other tasks combined to cells give the panes that the rows themselves give."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import opened
import pyarrow as pa
import pytest
from combining import drawn_combining
from opened import run_script
from reference.byrule.agree import combiners_of
from reference.byrule.transcripts import SCHEMA
from scripts import scripted
from seeds import seeds

from uncombine.flows.graph import Feed
from uncombine.local.script_run import LocalRun
from uncombine.panes.parcels import AT, Parcel
from uncombine.panes.shard.arrivals import Arrival

r = random.Random()


class CombinedRun(LocalRun):
    """A run whose steps get the cells that the lift makes of some pieces of the rows of a bundle."""

    combined = 0

    def _arrivals(self, feed: Feed, *others: Any) -> dict[int, Arrival]:
        step = next(one for one in self.graph.steps if feed in one.feeds)
        lift = step.stage.lift(feed.output_schema, 1, False)
        came: Mapping[int, Arrival] = super()._arrivals(feed, *others)
        return {at: self._cells(lift, arrival, at) for at, arrival in came.items()}

    def _cells(self, lift: Any, arrival: Arrival, at: int) -> Arrival:
        rows, cells = list[pa.Table](), list[Parcel]()
        for table in arrival.rows:
            cut = r.randrange(table.num_rows + 1)
            for piece in (table.slice(0, cut), table.slice(cut)):
                for _, parcel in lift(piece.select(lift.compiled.schema.names), at):
                    if parcel.kind == "cells":
                        cells.append(parcel)
                    else:
                        rows.append(parcel.table.drop_columns([AT]))
        CombinedRun.combined += len(cells)
        return replace(arrival, rows=rows, cells=cells)


def panes(seed: int) -> list[str]:
    """The panes of a script, entry by entry, in any order within one."""
    script, options = scripted(seed)
    table = run_script(script, **options, **combiners_of(options), schema=SCHEMA).panes
    return sorted(f"{row['step']:5} {row}" for row in table.to_pylist())


@pytest.mark.weekly
@pytest.mark.parametrize("first", seeds(200, 6_000, step=20))
def test_cells_give_the_panes_of_their_rows(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before = CombinedRun.combined
    for seed in range(first, first + 20):
        expected = panes(seed)
        with monkeypatch.context() as patch, drawn_combining(seed):
            patch.setattr(opened, "LocalRun", CombinedRun)
            r.seed(seed)
            assert panes(seed) == expected, f"seed {seed}"
    assert CombinedRun.combined > before
