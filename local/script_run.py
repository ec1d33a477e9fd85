"""A flow in the middle of a run in this process: a shard for each of its steps, and the output so far.

Guarded by tests/local/test_local.py and tests/flows/test_union.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from typing import Any
from uuid import uuid4
from warnings import warn

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument
from ..flows.changelog_reading import divided
from ..flows.flow import Flow
from ..flows.flow_steps import weight_of
from ..flows.graph import Feed, Leaf, Step, check_ends, graph_of
from ..flows.left_out import left_out_schema
from ..flows.result import Result, SourceWatermarks
from ..flows.seeds import corrections_of
from ..panes.grouping.grouping import DIFF
from ..panes.grouping.stage import GroupingStage
from ..panes.shard.arrivals import Arrival
from ..panes.shard.shard import END, Instant, Shard, by_bundle, with_first
from ..panes.state.seed import Seed, SeedMaker, corrections
from ..panes.transforms import Transform, applied
from ..panes.watermarks.late_share import late_words
from ..panes.watermarks.watermarks import Watermarks
from ..windows.times import MAX_TIME, MIN_TIME
from .final_run import PACKAGE, FinalStep, bad_rows, in_slices, why_not_final
from .local_inputs import InputNames, LocalInput, Part, source_tables, turns
from .run_seeds import begun, seed_of
from .run_tables import TableWriter
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


class LocalRun:
    """A flow in the middle of a run."""

    def __init__(self, flow: Flow, idle_after: int | None = None, start: Seed | None = None) -> None:
        self.flow, self.idle_after, self.start, self.graph = flow, idle_after, start, graph_of(flow)
        self.leaves = self.graph.leaves
        check_ends(self.graph)
        fresh = {step: self._start(step, idle_after) for step in self.graph.steps}
        self.shards = fresh if start is None else begun(flow, self.graph, fresh, start)
        self.now = max([MIN_TIME, *(shard.watermarks.now for shard in self.shards.values())])
        self.out: list[pa.Table] = []
        self.left_out: list[tuple[int, int, pa.Table]] = []
        self.unreadable = UnreadableRows(self.graph)
        self.dropped: list[tuple[int, int, int]] = []
        self.output_watermarks: list[int] = []
        self.watermarks: list[SourceWatermarks] = []
        self.first: dict[Step, list[pa.Table]] = {}
        self.schema = flow.schema
        if len(self.graph.ends) == 1 and not flow.transforms and isinstance(self.graph.ends[0].origin, Step):
            self.schema = self.graph.ends[0].schema
        if "step" in self.schema.names:
            raise InvalidArgument(
                "the result of flow.run() has the entry of the script in 'step', and the flow gives a column of that "
                "name too: name it otherwise, or leave it out with select()"
            )
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
        names = InputNames(self.leaves)
        goes = [names.goes_to(place, entry) for place, entry in enumerate(entries)]
        with self._interruptible(len(entries)):
            tables = [_tables(leaf, entries, [to[i] for to in goes]) for i, leaf in enumerate(self.leaves)]
            for place, entry in enumerate(entries):
                some = zip(self.leaves, tables, goes[place], strict=True)
                self._entry(place, entry, {leaf: table[place] for leaf, table, to in some if to})
                done()
        return self._result(partial(_again, run=self, entries=entries), self._waiting())

    def of_tables(self) -> Result:
        """The result of the rows of all sources, as one entry, and then the end."""
        with self._interruptible():
            self.play_tables()
        return self._result(_of_tables, self._waiting())

    def play_tables(self) -> None:
        """Take the rows of all sources as one entry, and then the end if they have one."""
        sources = [leaf.source for leaf in self.leaves]
        own_rows = [source for source in sources if isinstance(source, SourceRows)]
        if own_rows and own_rows[0].many and why_not_final(self.graph) is None:
            self._final_panes(own_rows[0])
            return
        tables = [
            leaf.source.whole(self.unreadable.needed(leaf), self.unreadable.take(leaf))
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

    @contextmanager
    def _interruptible(self, entries: int | None = None) -> Iterator[None]:
        """Give an interrupt the result of all turns that were played to their end, as its attribute `result`."""
        try:
            yield
        except KeyboardInterrupt as interrupt:
            saved = self.saved
            self.shards = dict(saved.shards)
            for one, length in zip(self._lists, saved.lengths, strict=True):
                del one[length:]
            where = "before its end" if entries is None else f"in entry {min(saved.place, entries - 1)} of {entries}"
            note = f"the run was interrupted {where}"
            interrupt.result = self._result(None, note)  # type: ignore[attr-defined]
            interrupt.add_note(
                f"{note}: `result` of this interrupt (sys.last_value.result in a shell) is its result so far"
            )
            raise

    def _save(self, place: int) -> None:
        self.saved = Saved(place, dict(self.shards), [len(one) for one in self._lists])

    @property
    def _lists(self) -> list[list[Any]]:
        return [self.out, self.left_out, self.dropped, self.output_watermarks, self.watermarks]

    def _warn_of_late_rows(self, rows: Mapping[Leaf, pa.Table]) -> None:
        """Warn if a step leaves out many rows of its sources, whose order nobody has written, as a script is."""
        for step in self.graph.steps:
            leaves = [feed.leaf for feed in step.feeds if feed.leaf is not None]
            if step.stage.drops_late and len(leaves) == len(step.feeds):
                late, count = self.shards[step].state.counts.dropped, sum(rows[leaf].num_rows for leaf in leaves)
                if (words := late_words(late, count, step.number)) is not None:
                    warn(words, stacklevel=_level_of_user())

    def _final_panes(self, source: SourceRows) -> None:
        """Take the rows of a source through all groupings, each with final panes."""
        panes: list[pa.Table] = []
        for place, one in enumerate(FinalStep.all(self.graph)):
            before, first = panes, place == 0
            take = self.unreadable.take(self.leaves[0])
            readers = source.readers(one.columns, one.coded, leave_out=take) if first else [in_slices(before)]
            panes, bad = one.panes(readers)
            if bad:
                rows = bad_rows(source, one, bad) if first else one.bad([in_slices(before)])
                self.shards[one.step], instants = self.shards[one.step].play({self.now: Arrival([rows])})
                self._leave_out(int(not first), one.step, instants)
        for table in panes:
            self._show(1, applied(self.graph.ends[0].transforms, table))
        self.output_watermarks += [MIN_TIME, MAX_TIME]

    def _entry(self, place: int, entry: Entry, rows: Mapping[Leaf, pa.Table]) -> None:
        """Take one entry through all steps, in their order; `rows` has the rows of each source that it goes to."""
        self.now = max(self.now, _time_of(entry))
        parts = self._parts(place, entry, rows)
        # The rows of several ends stand one end after the other, for each entry.
        for until, some in turns(parts, self.now, TURNS if len(self.graph.ends) == 1 else 1):
            self._turn(place, some, until)
            self._save(place)
        self.watermarks.append(self._reached())
        for feed in self.graph.ends:
            if isinstance(feed.origin, Leaf) and feed.origin in rows:
                reading, here = feed.origin.source.reading, rows[feed.origin]
                if reading is not None:
                    here, bad = divided(here, reading.weight)
                    if bad.num_rows:
                        told = self.graph.left_out_of_ends[feed].bad(bad.select(feed.schema.names))
                        self.left_out.append((place, 0, _from_entry(told, place)))
                self._show(place, applied(feed.transforms, here))
        ends = [self.shards[feed.origin] for feed in self.graph.ends if isinstance(feed.origin, Step)]
        if ends:
            self.output_watermarks.append(min(shard.operator.hold(shard.state) for shard in ends))
        self._save(place + 1)

    def _turn(self, place: int, parts: Mapping[Feed, Mapping[int, Part]], until: int) -> None:
        """Take some bundles of an entry through all steps, and the timers that are due by then."""
        instants: dict[Step, Sequence[Instant]] = {}
        for step in self.graph.steps:
            arrivals = [self._arrivals(feed, parts, instants) for feed in step.feeds]
            self.shards[step], played = self.shards[step].play(*arrivals, until=until)
            instants[step] = with_first(played, self.first.pop(step, []) if played else [])
            self._leave_out(place, step, instants[step])
            self._count_dropped(place, step, arrivals, instants[step], parts)
        for feed in self.graph.ends:
            if isinstance(feed.origin, Step):
                for one in instants[feed.origin]:
                    self._show_panes(place, feed, one.panes)

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
            self.left_out.append((place, step.number, _from_entry(rows, place)))

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
                self.dropped += [(place, step.number, int(row)) for row in places]

    def _show_corrections(self, start: Seed) -> None:
        """Give the panes that the state of a seed takes for shown and nobody has; a step before gives its own on."""
        for step in self.graph.steps:
            files, ends = corrections_of(start, step.number), [one for one in self.graph.ends if one.origin is step]
            panes = list(corrections(start.folder, files, step.operator().output_schema)) if files else []
            self.first[step] = [] if ends else panes
            for feed, table in product(ends, panes):
                self._show_panes(0, feed, table)

    def _show_panes(self, place: int, feed: Feed, panes: pa.Table) -> None:
        self._show(place, applied(feed.transforms, panes))

    def _show(self, place: int, rows: pa.Table) -> None:
        if rows.num_rows:
            self.out.append(_from_entry(rows, place))

    def _waiting(self) -> str:
        """A sentence about the windows, and the rows in order, that wait for the watermark; empty without any."""
        counts = dict[str, int]()
        for step, shard in self.shards.items():
            what = "window" if isinstance(step.stage, GroupingStage) else "row"
            counts[what] = counts.get(what, 0) + shard.operator.count_waiting(shard.state)
        told = [f"{some:,} {what}{'s' * (some > 1)} wait{'s' * (some == 1)}" for what, some in counts.items() if some]
        if not told:
            return ""
        replayed = self.flow.settings.replay and not self.flow.settings.close_at_end
        remedy = "write .replay(close_at_end=True)" if replayed else "end the script with uc.Watermark(None)"
        return f"{' and '.join(told)} for the watermark: {remedy}"

    def _result(self, again: Callable[[Flow], Result] | None, note: str) -> Result:
        panes = pa.concat_tables([self.schema.append(_STEP).empty_table(), *self.out])
        unreadable = list(self.unreadable.shown())
        counts = [
            {
                **asdict(shard.state.counts),
                "unreadable": sum(rows.num_rows for on_way, rows in unreadable if on_way is step),
                "held": shard.operator.count_entries(shard.state),
            }
            for step, shard in self.shards.items()
        ]
        none = left_out_schema(self.unreadable.row).append(_STEP)
        first = [_from_entry(rows, 0) for _, rows in unreadable]
        by_step = [table for *_, table in sorted(self.left_out, key=lambda one: one[:2])]
        left_out = pa.concat_tables([none.empty_table(), *first, *by_step])
        steps = self.graph.steps
        fed = [LocalInput(leaf=feed.leaf, feed=feed, step=step) for step in steps for feed in step.feeds if feed.leaf]
        last, run = self.flow.stages[-1] if self.flow.stages else None, uuid4().hex
        return Result(
            panes,
            of_stages=counts,
            dropped_rows=[(place, row) for place, _, row in sorted(self.dropped, key=lambda one: one[:2])],
            output_watermarks=self.output_watermarks,
            rows_kept=all(one.keeps_rows for one in fed),
            left_out=left_out,
            last=last.grouping if isinstance(last, GroupingStage) else None,
            each_batch=self.flow.settings.each_batch,
            write=None if again is None else TableWriter(flow=self.flow, panes=panes, again=again, run=run),
            watermarks=self.watermarks,
            weight=weight_of(self.flow) or DIFF,
            times={leaf.settings.name: leaf.settings.time for leaf in self.leaves},
            note=note,
            save=partial(seed_of, self.flow, self.graph, dict(self.shards), SeedMaker(owner=run, batch=0)),
        )


def _from_entry(rows: pa.Table, place: int) -> pa.Table:
    """Rows with the entry of the script that they came from."""
    return rows.append_column(_STEP, pa.array(np.full(rows.num_rows, place)))


def _level_of_user() -> int:
    """The stack level, for a warning of the caller, of the first code outside of the package."""
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith(f"{PACKAGE}."):
        level, frame = level + 1, frame.f_back
    return level


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
