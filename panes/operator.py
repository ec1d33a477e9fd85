"""The grouping operator: windows, triggers and panes over bundles of rows, without an engine.

A step takes a state, a bundle, the watermark after it and the processing time, and gives panes and a new state; it
changes nothing that it was given. Its order is fixed: processing-time deadlines fire over what was there before; rows
are assigned, merged, and dropped or taken in; the triggers of windows that got rows are asked once against the
watermark from before; the watermark advances and what it passes fires; what expires closes and leaves. A step that
concerns more bytes of windows than it can have in hand does all this for one part of the windows after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import TypeMismatch
from ..triggers import truth
from ..triggers.leaf_nodes import PercentileNode
from ..triggers.program import Deadlines, Moment, State, sooner, where
from ..windows.times import MAX_TIME, MIN_TIME
from .atoms import Atoms, atom_schema
from .bundle import Rows, cells_of, good_rows, rounds
from .cells import NUMBERS, Cells
from .compiled import Compiled
from .emit import Emitter, Firing, cleared
from .grouping import Grouping
from .hashes import Part, key_hashes, lookup, upper_half
from .holds import furthest as furthest_output
from .holds import window_holds
from .incorporate import Incorporated, incorporate
from .live import Live
from .state import Counts, OperatorState, Stepped
from .store import Store

IN_HAND = 512 << 20
"""About how many bytes of windows a step has in hand at once, of the 2 GiB to which the offsets of texts go."""


class Operator:
    """A grouping compiled against the schema of its input.

    >>> import pyarrow as pa, uncombine as uc
    >>> from uncombine.panes import Grouping, Operator
    >>> schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int64()})
    >>> op = Operator(Grouping({"n": uc.Sum("x")}, uc.Fixed("1 minute")), schema)
    >>> bundle = pa.table({"ts": [0, 30_000_000], "x": [1, 2]}).cast(schema)
    >>> stepped = op.step(op.initial(), bundle, watermark=60_000_000, processing_time=0)
    >>> stepped.panes.select(["n", "diff"]).to_pylist()
    [{'n': 3, 'diff': 1}]
    """

    def __init__(self, grouping: Grouping, schema: pa.Schema) -> None:
        self.compiled = compiled = Compiled.of(grouping, schema)
        self.grouping, self.schema, self.output_schema = grouping, schema, compiled.output_schema
        self.plan, self.facts, self.percents = compiled.plan, compiled.facts, compiled.percents
        self.shape, self.splits = compiled.shape, grouping.splits

    def initial(self) -> OperatorState:
        """The state before any row."""
        atoms = None
        if self.splits:
            atoms = Store(atom_schema(self.shape))
        return OperatorState(Store(self.shape.schema), atoms)

    def step(
        self,
        state: OperatorState,
        bundle: pa.Table | Cells,
        watermark: int,
        processing_time: int = MIN_TIME,
        percentiles: Mapping[float, int] | None = None,
        each_batch: bool = False,
    ) -> Stepped:
        """One bundle, of rows or of cells made elsewhere, through the operator; see the module for the order."""
        if isinstance(bundle, pa.Table) and bundle.schema.names != self.schema.names:
            raise TypeMismatch(f"the bundle has columns {bundle.schema.names}, and {self.schema.names} were promised")
        if each_batch:
            self.grouping.check_trigger(each_batch)
        return _Step(self.compiled, state, bundle, watermark, processing_time, percentiles or {}, each_batch).run()


class _Step:
    """The working of one step."""

    def __init__(
        self,
        compiled: Compiled,
        state: OperatorState,
        bundle: pa.Table | Cells,
        watermark: int,
        processing_time: int,
        percentiles: Mapping[float, int],
        each_batch: bool,
    ) -> None:
        self.op, self.grouping, self.root = compiled, compiled.grouping, compiled.trigger
        self.emitter = Emitter(compiled)
        self.state = state
        self.each_batch = each_batch
        self.before = MIN_TIME if each_batch else state.watermark
        self.after = MAX_TIME if each_batch else max(state.watermark, watermark)
        self.now = max(state.processing_time, processing_time)
        self.old_percentiles = state.percentiles
        known = {p: percentiles.get(p, self.after) for p in compiled.percents}
        self.new_percentiles = {p: max(v, state.percentiles.get(p, MIN_TIME)) for p, v in known.items()}
        self.bundle = bundle
        self.windows, self.atom_store = state.windows, state.atoms
        self.passed: dict[str, int] = {} if each_batch else {"event": self.after}
        """The clocks of the atoms."""
        self.out: list[pa.Table] = []
        self.late: list[pa.Table] = []
        self.dropped: list[np.ndarray] = [np.empty(0, np.int64)]
        self.counts = Counts()
        self.got = np.empty(0, np.bool_)
        """Windows that got rows in this bundle, of which each batch asks alone."""

    def run(self) -> Stepped:
        whole: Cells | None
        if isinstance(self.bundle, Cells):
            rows, whole = Rows.none(self.op.schema, self.bundle.bad), self.bundle
            if "latest" in self.grouping.extents:
                whole = whole.counted(self.state.output_watermark)
        else:
            rows = good_rows(self.grouping, self.bundle, self.now)
            whole = self._cells(rows) if self.grouping.granularity == "bundle" else None
        self.counts += Counts(bad=rows.bad)
        touched = self._touched(rows, whole)
        clocks = {"processing": self.now}
        if not self.each_batch:
            clocks["event"] = self.after
            if self.new_percentiles:
                clocks["percentile"] = max(self.after, *self.new_percentiles.values())
        for part in self._parts(touched, clocks):
            self._part(part, rows, whole, touched, clocks)
        return self._finish()

    def _parts(self, touched: np.ndarray, clocks: dict[str, int]) -> list[Part | None]:
        """One part, or more where what the step has in hand would be too large for arrays."""
        weight = self.windows.weight(touched, clocks, IN_HAND)
        if self.atom_store is not None:
            weight = max(weight, self.atom_store.weight(touched, self.passed, IN_HAND))
        if weight <= IN_HAND:
            return [None]
        count = -(-weight // IN_HAND)
        return [Part(number, count) for number in range(count)]

    def _part(
        self, part: Part | None, rows: Rows, whole: Cells | None, touched: np.ndarray, clocks: dict[str, int]
    ) -> None:
        """The step for some of the windows, those of a key that may merge together."""
        self.part = part
        if part is not None:
            touched = touched[part.has(touched)]
        table, self.windows = self.windows.take(touched, clocks, part)
        self.live = self.op.shape.read(table)
        if self.each_batch:
            self._begin_batch()
        self.atoms: Atoms | None = None
        if self.atom_store is not None:
            self.atoms = Atoms.take(self.op, self.atom_store, touched, self.passed, part)
        self._processing_timers()
        self._take_in(rows, whole)
        self._advance()
        self._close()
        self._put_back()

    def _touched(self, rows: Rows, whole: Cells | None) -> np.ndarray:
        """What to look up in the store for these rows."""
        count = len(rows) if whole is None else len(whole)
        if count == 0 or not (len(self.state.windows) or self.state.atoms):
            return np.empty(0, np.uint32)
        if self.grouping.window.merging:
            keys = rows.keys if whole is None else whole.keys
            return lookup(key_hashes(keys, count))
        cells = self._cells(rows) if whole is None else whole
        return lookup(self.op.hashes(cells.keys, cells.start))

    def _begin_batch(self) -> None:
        """The watermark is back at the beginning of time, and so are its percentiles."""
        self.got = np.zeros(len(self.live), np.bool_)
        m = self._moment("rows", self.before)
        for node in self.root.nodes():
            if isinstance(node, PercentileNode):
                node.begin(self.live.num, ~self.got, m)

    def _processing_timers(self) -> None:
        if len(self.live) == 0:
            return
        m = self._moment("processing", self.before)
        deadline = self._deadline("processing", m)
        if not isinstance(deadline, int):
            self._evaluate(m, deadline <= self.now)

    def _take_in(self, rows: Rows, whole: Cells | None) -> None:
        if whole is not None and (len(rows) or len(whole) or whole.unassigned):
            self._round(rows, whole)
        if whole is not None or len(rows) == 0:
            return
        for part in rounds(rows):  # a round may depend on the one before it, so they cannot be done at once
            self._round(part, None)

    def _round(self, rows: Rows, cells: Cells | None) -> None:
        if cells is None:
            cells = self._cells(rows)
        if self.part is None or self.part.number == 0:
            self.counts += Counts(unassigned=cells.unassigned)
        if self.part is not None:
            cells = cells.take(self.part.has(upper_half(self.op.hashes(cells.keys, cells.start))))
        taken: Incorporated
        if self.atoms is not None:
            taken = self.atoms.incorporate(self.live, cells, self.before, self._moment_of)
        else:
            taken = incorporate(self.op, self.live, cells, self.before, self._moment_of)
        self.live = taken.live
        if self.each_batch:
            before, after = taken.carried
            got = taken.got.copy()
            np.logical_or.at(got, after, self.got[before])
            self.got = got
        self.counts += Counts(dropped=taken.dropped, finished=taken.finished)
        if taken.late is not None:
            self._late(rows, taken.late)
        if taken.ghosts is not None:
            self.out.append(taken.ghosts)
        m = self._moment("rows", self.before)
        m.got, m.born = taken.got, taken.born
        m.facts = taken.facts
        m.result = self._result
        m.arrivals = taken.arrivals(rows)
        active = m.got & ~self.root.done(self.live.num)
        self.root.on_rows(self.live.num, active, m)
        self._evaluate(m, active)

    def _cells(self, rows: Rows) -> Cells:
        return cells_of(self.op, rows, self.state.output_watermark)

    def _late(self, rows: Rows, late: Cells) -> None:
        row = np.unique(late.of_row()[0])
        # A row of several windows may have been late in another part.
        row = row[~np.isin(rows.places[row], np.concatenate(self.dropped))]
        self.dropped.append(rows.places[row])
        if self.grouping.late == "emit":
            self.late.append(rows.table.take(pa.array(row)))
        elif self.grouping.late == "duplicate":
            numbers = {name: getattr(late, name) for name in NUMBERS}
            live = self.op.shape.fresh(len(late), late.keys, late.acc, numbers)
            live.num["fresh"][:] = True
            live.num["born_late"][:] = True
            every = np.ones(len(late), np.bool_)
            firing = Firing(every, "late", self.before, self.now, every, self.state.output_watermark)
            self.out += self.emitter.panes(live, firing, ~every)

    def _advance(self) -> None:
        if len(self.live) == 0:
            return
        m = self._moment("watermark", self.after, new=True)
        self._evaluate(m, self._due(m))

    def _due(self, m: Moment) -> np.ndarray:
        """Which windows the watermark asks: those with a deadline, whatever else brought a window into hand."""
        due = np.full(len(self.live), self.each_batch)
        if not self.each_batch:
            due |= np.asarray(self._deadline("event", m) <= self.after)
            if self.op.percents:
                reached = max(self.after, *self.new_percentiles.values())
                due |= np.asarray(self._deadline("percentile", m) <= reached)
        return due

    def _close(self) -> None:
        if len(self.live) == 0 or self.each_batch:
            return
        expired = self.op.expiry(self.live.num["end"]) <= self.after
        if not expired.any():
            return
        if self.grouping.closing != "never":
            wants = expired & (self.live.num["fresh"] | (self.grouping.closing == "always"))
            every = np.ones(len(self.live), np.bool_)
            firing = Firing(wants, "expiry", self.after, self.now, every, self.state.output_watermark)
            self.out += self.emitter.panes(self.live, firing, np.zeros(len(self.live), np.bool_))
        self.live = self.live.take(np.flatnonzero(~expired))

    def _put_back(self) -> None:
        live = self.live
        if len(live):
            hashes = self.op.hashes(live.keys, live.num["start"])
            self.windows = self.windows.put(hashes, live.table(), self._wake())
        if self.atoms is not None:
            self.atom_store = self.atoms.put(self.before if self.each_batch else self.after)

    def _finish(self) -> Stepped:
        output_watermark = self.state.output_watermark
        if not self.each_batch:
            furthest = furthest_output(self.grouping, self.after)
            output_watermark = max(output_watermark, self.windows.least("hold", below=furthest))
        state = replace(
            self.state,
            windows=self.windows,
            atoms=self.atom_store,
            watermark=self.state.watermark if self.each_batch else self.after,
            output_watermark=output_watermark,
            processing_time=self.now,
            percentiles=self.old_percentiles if self.each_batch else self.new_percentiles or self.old_percentiles,
            counts=self.state.counts + self.counts,
        )
        late = pa.concat_tables([self.op.schema.empty_table(), *self.late])
        panes = pa.concat_tables([self.op.output_schema.empty_table(), *self.out])
        return Stepped(panes, state, late, np.unique(np.concatenate(self.dropped)))

    def _wake(self) -> dict[str, np.ndarray]:
        num = self.live.num
        m = self._moment("watermark", self.after, new=True)
        done = self.root.done(num)
        wake: dict[str, Deadlines] = {
            "event": sooner(self._deadline("event", m), self.op.expiry(num["end"])),
            "processing": self._deadline("processing", m),
            "hold": window_holds(self.grouping, self.live, done, self.state.output_watermark),
        }
        if self.op.percents:
            wake["percentile"] = self._deadline("percentile", m)
        return {name: np.broadcast_to(deadline, len(done)) for name, deadline in wake.items()}

    def _deadline(self, domain: str, m: Moment) -> Deadlines:
        """When each window must be asked by a clock, at the latest."""
        num = self.live.num
        return where(~self.root.done(num), self.root.deadline(num, domain, m))

    def _moment_of(self, live: Live) -> Moment:
        return self._moment("rows", self.before, live=live)

    def _moment(self, phase: str, watermark: int, live: Live | None = None, new: bool = False) -> Moment:
        live = self.live if live is None else live
        nothing = np.zeros(len(live), np.bool_)
        known = {**self.old_percentiles, **self.new_percentiles} if new else self.old_percentiles
        fallback = watermark

        def percentile(percent: float) -> int:
            return max(known.get(percent, MIN_TIME), fallback)

        start, end = live.num["start"], live.num["end"]
        return Moment(phase, start, end, watermark, self.now, nothing, nothing, percentile=percentile)

    def _evaluate(self, m: Moment, asked: np.ndarray) -> None:
        """Ask the triggers of some windows and emit the panes of those that fire."""
        live, root = self.live, self.root
        state: State = live.num
        if self.each_batch and m.phase == "watermark":
            asked = asked & self.got
        asked = asked & ~root.done(state)
        if not asked.any():
            return
        root.observe(state, asked, m)
        fired = root.would_fire(state, m) & asked
        if not fired.any():
            if root.ends_unseen:
                root.settle(state, asked, m)
            return
        m.requests = {"percent": np.full(len(live), np.nan)}
        for name in ("clear", "accumulate"):
            m.requests[name] = np.zeros(len(live), np.bool_)
        root.fire(state, fired, m)
        if root.ends_unseen:
            root.settle(state, asked, m)
        last = np.zeros(len(live), np.bool_)
        if self.grouping.closing != "always":
            last |= root.done(state)
            if m.phase == "watermark" and not self.each_batch:
                last |= self.op.expiry(live.num["end"]) <= self.after
        floor = self.state.output_watermark
        firing = Firing(fired, m.phase, m.watermark, self.now, last, floor, m.requests["percent"])
        self.out += self.emitter.panes(live, firing, cleared(self.grouping.mode, m.requests))

    def _result(self, predicate: Any, mask: np.ndarray) -> np.ndarray:
        """Where a predicate holds of the aggregates of some windows."""
        places = np.flatnonzero(mask)
        chosen = self.live.take(places)
        table = pa.table(
            [*chosen.keys, *self.op.plan.extract(chosen.acc)],
            names=[*self.grouping.by, *self.op.plan.lowered],
        )
        held = np.zeros(len(mask), np.bool_)
        held[places] = truth(predicate, table)
        return held
