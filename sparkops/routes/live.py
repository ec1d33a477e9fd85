"""The graph of a flow on Spark, for replays and streams: each step sends packed rows to the next one.

Guarded by tests/sparkops/test_union.py and tests/sparkops/test_replay.py.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from ...flows.graph import Feed, Graph, Leaf, Step, check_ends, graph_of, leaf_columns
from ...flows.left_out import LeftOut, beside, left_out_schema
from ...panes import Watermarks
from ...panes.state.operator import StatefulOperator
from ...panes.transforms import Transform
from ..inputs import Input
from ..wire import WIRE_DDL
from .base import Route
from .pass_through import Through, passed_through
from .tasks import Clocks, LiftLive, source_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, eq=False)
class Live(Route):
    """Runs the steps of a flow as shards that take bundles in order of processing time."""

    beside: bool = False
    """True if the rows that steps leave out are shown beside the result, in a column of their own."""

    def df(self) -> DataFrame:
        check_ends(self.graph)
        return united([self._rows(feed) for feed in self.graph.ends])

    @abstractmethod
    def run_step(self, step: Step, packed: DataFrame, then: LiftLive | None) -> DataFrame:
        """Run a step over packed rows; the result is packed rows again, for `then` or to be shown."""

    @abstractmethod
    def shown(self, feed: Feed, packed: DataFrame) -> DataFrame:
        """The rows of the result, from the packed rows of the last step."""

    @cached_property
    def forms(self) -> Mapping[Step, LeftOut]:
        """The form in which each step shows the rows that it leaves out; none if they are not shown."""
        return self.graph.left_out if self.beside else {}

    @property
    def left_out_schema(self) -> pa.Schema | None:
        """The columns of rows that were left out, if they are shown."""
        return left_out_schema(self.graph.left_out_row) if self.beside else None

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result, with those of rows that were left out if they are shown."""
        rows, result = self.left_out_schema, self.flow.schema
        return result if rows is None else beside(result.empty_table(), rows.empty_table()).schema

    @property
    def whole(self) -> bool:
        """True if the watermark runs from the beginning to the end of time in each bundle."""
        return self.flow.settings.each_batch

    @cached_property
    def graph(self) -> Graph:
        """The steps of the flow, and their feeds."""
        return graph_of(self.flow)

    def ids_of(self, step: Step) -> tuple[int, ...]:
        """The numbers of the shards of a step."""
        return self.ids

    def lift(self, step: Step, place: int) -> LiftLive:
        """The task that sends the rows of a feed to the shards of its step."""
        feed, ids = step.feeds[place], self.ids_of(step)
        stage, leaf = step.stage, feed.leaf
        port = step.ports[place] if step.ports else 0
        if leaf is None:
            lift = LiftLive(
                stage=stage,
                schema=feed.schema,
                transforms=feed.transforms,
                ids=ids,
                timed=step.timed,
                input=place,
                port=port,
            )
            return replace(lift, rows=self.beside)
        needed = leaf_columns(step, feed, leaf)
        wanted = frozenset(feed.schema.names) if self.beside else needed
        schema = pa.schema([field for field in feed.schema if field.name in wanted])
        time, strategy = leaf.settings.time, leaf.settings.strategy
        future, guards = leaf.settings.max_future, step.guards
        return LiftLive(
            stage=stage,
            schema=schema,
            transforms=feed.transforms,
            ids=ids,
            time=time,
            strategy=strategy,
            timed=step.timed,
            max_future=future,
            guards=guards,
            input=place,
            port=port,
            rows=self.beside,
            needed=needed,
            left_out=self.forms.get(step),
            until=leaf.settings.until,
            latest=leaf.settings.latest,
        )

    def then(self, step: Step) -> LiftLive | None:
        """The task that sends the panes of a step to the next one; None for the last step."""
        reader = self.graph.reader(step)
        return None if reader is None else self.lift(*reader)

    def after(self, last: Step) -> tuple[Transform, ...]:
        """The transforms between a last step and the result."""
        return next(feed.transforms for feed in self.graph.ends if feed.origin is last)

    def operator(self, step: Step) -> partial[StatefulOperator]:
        """The maker of the operator of a step, over the columns that its rows have on Spark."""
        return partial(step.stage.operator, *self.lifted(step))

    def lifted(self, step: Step) -> list[pa.Schema]:
        """The columns of the rows that reach the shards of a step, for each port."""
        return [self.lift(step, place).lifted for place in step.firsts]

    def inputs(self, step: Step) -> tuple[Watermarks, ...]:
        """The watermarks of each input of a step before any report."""
        return tuple(
            Watermarks.of_step(source_names(self.ids_of(feed.origin)), feed.back)
            if isinstance(feed.origin, Step)
            else feed.origin.watermarks(feed.back)
            for feed in step.feeds
        )

    def packed(self, step: Step) -> DataFrame:
        """The rows of all feeds of a step, on their way to its shards, and the clocks of all other sources.

        Time passes for all steps, so timers of the step are due by the processing times of other sources too.
        """
        frames = [self._sent(feed, self.lift(step, i)) for i, feed in enumerate(step.feeds)]
        own = self.graph.leaves_of(step)
        for leaf in self.graph.leaves:
            at = self.clock(leaf)
            if at and leaf not in own:
                frames.append(self.read(leaf).mapped(Clocks(self.ids), [at], at, WIRE_DDL, self.metric))
        return united(frames)

    def _sent(self, feed: Feed, lift: LiftLive) -> DataFrame:
        if isinstance(feed.origin, Step):
            return self.run_step(feed.origin, self.packed(feed.origin), lift)
        columns = list(lift.schema.names)
        return self.read(feed.origin).mapped(lift, columns, self.clock(feed.origin), WIRE_DDL, self.metric)

    def clock(self, leaf: Leaf) -> str | None:
        """The column with the processing times of a source; "" for the time of each batch, None for no times."""
        return leaf.settings.processing_time or ""

    def _rows(self, feed: Feed) -> DataFrame:
        """The rows of a part of the result."""
        if isinstance(feed.origin, Step):
            return self.shown(feed, self.run_step(feed.origin, self.packed(feed.origin), None))
        columns = list(feed.schema.names)
        form = self.graph.left_out_of_ends[feed] if self.beside else None
        through = Through(feed.transforms, self.flow.schema, left_out=form)
        return passed_through(self.read(feed.origin), through, columns, self.schema, self.metric)

    def read(self, leaf: Leaf) -> Input:
        """The rows of a source on Spark."""
        input: Input = leaf.source.route_input  # type: ignore[attr-defined]
        return input


def united(frames: Sequence[DataFrame]) -> DataFrame:
    """The rows of all DataFrames."""
    return reduce(lambda one, other: one.union(other), frames)


__all__ = ["Live", "united"]
