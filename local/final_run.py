"""Final panes of a run in this process, combined by threads: rows where they are read, and then what they add up to.

It is the way in which Spark's tasks combine bounded input, in one process: each table of rows becomes parcels of cells
(`FinalLift`), and the parcels of a shard are merged at once. The panes are those that the operators of `LocalRun` give
for the same rows, but in another order, and plain sums of floats may differ in their last bits.

Guarded by tests/local/test_local_final.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from warnings import catch_warnings, simplefilter

import numpy as np
import pyarrow as pa

from ..combiners.from_columns import calls_functions
from ..combiners.rows.columns import flat
from ..errors import UnreadableFile
from ..flows.graph import Graph, Leaf, Step, leaf_columns
from ..panes.grouping.final_panes import Final, FinalLift, over_final_panes
from ..panes.grouping.grouping import Grouping
from ..panes.grouping.lift import keys_alone
from ..panes.grouping.stage import GroupingStage
from ..panes.parcels import Parcel
from ..panes.transforms import applied
from ..triggers import AfterWatermark, Repeatedly, fires_only_at_the_end
from ..windows import Custom, Sliding, time_column
from .source_rows import SourceRows
from .threads import in_threads

ROWS = 1 << 20
"""The largest number of rows that are combined at once, and of a table that one thread handles as well."""

SHARDS = 8
"""The number of shards, which are merged by themselves. It is the same for any number of threads, since the order of
panes, and so the last bits of sums of floats in a next grouping, depend on it."""


def final_source(graph: Graph) -> SourceRows | None:
    """The source of a flow whose rows are many and are combined by threads; None if there is none."""
    source = graph.leaves[0].source
    many = isinstance(source, SourceRows) and source.many
    return source if many and why_not_final(graph) is None else None  # type: ignore[return-value]


def why_not_final(graph: Graph) -> str | None:
    """The reason why the panes of a flow cannot be combined by threads; None if they can.

    They can if each window of each grouping has one pane, when it expires, whatever the order of rows is.
    """
    if len(graph.results) > 1:
        return "several flows run together"
    if len(graph.leaves) != 1 or not graph.steps:
        return "the flow has several sources" if graph.steps else "the flow has no grouping"
    settings = graph.leaves[0].settings
    if settings.strategy is not None:
        return "watermark= is given"
    if settings.processing_time is not None:
        return "processing_time= is given"
    for step in graph.steps:
        if not isinstance(step.stage, GroupingStage):
            return f"stage {step.number} is a step over single rows"
        if (reason := _keeps_to_operators(step.stage.grouping)) is not None:
            return f"stage {step.number} has {reason}"
    feeds = [*(feed for step in graph.steps for feed in step.feeds), *graph.ends]
    if any(transform.functions for feed in feeds for transform in feed.transforms):
        return "a step calls a function of yours, which need not be safe in several threads"
    return None


def _keeps_to_operators(grouping: Grouping) -> str | None:
    """The part of a grouping because of which it needs its operator."""
    window, trigger = grouping.window, grouping.effective_trigger
    gaps = isinstance(window, Sliding) and int(window.period) > int(window.size)
    if isinstance(window, Custom) or window.columns or gaps:
        return f"{window!r}, which can leave rows out"
    while isinstance(trigger, Repeatedly):
        trigger = trigger.child
    if not (isinstance(trigger, AfterWatermark) and fires_only_at_the_end(trigger)):
        return "a trigger that can fire at other times than the end of a window"
    if grouping.mode.startswith("discarding") and grouping.changelog:
        return f"mode={grouping.mode!r} over a changelog, which shows windows of which no row is left"
    if any(map(calls_functions, grouping.combiners.values())):
        return "a combiner with a function of yours, which need not be safe in several threads"
    if grouping.closing == "always":
        return "closing='always', which shows a window again"
    return None


def are_many(table: pa.Table) -> bool:
    """True for a table with more rows than one thread handles as well."""
    return bool(table.num_rows > ROWS)


def in_slices(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Tables, large ones in parts."""
    for table in tables:
        for start in range(0, table.num_rows, ROWS):
            yield table.slice(start, ROWS)


