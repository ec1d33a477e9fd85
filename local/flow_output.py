"""The rows that a run in this process has given for one of its flows, and the result that they make.

Guarded by tests/local/test_local.py, tests/local/test_local_result.py and tests/flows/together/test_together.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from uuid import uuid4

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument
from ..flows.flow import Flow
from ..flows.flow_steps import weight_of
from ..flows.graph import Feed, Graph, Leaf, Step
from ..flows.left_out import left_out_schema
from ..flows.result import Result
from ..flows.source_watermarks import SourceWatermarks
from ..panes.grouping.grouping import DIFF
from ..panes.grouping.stage import GroupingStage
from ..panes.shard.shard import Shard
from ..panes.state.seed import Seed
from ..panes.transforms import applied
from .local_inputs import LocalInput
from .run_tables import TableWriter
from .unreadable_source_rows import UnreadableRows

_STEP = pa.field("step", pa.int64())
"""The column with the entry of the script that a row came from."""


@dataclass
class RunRecord:
    """All that a run has noted of the rows of its steps, beside its results."""

    shards: dict[Step, Shard]
    unreadable: UnreadableRows
    left_out: list[tuple[int, int, pa.Table]] = field(default_factory=list)
    """Rows that were left out: the entry of the script, the number of the step, and the rows."""
    dropped: list[tuple[int, int, int]] = field(default_factory=list)
    """Rows that were late: the entry, the number of the step, and the place of the row in the entry."""
    watermarks: list[SourceWatermarks] = field(default_factory=list)


class FlowOutput:
    """The rows that a run has given for a flow so far."""

    def __init__(self, flow: Flow, graph: Graph, place: int) -> None:
        self.flow, self.ends, self.steps = flow, graph.results[place], graph.steps_of(place)
        self.rows: list[pa.Table] = []
        self.bad: list[tuple[int, int, pa.Table]] = []
        """Rows without a step that have no weight: the entry, zero, and the rows as rows that were left out."""
        self.watermarks: list[int] = []
        """The output watermark after each entry."""
        if "step" in self.schema.names:
            raise InvalidArgument(
                "the result of flow.run() has the entry of the script in 'step', and the flow gives a column of that "
                "name too: name it otherwise, or leave it out with select()"
            )

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the flow."""
        whole = len(self.ends) == 1 and not self.flow.transforms and isinstance(self.ends[0].origin, Step)
        return self.ends[0].schema if whole else self.flow.schema

    @property
    def leaves(self) -> list[Leaf]:
        """The sources of the flow."""
        feeds = [*(feed for step in self.steps for feed in step.feeds), *self.ends]
        return list(dict.fromkeys(feed.origin for feed in feeds if isinstance(feed.origin, Leaf)))

    def show(self, place: int, feed: Feed, rows: pa.Table) -> None:
        """Take the rows that an entry has given at an end of the flow."""
        shown = applied(feed.transforms, rows)
        if shown.num_rows:
            self.rows.append(from_entry(shown, place))

    def note_watermark(self, shards: Mapping[Step, Shard]) -> None:
        """Note the output watermark after an entry, if the flow has steps."""
        ends = [shards[feed.origin] for feed in self.ends if isinstance(feed.origin, Step)]
        if ends:
            self.watermarks.append(min(shard.operator.hold(shard.state) for shard in ends))

    def result(
        self,
        record: RunRecord,
        again: Callable[[Flow], Result] | None,
        note: str,
        save: Callable[[str, str], Seed] | None = None,
    ) -> Result:
        """The result so far. `again` runs the flow in another mode, and `save` writes a seed of a run with an id."""
        panes = pa.concat_tables([self.schema.append(_STEP).empty_table(), *self.rows])
        own = {step.number for step in self.steps}
        unreadable = list(record.unreadable.shown(self.steps, self.ends))
        counts = []
        for step in self.steps:
            shard = record.shards[step]
            count = sum(rows.num_rows for on_way, rows in unreadable if on_way is step)
            held = shard.operator.count_entries(shard.state)
            counts.append({**asdict(shard.state.counts), "unreadable": count, "held": held})
        none = left_out_schema(record.unreadable.row).append(_STEP)
        first = [from_entry(rows, 0) for _, rows in unreadable]
        left_out = [*self.bad, *(one for one in record.left_out if one[1] in own)]
        by_step = [rows for *_, rows in sorted(left_out, key=lambda one: one[:2])]
        dropped = sorted((one for one in record.dropped if one[1] in own), key=lambda one: one[:2])
        fed = [LocalInput(leaf=one.leaf, feed=one, step=step) for step in self.steps for one in step.feeds if one.leaf]
        flow, run, leaves = self.flow, uuid4().hex, self.leaves
        last = flow.stages[-1] if flow.stages else None
        names = {leaf.settings.name for leaf in leaves}
        return Result(
            panes,
            of_stages=counts,
            dropped_rows=[(place, row) for place, _, row in dropped],
            output_watermarks=self.watermarks,
            rows_kept=all(one.keeps_rows for one in fed),
            left_out=pa.concat_tables([none.empty_table(), *first, *by_step]),
            last=last.grouping if isinstance(last, GroupingStage) else None,
            each_batch=flow.settings.each_batch,
            write=None if again is None else TableWriter(flow=flow, panes=panes, again=again, run=run),
            watermarks=[one.of(names) for one in record.watermarks],
            weight=weight_of(flow) or DIFF,
            times={leaf.settings.name: leaf.settings.time for leaf in leaves},
            computed={leaf.settings.name: made for leaf in leaves if (made := leaf.settings.event_time) is not None},
            note=note,
            save=None if save is None else lambda folder: save(run, folder),
        )


def from_entry(rows: pa.Table, place: int) -> pa.Table:
    """Rows with the entry of the script that they came from."""
    return rows.append_column(_STEP, pa.array(np.full(rows.num_rows, place)))


__all__ = ["FlowOutput", "RunRecord", "from_entry"]
