"""A flow in the middle of a run in this process: a shard for each of its steps, and the output so far.

Guarded by tests/local/test_local.py and tests/flows/test_union.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from warnings import catch_warnings, simplefilter, warn

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument, UnreadableFile
from ..flows.flow import Flow
from ..flows.graph import Feed, Graph, Leaf, Step, check_ends, graph_of, leaf_columns
from ..flows.left_out import left_out_schema, unreadable_rows
from ..flows.reading import good
from ..flows.result import Result, SourceWatermarks
from ..panes.grouping.stage import GroupingStage
from ..panes.shard.arrivals import Arrival
from ..panes.shard.shard import END, Instant, Shard, by_bundle
from ..panes.transforms import Transform, applied
from ..panes.watermarks.late_share import late_words
from ..panes.watermarks.watermarks import Watermarks
from ..tables import write_result
from ..windows.times import MAX_TIME, MIN_TIME
from .final_run import FinalStep, in_slices, why_not_final
from .inputs import InputNames, LocalInput, Part, source_tables
from .script import Clock, Elements, Entry, Watermark, instant
from .source_rows import SourceRows

_STEP = pa.field("step", pa.int64())
"""The column with the entry of the script that a row came from."""


class LocalRun:
    """A flow in the middle of a run."""

    def __init__(self, flow: Flow, idle_after: int | None = None) -> None:
        self.flow, self.idle_after, self.graph = flow, idle_after, graph_of(flow)
        self.leaves = self.graph.leaves
        check_ends(self.graph)
        self.shards = {step: self._start(step, idle_after) for step in self.graph.steps}
        self.now = MIN_TIME
        self.out: list[pa.Table] = []
        self.left_out: list[pa.Table] = []
        self.unreadable: dict[Leaf, list[pa.Table]] = {}
        """The rows of files that cannot be read."""
        self.dropped: list[tuple[int, int]] = []
        self.output_watermarks: list[int] = []
        self.watermarks: list[SourceWatermarks] = []
        self.schema = flow.schema
        if len(self.graph.ends) == 1 and not flow.transforms and isinstance(self.graph.ends[0].origin, Step):
            self.schema = self.graph.ends[0].schema
        if "step" in self.schema.names:
            raise InvalidArgument(
                "the result of flow.run() has the entry of the script in 'step', and the flow gives a column of that "
                "name too: name it otherwise, or leave it out with select()"
            )

    def _start(self, step: Step, idle_after: int | None) -> Shard:
        # The only source of what comes from another step is that step, which reports in every step.
        inputs = (
            feed.leaf.watermarks(feed.back, idle_after) if feed.leaf else Watermarks(back=feed.back)
            for feed in step.feeds
        )
        return Shard.start(step.operator(), *inputs, ports=step.ports)

    def all(self, entries: Sequence[Entry], done: Callable[[], object] = lambda: None) -> Result:
        """The result of a whole script; `done` is called after each entry."""
        names = InputNames(self.leaves)
        goes = [names.goes_to(place, entry) for place, entry in enumerate(entries)]
        tables = [_tables(leaf, entries, [to[i] for to in goes]) for i, leaf in enumerate(self.leaves)]
        for place, entry in enumerate(entries):
            rows = {leaf: some[place] for leaf, some, to in zip(self.leaves, tables, goes[place], strict=True) if to}
            self._entry(place, entry, rows)
            done()
        return self._result(partial(_again, idle_after=self.idle_after, entries=entries))

    def of_tables(self) -> Result:
        """The result of the rows of all sources, as one entry, and then the end."""
        sources = [leaf.source for leaf in self.leaves]
        own_rows = [source for source in sources if isinstance(source, SourceRows)]
        if own_rows and own_rows[0].many and why_not_final(self.graph) is None:
            self._final_panes(own_rows[0])
            return self._result(_of_tables)
        tables = [
            leaf.source.whole(_needed(self.graph, leaf), self._leave_out_of(leaf))
            for leaf in self.leaves
            if isinstance(leaf.source, SourceRows)
        ]
        rows = {leaf: table for leaf, table in zip(self.leaves, tables, strict=False) if table is not None}
        if len(rows) < len(self.leaves):
            raise InvalidArgument(
                "run() needs a script, since a source of the flow has columns and no rows: write flow.run(script)"
            )
        self._entry(0, Elements(()), rows)
        if not self.flow.settings.replay or self.flow.settings.close_at_end:
            self._entry(1, Watermark(None), {leaf: table.slice(0, 0) for leaf, table in rows.items()})
        self._warn_of_late_rows(rows)
        return self._result(_of_tables)

    def _warn_of_late_rows(self, rows: Mapping[Leaf, pa.Table]) -> None:
        """Warn if a step leaves out many rows of its sources, whose order nobody has written, as a script is."""
        for step in self.graph.steps:
            leaves = [feed.leaf for feed in step.feeds if feed.leaf is not None]
            if step.stage.drops_late and len(leaves) == len(step.feeds):
                late, count = self.shards[step].state.counts.dropped, sum(rows[leaf].num_rows for leaf in leaves)
                if (words := late_words(late, count, step.number)) is not None:
                    warn(words, stacklevel=6)

    def _final_panes(self, source: SourceRows) -> None:
        """Take the rows of a source through all groupings, each with final panes."""
        panes: list[pa.Table] = []
        for place, one in enumerate(FinalStep.all(self.graph)):
            before, first = panes, place == 0
            take = self._leave_out_of(self.leaves[0])
            readers = source.readers(one.columns, one.coded, leave_out=take) if first else [in_slices(before)]
            panes, bad = one.panes(readers)
            if bad:
                rows = _bad_rows(source, one, bad) if first else one.bad([in_slices(before)])
                self.shards[one.step], instants = self.shards[one.step].play({self.now: Arrival([rows])})
                self._leave_out(int(not first), one.step, instants)
        for table in panes:
            self._show(1, applied(self.graph.ends[0].transforms, table))
        self.output_watermarks += [MIN_TIME, MAX_TIME]

    def _entry(self, place: int, entry: Entry, rows: Mapping[Leaf, pa.Table]) -> None:
        """Take one entry through all steps, in their order; `rows` has the rows of each source that it goes to."""
        self.now = max(self.now, _time_of(entry))
        parts = self._parts(place, entry, rows)
        instants: dict[Step, list[Instant]] = {}
        for step in self.graph.steps:
            arrivals = [self._arrivals(feed, parts, instants) for feed in step.feeds]
            shard, instants[step] = self.shards[step].play(*arrivals, until=self.now)
            self.shards[step] = shard
            self._leave_out(place, step, instants[step])
            self._count_dropped(place, step, arrivals, instants[step], parts)
        self.watermarks.append(self._reached())
        for feed in self.graph.ends:
            if isinstance(feed.origin, Step):
                for one in instants[feed.origin]:
                    self._show(place, applied(feed.transforms, one.panes))
            elif feed.origin in rows:
                reading, here = feed.origin.source.reading, rows[feed.origin]
                if reading is not None:
                    here = good(here, reading.weight)
                self._show(place, applied(feed.transforms, here))
        ends = [self.shards[feed.origin] for feed in self.graph.ends if isinstance(feed.origin, Step)]
        if ends:
            self.output_watermarks.append(min(shard.operator.hold(shard.state) for shard in ends))

    def _reached(self) -> SourceWatermarks:
        """The watermarks of the sources before the rows of an entry, and after it."""
        after, moved_before = dict[str | None, int](), set[str | None]()
        for step in self.graph.steps:
            for feed, marks in zip(step.feeds, self.shards[step].watermarks.inputs, strict=True):
                if feed.leaf is not None and marks.least > MIN_TIME:
                    after.setdefault(feed.leaf.settings.name, min(marks.least + marks.back, MAX_TIME))
                    if marks.lag is not None:
                        moved_before.add(feed.leaf.settings.name)
        last = self.watermarks[-1].after if self.watermarks else {}
        return SourceWatermarks({**last, **{name: after[name] for name in moved_before}}, after)

    def _arrivals(
        self, feed: Feed, parts: Mapping[Feed, Mapping[int, Part]], instants: Mapping[Step, Sequence[Instant]]
    ) -> dict[int, Arrival]:
        """The rows of a feed as bundles for its step."""
        if isinstance(feed.origin, Step):
            return _passed_on(feed.transforms, instants[feed.origin], self.flow.settings.each_batch)
        return {at: part.arrival for at, part in parts.get(feed, {}).items()}

    def _leave_out(self, place: int, step: Step, instants: Sequence[Instant]) -> None:
        """Keep the rows that a step left out."""
        some = [one for one in instants if one.rows]
        if some:
            rows = self.graph.left_out[step].table(some)
            self.left_out.append(rows.append_column("step", pa.array(np.full(rows.num_rows, place))))

    def _leave_out_of(self, leaf: Leaf) -> Callable[[pa.Table], None]:
        """Takes the rows of a source that cannot be read. Threads call it, in any order."""
        return self.unreadable.setdefault(leaf, []).append

    def _unreadable(self) -> Iterator[tuple[Step | None, pa.Table]]:
        """The rows of sources that cannot be read, in their order, with the step that they were on their way to."""
        row = self._left_out_row
        for leaf, tables in self.unreadable.items():
            if not tables:
                continue
            rows = pa.concat_tables(tables).sort_by([("file", "ascending"), ("line", "ascending")])
            ways = ((step, i) for step in self.graph.steps for i, feed in enumerate(step.feeds) if feed.leaf is leaf)
            if (way := next(ways, None)) is None:
                yield None, unreadable_rows(rows, row)
            else:
                step, place = way
                port = step.ports[place] if step.ports else 0
                yield step, self.graph.left_out[step].unreadable(rows, port)

    @property
    def _left_out_row(self) -> pa.StructType:
        """The columns of rows that are left out: those of the inputs of all steps, or else of the sources."""
        forms = self.graph.left_out.values()
        return next((form.row for form in forms), pa.struct(list(self.leaves[0].schema)))

    def _parts(self, place: int, entry: Entry, rows: Mapping[Leaf, pa.Table]) -> dict[Feed, dict[int, Part]]:
        """The bundles of an entry for each feed from a source, by their processing time."""
        out: dict[Feed, dict[int, Part]] = {}
        for step in self.graph.steps:
            for feed, marks in zip(step.feeds, self.shards[step].watermarks.inputs, strict=True):
                if feed.leaf is None or feed.leaf not in rows:
                    continue
                if isinstance(entry, Watermark) and entry == Watermark(None):
                    out[feed] = {END: Part(Arrival(), np.zeros(0, np.int64))}
                    continue
                own = LocalInput(feed.leaf, feed, step)
                out[feed] = own.parts(place, entry, rows[feed.leaf], self.now, marks)
        self.now = max([self.now, *(at for some in out.values() for at in some if at < END)])
        return out

    def _count_dropped(
        self,
        place: int,
        step: Step,
        arrivals: Sequence[Mapping[int, Arrival]],
        instants: Sequence[Instant],
        parts: Mapping[Feed, Mapping[int, Part]],
    ) -> None:
        """Keep the places of rows whose window had expired, if the rows come from the script."""
        if any(feed.leaf is None for feed in step.feeds):
            return
        for one in instants:
            at = one.arrived
            if at is not None and len(late := one.result.left_out.get("late", ())):
                here = [parts[feed][at].places for feed in step.feeds if at in parts.get(feed, {})]
                places = np.concatenate(here)[late]
                self.dropped += [(place, int(row)) for row in places]

    def _show(self, place: int, rows: pa.Table) -> None:
        if rows.num_rows:
            self.out.append(rows.append_column("step", pa.array(np.full(rows.num_rows, place))))

    def _result(self, again: Callable[[Flow], Result]) -> Result:
        panes = pa.concat_tables([self.schema.append(_STEP).empty_table(), *self.out])
        unreadable = list(self._unreadable())
        counts = [
            {
                **asdict(shard.state.counts),
                "unreadable": sum(rows.num_rows for on_way, rows in unreadable if on_way is step),
                "held": shard.operator.count_entries(shard.state),
            }
            for step, shard in self.shards.items()
        ]
        none = left_out_schema(self._left_out_row).append(_STEP)
        first = [rows.append_column(_STEP, pa.array(np.zeros(rows.num_rows, np.int64))) for _, rows in unreadable]
        left_out = pa.concat_tables([none.empty_table(), *first, *self.left_out])
        fed = [LocalInput(feed.leaf, feed, step) for step in self.graph.steps for feed in step.feeds if feed.leaf]
        whole = all(one.keeps_rows for one in fed)
        last = self.flow.stages[-1] if self.flow.stages else None
        return Result(
            panes,
            of_stages=counts,
            dropped_rows=self.dropped,
            output_watermarks=self.output_watermarks,
            rows_kept=whole,
            left_out=left_out,
            last=last.grouping if isinstance(last, GroupingStage) else None,
            each_batch=self.flow.settings.each_batch,
            write=TableWriter(self.flow, panes, again),
            watermarks=self.watermarks,
        )


@dataclass(frozen=True)
class TableWriter:
    """Writes the panes of a flow into a table; in another mode the rows go through the flow again."""

    flow: Flow
    panes: pa.Table
    again: Callable[[Flow], Result]

    def __call__(self, target: str, keys: str | Sequence[str] | None) -> None:
        write_result(self.flow, target, keys, self._panes)

    def _panes(self, flow: Flow) -> pa.Table:
        return self.panes if flow is self.flow else self.again(flow).panes


def _bad_rows(source: SourceRows, step: FinalStep, count: int) -> pa.Table:
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


def _needed(graph: Graph, leaf: Leaf) -> frozenset[str] | None:
    """The columns of a source that a flow needs; None for all of them."""
    for step in graph.steps:
        for feed in step.feeds:
            if feed.leaf is leaf:
                at = leaf.settings.processing_time
                return leaf_columns(step, feed, leaf) | frozenset(() if at is None else (at,))
    return None


def _again(flow: Flow, idle_after: int | None, entries: Sequence[Entry]) -> Result:
    return LocalRun(flow, idle_after).all(entries)


def _of_tables(flow: Flow) -> Result:
    return LocalRun(flow).of_tables()


def _time_of(entry: Entry) -> int:
    """The processing time that an entry names, or the beginning of time."""
    return instant(entry.t if isinstance(entry, Clock) else entry.at, MIN_TIME)


def _tables(leaf: Leaf, entries: Sequence[Entry], goes: Sequence[bool]) -> list[pa.Table]:
    """The rows of the entries for a source, without rows where an entry has none for it."""
    own = [entry if here else Clock(0) for entry, here in zip(entries, goes, strict=True)]
    none = leaf.source.schema.empty_table()
    return [none if table is None else table for table in source_tables(leaf.source, leaf.settings, own)]


def _passed_on(transforms: Sequence[Transform], instants: Sequence[Instant], each_batch: bool) -> dict[int, Arrival]:
    """The panes of a step as bundles for the next one, each with the output watermark after it.

    Also the panes of a timer are a bundle, in which the watermark runs to the end of time with `each_batch`.
    """
    out = {}
    for at, steps in by_bundle(instants).items():
        rows = [applied(transforms, one.panes) for one in steps]
        whole = each_batch and any(table.num_rows for table in rows)
        out[at] = Arrival(rows, reports=[(None, one.output_watermark) for one in steps], whole=whole)
    return out


__all__ = ["LocalRun"]
