"""Flows in the middle of a run in this process: a shard for each of their steps, and the output so far.

Guarded by tests/local/test_local.py, tests/flows/test_union.py and tests/flows/together/test_together.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any
from warnings import warn

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument, level_of_user
from ..flows.changelog_reading import divided
from ..flows.flow import Flow
from ..flows.graph import Feed, Leaf, Step, check_ends, graph_of, graph_together
from ..flows.result import Result
from ..flows.seeds import corrections_of
from ..flows.source_watermarks import SourceWatermarks
from ..panes.grouping.stage import GroupingStage
from ..panes.shard.arrivals import Arrival, all_at_once
from ..panes.shard.shard import END, Instant, Shard, by_bundle, with_first
from ..panes.state.seed import Seed, SeedMaker, corrections
from ..panes.transforms import Transform, applied
from ..panes.watermarks.late_share import late_words
from ..panes.watermarks.watermarks import Watermarks
from ..windows.times import MAX_TIME, MIN_TIME
from .final_run import FinalStep, bad_rows, final_source, in_slices
from .flow_output import FlowOutput, RunRecord, from_entry
from .local_inputs import InputNames, LocalInput, Part, source_tables, turns
from .run_seeds import begun, require_reached, seed_of
from .script import Clock, Elements, Entry, Watermark, instant
from .source_rows import SourceRows
from .unreadable_source_rows import UnreadableRows

_STEP = pa.field("step", pa.int64())
"""The column with the entry of the script that a row came from."""

TURNS = 100
"""The most turns in which the rows of an entry are played. An interrupt loses one turn at most."""


@dataclass(frozen=True)
class Saved:
    """A run between two turns, to which an interrupt goes back."""

    place: int
    """The entry that is played next."""
    shards: Mapping[Step, Shard]
    lengths: Sequence[int]
    """The lengths of the lists of output."""


class UntilEnd:
    """Keeps the rows of a bounded step, of all its inputs, until its input ends: they are one bundle."""

    def __init__(self) -> None:
        self.kept: list[list[pa.Table]] = []

    def taken(self, arrivals: Sequence[Mapping[int, Arrival]]) -> list[dict[int, Arrival]]:
        """The arrivals of its inputs that a step takes now: none before the end."""
        self.kept = self.kept or [[] for _ in arrivals]
        for kept, some in zip(self.kept, arrivals, strict=True):
            kept += all_at_once(some).rows
        if not any(END in some for some in arrivals):
            return [{} for _ in arrivals]
        return [{END: Arrival(kept)} for kept in self.kept]


class LocalRun:
    """A flow in the middle of a run, or several that share steps."""

    def __init__(
        self, flow: Flow, idle_after: int | None = None, start: Seed | None = None, *, beside: Sequence[Flow] = ()
    ) -> None:
        self.flow, self.flows, self.idle_after, self.start = flow, (flow, *beside), idle_after, start
        self.graph = graph_together(self.flows) if beside else graph_of(flow)
        self.leaves = self.graph.leaves
        check_ends(self.graph)
        fresh = {step: self._start(step, idle_after) for step in self.graph.steps}
        self.shards = fresh if start is None else begun(flow, self.graph, fresh, start)
        self.now = max([MIN_TIME, *(shard.watermarks.now for shard in self.shards.values())])
        self.outputs = [FlowOutput(one, self.graph, place) for place, one in enumerate(self.flows)]
        self.record = RunRecord(self.shards, UnreadableRows(self.graph))
        self.first: dict[Step, list[pa.Table]] = {}
        self.until_end: dict[Step, UntilEnd] = {}
        if start is not None:
            self._show_corrections(start)
        self._save(0)

    def _start(self, step: Step, idle_after: int | None) -> Shard:
        # The only source of what comes from another step is that step, which reports in every step.
        inputs = (
            feed.leaf.watermarks(feed.back, idle_after) if feed.leaf else Watermarks(back=feed.back)
            for feed in step.feeds
        )
        return Shard.start(step.operator(), *inputs, ports=step.ports)

    def all(self, entries: Sequence[Entry], done: Callable[[], object] = lambda: None) -> Result:
        """The result of a whole script; `done` is called after each entry."""
        self.play_script(entries, done)
        return self._result(partial(_again, run=self, entries=entries), self._waiting())

    def play_script(self, entries: Sequence[Entry], done: Callable[[], object] = lambda: None) -> None:
        """Play a whole script; `done` is called after each entry."""
        names = InputNames(self.leaves)
        goes = [names.goes_to(place, entry) for place, entry in enumerate(entries)]
        with self._interruptible(len(entries)):
            tables = [_tables(leaf, entries, [to[i] for to in goes]) for i, leaf in enumerate(self.leaves)]
            for place, entry in enumerate(entries):
                some = zip(self.leaves, tables, goes[place], strict=True)
                self._entry(place, entry, {leaf: table[place] for leaf, table, to in some if to})
                done()

    def of_tables(self) -> Result:
        """The result of the rows of all sources, as one entry, and then the end."""
        self.play_tables()
        return self._result(_of_tables, self._waiting())

    def play_tables(self) -> None:
        """Take the rows of all sources as one entry, and then the end if they have one."""
        with self._interruptible():
            self._play_tables()

    def _play_tables(self) -> None:
        if (final := final_source(self.graph)) is not None:
            self._final_panes(final)
            return
        tables = [
            leaf.source.whole(self.record.unreadable.needed(leaf), self.record.unreadable.take(leaf))
            for leaf in self.leaves
            if isinstance(leaf.source, SourceRows)
        ]
        rows = {leaf: table for leaf, table in zip(self.leaves, tables, strict=False) if table is not None}
        if len(rows) < len(self.leaves):
            raise InvalidArgument(
                "run() needs a script, since a source of the flow has columns and no rows: write flow.run(script)"
            )
        if not self.flow.settings.replay:
            self.until_end = {step: UntilEnd() for step in self.graph.steps if step.stage.all_at_once}
        self._entry(0, Elements(()), rows)
        if not self.flow.settings.replay or self.flow.settings.close_at_end:
            self._entry(1, Watermark(None), {leaf: table.slice(0, 0) for leaf, table in rows.items()})
        self._warn_of_late_rows(rows)

    @contextmanager
    def _interruptible(self, entries: int | None = None) -> Iterator[None]:
        """Give an interrupt the result of all turns that were played to their end, as its attribute `result`."""
        try:
            yield
        except KeyboardInterrupt as interrupt:
            saved = self.saved
            self.shards.clear()
            self.shards.update(saved.shards)
            for one, length in zip(self._lists, saved.lengths, strict=True):
                del one[length:]
            where = "before its end" if entries is None else f"in entry {min(saved.place, entries - 1)} of {entries}"
            note = f"the run was interrupted {where}"
            results = [output.result(self.record, None, note) for output in self.outputs]
            interrupt.result = results if len(self.flows) > 1 else self._result(None, note)  # type: ignore[attr-defined]
            interrupt.add_note(
                f"{note}: `result` of this interrupt (sys.last_value.result in a shell) is its result so far"
            )
            raise

    def _save(self, place: int) -> None:
        self.saved = Saved(place, dict(self.shards), [len(one) for one in self._lists])

    @property
    def _lists(self) -> list[list[Any]]:
        record = self.record
        own = [one for output in self.outputs for one in (output.rows, output.bad, output.watermarks)]
        return [record.left_out, record.dropped, record.watermarks, *own]

    def _warn_of_late_rows(self, rows: Mapping[Leaf, pa.Table]) -> None:
        """Warn if a step leaves out many rows of its sources, whose order nobody has written, as a script is."""
        for step in self.graph.steps:
            leaves = [feed.leaf for feed in step.feeds if feed.leaf is not None]
            if step.stage.drops_late and len(leaves) == len(step.feeds):
                late, count = self.shards[step].state.counts.dropped, sum(rows[leaf].num_rows for leaf in leaves)
                if (words := late_words(late, count, step.number)) is not None:
                    warn(words, stacklevel=level_of_user())

    def _final_panes(self, source: SourceRows) -> None:
        """Take the rows of a source through all groupings, each with final panes."""
        panes: list[pa.Table] = []
        for place, one in enumerate(FinalStep.all(self.graph)):
            before, first = panes, place == 0
            take = self.record.unreadable.take(self.leaves[0])
            readers = source.readers(one.columns, one.coded, leave_out=take) if first else [in_slices(before)]
            panes, bad = one.panes(readers)
            if bad:
                rows = bad_rows(source, one, bad) if first else one.bad([in_slices(before)])
                self.shards[one.step], instants = self.shards[one.step].play({self.now: Arrival([rows])})
                self._leave_out(int(not first), one.step, instants)
        (output,) = self.outputs
        for table in panes:
            output.show(1, output.ends[0], table)
        output.watermarks += [MIN_TIME, MAX_TIME]

    def _entry(self, place: int, entry: Entry, rows: Mapping[Leaf, pa.Table]) -> None:
        """Take one entry through all steps, in their order; `rows` has the rows of each source that it goes to."""
        self.now = max(self.now, _time_of(entry))
        parts = self._parts(place, entry, rows)
        # The rows of several ends stand one end after the other, for each entry.
        for until, some in turns(parts, self.now, TURNS if all(len(one.ends) == 1 for one in self.outputs) else 1):
            self._turn(place, some, until)
            self._save(place)
        self.record.watermarks.append(self._reached())
        for output in self.outputs:
            for feed in output.ends:
                if isinstance(feed.origin, Leaf) and feed.origin in rows:
                    self._show_source(place, output, feed, feed.origin, rows[feed.origin])
            output.note_watermark(self.shards)
        self._save(place + 1)

    def _show_source(self, place: int, output: FlowOutput, feed: Feed, leaf: Leaf, rows: pa.Table) -> None:
        """Show the rows of a source that come to no step."""
        if (reading := leaf.source.reading) is not None:
            rows, bad = divided(rows, reading.weight)
            if bad.num_rows:
                told = self.graph.left_out_of_ends[feed].bad(bad.select(feed.schema.names))
                output.bad.append((place, 0, from_entry(told, place)))
        output.show(place, feed, rows)

    def _turn(self, place: int, parts: Mapping[Feed, Mapping[int, Part]], until: int) -> None:
        """Take some bundles of an entry through all steps, and the timers that are due by then."""
        instants: dict[Step, Sequence[Instant]] = {}
        for step in self.graph.steps:
            arrivals = [self._arrivals(feed, parts, instants) for feed in step.feeds]
            if step in self.until_end:
                arrivals = self.until_end[step].taken(arrivals)
            self.shards[step], played = self.shards[step].play(*arrivals, until=until)
            instants[step] = with_first(played, self.first.pop(step, []) if played else [])
            self._leave_out(place, step, instants[step])
            self._count_dropped(place, step, arrivals, instants[step], parts)
        for output in self.outputs:
            for feed in output.ends:
                if isinstance(feed.origin, Step):
                    for one in instants[feed.origin]:
                        self._show_panes(place, output, feed, one.panes)

    def _reached(self) -> SourceWatermarks:
        """The watermarks of the sources before the rows of an entry, and after it."""
        after, moved_before = dict[str | None, int](), set[str | None]()
        for step in self.graph.steps:
            for feed, marks in zip(step.feeds, self.shards[step].watermarks.inputs, strict=True):
                if feed.leaf is not None and marks.least > MIN_TIME:
                    after.setdefault(feed.leaf.settings.name, min(marks.least + marks.back, MAX_TIME))
                    if marks.lag is not None:
                        moved_before.add(feed.leaf.settings.name)
        before = self.record.watermarks
        last = before[-1].after if before else {}
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
            self.record.left_out.append((place, step.number, from_entry(rows, place)))

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
                own = LocalInput(leaf=feed.leaf, feed=feed, step=step)
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
                self.record.dropped += [(place, step.number, int(row)) for row in places]

    def _show_corrections(self, start: Seed) -> None:
        """Give the panes that the state of a seed takes for shown and nobody has; a step before gives its own on."""
        for step in self.graph.steps:
            files = corrections_of(start, step.number)
            ends = [(output, feed) for output in self.outputs for feed in output.ends if feed.origin is step]
            panes = list(corrections(start.folder, files, step.operator().output_schema)) if files else []
            self.first[step] = [] if ends else panes
            for (output, feed), table in product(ends, panes):
                output.show(0, feed, table)

    def _show_panes(self, place: int, output: FlowOutput, feed: Feed, panes: pa.Table) -> None:
        """Take the panes that a step has given at an end of a flow."""
        output.show(place, feed, panes)

    def _waiting(self, steps: Sequence[Step] | None = None) -> str:
        """A sentence about the windows, and the rows in order, that wait for the watermark; empty without any."""
        counts = dict[str, int]()
        for step in self.graph.steps if steps is None else steps:
            shard = self.shards[step]
            what = "window" if isinstance(step.stage, GroupingStage) else "row"
            counts[what] = counts.get(what, 0) + shard.operator.count_waiting(shard.state)
        told = [f"{some:,} {what}{'s' * (some > 1)} wait{'s' * (some == 1)}" for what, some in counts.items() if some]
        if not told:
            return ""
        replayed = self.flow.settings.replay and not self.flow.settings.close_at_end
        remedy = "write .replay(close_at_end=True)" if replayed else "end the script with uc.Watermark(None)"
        return f"{' and '.join(told)} for the watermark: {remedy}"

    def _result(self, again: Callable[[Flow], Result] | None, note: str) -> Result:
        shards = dict(self.shards)

        def save(run: str, folder: str) -> Seed:
            require_reached(shards)
            return seed_of(self.flow, self.graph, shards, SeedMaker(owner=run, batch=0), folder)

        return self.outputs[0].result(self.record, again, note, save)

    def results(self) -> list[Result]:
        """The result of each flow so far."""
        return [output.result(self.record, None, self._waiting(output.steps)) for output in self.outputs]


def _again(flow: Flow, run: LocalRun, entries: Sequence[Entry]) -> Result:
    return LocalRun(flow, run.idle_after, run.start).all(entries)


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