@dataclass(frozen=True, eq=False)
class FinalStep:
    """A grouping with final panes."""

    step: Step
    grouping: Grouping

    @classmethod
    def all(cls, graph: Graph) -> list[FinalStep]:
        """The groupings of a graph, in their order."""
        stages = [(step, step.stage) for step in graph.steps if isinstance(step.stage, GroupingStage)]
        (first, stage), *later = stages
        after = [cls(step, over_final_panes(stage.grouping, stage.transforms)) for step, stage in later]
        return [cls(first, stage.grouping), *after]

    @property
    def columns(self) -> list[str]:
        """The columns before the transforms that the step needs."""
        feed = self.step.feeds[0]
        wanted = leaf_columns(self.step, feed, feed.leaf) if isinstance(feed.leaf, Leaf) else feed.schema.names
        return [name for name in feed.schema.names if name in wanted]

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the rows after the transforms, made of `columns`."""
        feed = self.step.feeds[0]
        return applied(feed.transforms, feed.schema.empty_table().select(self.columns)).schema

    @cached_property
    def final(self) -> Final:
        """The compiled grouping."""
        return Final(self.grouping, self.schema)

    @property
    def coded(self) -> frozenset[str]:
        """The columns whose texts can stay dictionaries."""
        sees_rows = self.step.feeds[0].transforms or self.final.as_rows
        return frozenset() if sees_rows else keys_alone(self.final.operator.compiled)

    def panes(self, readers: Sequence[Iterator[pa.Table]]) -> tuple[list[pa.Table], int]:
        """The panes of rows that have `columns`; and the number of rows that had no usable time."""
        final = self.final
        lift = final.lift(SHARDS)
        lifted = in_threads(lambda table: self._lifted(lift, table), readers)
        shards: dict[int, list[Parcel]] = {}
        for parcels, _ in lifted:
            for shard, parcel in parcels:
                shards.setdefault(shard, []).append(parcel)
        bad = sum(some for _, some in lifted)
        del lifted
        merge = final.panes_of_rows if final.as_rows else lambda parcels: final.lean(final.merged(parcels))
        lean = in_threads(merge, [(shards.pop(shard) for shard in sorted(shards))])
        return [final.whole(table) for table in lean], bad

    def _lifted(self, lift: FinalLift, table: pa.Table) -> tuple[list[tuple[int, Parcel]], int]:
        rows = applied(self.step.feeds[0].transforms, table)
        return lift(rows), rows.num_rows - int(np.count_nonzero(self._usable(rows)))

    def _usable(self, rows: pa.Table) -> np.ndarray:
        return time_column(flat(rows[self.grouping.time]))[1]

    def bad(self, readers: Sequence[Iterator[pa.Table]]) -> pa.Table:
        """The rows without a usable time, after the transforms, in the order in which they come.

        A column that the readers do not give is null.
        """
        feed = self.step.feeds[0]

        def bad_rows_of(table: pa.Table) -> pa.Table:
            rows = applied(feed.transforms, table)
            rows = rows.filter(pa.array(~self._usable(rows)))
            names = rows.column_names
            columns = [rows[f.name] if f.name in names else pa.nulls(rows.num_rows, f.type) for f in feed.output_schema]
            return pa.Table.from_arrays(columns, schema=feed.output_schema)

        return pa.concat_tables([feed.output_schema.empty_table(), *in_threads(bad_rows_of, readers)])


def bad_rows(source: SourceRows, step: FinalStep, count: int) -> pa.Table:
    """The rows of a source without a usable time, of which there are so many.

    If a file is damaged in a column that the step does not need, they come without such columns: its good rows came
    too.
    """
    with catch_warnings():
        simplefilter("ignore")  # the first reading has warned of the same files
        with suppress(UnreadableFile):
            names, needed = step.step.feeds[0].schema.names, frozenset(step.columns)
            whole = step.bad(source.readers(names, needed=needed))
            if whole.num_rows == count:
                return whole
        return step.bad(source.readers(step.columns))


__all__ = ["FinalStep", "are_many", "bad_rows", "final_source", "in_slices", "why_not_final"]
