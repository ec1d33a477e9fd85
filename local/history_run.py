"""A run over the past of a flow, to its end and no further, in this process.

Guarded by tests/flows/test_histories.py and tests/flows/evolution/test_evolution.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ..flows.flow import Flow
from ..flows.graph import Feed, Step
from ..panes.rows.net_rows import net_rows
from ..panes.shard.arrivals import Arrival
from ..panes.shard.shard import Shard
from ..panes.watermarks.watermarks import InputWatermarks, Watermarks
from ..windows.times import MIN_TIME
from .flow_output import FlowOutput
from .local_inputs import Part
from .script_run import LocalRun


class HistoryRun(LocalRun):
    """A run over the past, whose panes are kept as the steps gave them.

    With the watermarks of a former flow it comes as far as that one, and no further.
    """

    def __init__(
        self,
        flow: Flow,
        marks: Sequence[Watermarks | None] = (),
        now: int | None = None,
        closed: Mapping[int, int] | None = None,
    ) -> None:
        super().__init__(flow)
        self.panes: dict[Step, list[pa.Table]] = {}
        feeds = [feed for step in self.graph.steps for feed in step.feeds if feed.leaf is not None]
        pairs = zip(feeds, marks or [None] * len(feeds), strict=True)
        self.marks = {feed: one for feed, one in pairs if one is not None}
        self.last = now
        self.closed = closed or {}
        self.shards.update({step: self._held(step, shard) for step, shard in self.shards.items()})

    def play(self) -> None:
        """Play the rows of all sources, and come as far as the former flow had come."""
        self.play_tables()
        if self.last is not None:  # only now, so that timers which rows have set are due by then
            self.now = max(self.now, self.last)
        if self.marks:
            parts: dict[Feed, Mapping[int, Part]] = {feed: {self.now: _end(one)} for feed, one in self.marks.items()}
            self._turn(1, parts, self.now)

    def _held(self, step: Step, shard: Shard) -> Shard:
        """The shard, in which no watermark passes that of the former flow."""
        inputs = tuple(
            replace(own, hold=self.marks[feed].least) if feed in self.marks else own
            for feed, own in zip(step.feeds, shard.watermarks.inputs, strict=True)
        )
        state = replace(shard.state, closed=self.closed.get(step.number, MIN_TIME))
        return replace(
            shard, state=state, watermarks=InputWatermarks(inputs, shard.watermarks.least, shard.watermarks.now)
        )

    def _show_panes(self, place: int, output: FlowOutput, feed: Feed, panes: pa.Table) -> None:
        assert isinstance(feed.origin, Step)
        if panes.num_rows:
            self.panes.setdefault(feed.origin, []).append(panes)


def _end(marks: Watermarks) -> Part:
    """The end of the rows of a former flow, with its watermarks."""
    return Part(Arrival(marks=marks), np.zeros(0, np.int64))


def net_panes(step: Step, tables: Sequence[pa.Table]) -> pa.Table:
    """The panes of a step that are left after their retractions."""
    panes, diff = pa.concat_tables(tables), step.stage.output().diff
    return panes if diff is None else net_rows(panes, diff)


__all__ = ["HistoryRun", "net_panes"]
