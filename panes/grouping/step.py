"""One step of the grouping operator, phase by phase. A phase takes windows in hand and gives those after it.

The idea: a step is a function from a state and a bundle to panes and the next state, and nothing else changes. It loads
only the windows that rows, the watermark or processing time touch, and its cost follows these and not the windows in
the state. Every decision about a window is made for all loaded windows at once, on columns. A step that is played
again from the same state gives the same panes. Not promised: the same panes if the same rows come in other bundles.

Processing-time deadlines fire over the windows from before the bundle; rows are assigned, merged, and dropped or taken
in; the triggers of windows that got rows are asked once, against the watermark from before; where signals came, those
of all windows are asked; the watermark advances and the windows that it passes fire; expired windows close and leave.
Where a step concerns more bytes of windows than it may have in hand, it does all this for one part of the windows after
the other.

Guarded by tests/panes/grouping/test_rules.py, test_reference.py and, for steps in parts, test_parts.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from ...triggers.program import Deadlines, Moment, sooner
from ...windows.times import NEVER
from ..state.hashes import Part, upper_half
from ..state.lateness import Lateness
from ..state.operator_state import Counts, OperatorState, StepResult
from ..state.store import Store
from .admission import Admission, take_in
from .atoms import Atoms
from .bundle import Bundle
from .cells import NUMBERS, Cells
from .clocks import Clocks
from .compiled import CompiledGrouping
from .contents import deposit_weight, put_deposits, with_deposits
from .emit import emit, retract_ended
from .evaluate import deadlines, evaluate, percentiles_begin, rows_moment
from .holds import furthest, window_holds
from .loaded_windows import LoadedWindows
from .pane_rows import FiringWindows
from .rows import Rows
from .split_sessions import take_in_and_split
from .values import values_of

IN_HAND = 512 << 20
"""About how many bytes of windows a step has in hand at once, of the 2 GiB to which the offsets of texts go."""

LARGE, LARGE_IN_HAND = 512, 128 << 20
"""Windows of so many bytes or more are large, and a step has fewer bytes of them in hand at once: more parts cost time
for each window, and save memory for each byte."""


def parts(size: int, count: int) -> int:
    """The number of parts in which a step takes so many windows of so many bytes together.

    >>> parts(600 << 20, 10_000_000), parts(600 << 20, 10_000)
    (2, 5)
    """
    at_once = min(IN_HAND, LARGE_IN_HAND) if size >= LARGE * count else IN_HAND
    return max(-(-size // at_once), 1)


@dataclass(frozen=True)
class Output:
    """The output of a step so far."""

    panes: tuple[pa.Table, ...] = ()
    left_out: Mapping[str, np.ndarray] = field(default_factory=dict)
    """The places in the bundle of the rows that were left out, by the reason."""
    counts: Counts = field(default_factory=Counts)
    lateness: Lateness = field(default_factory=Lateness)

    def with_panes(self, panes: Sequence[pa.Table]) -> Output:
        """The same and further panes."""
        return replace(self, panes=(*self.panes, *panes))

    def without(self, why: str, places: np.ndarray) -> Output:
        """The same where rows at these places in the bundle were left out; a row of several windows counts once."""
        before = self.left_out.get(why, places[:0])
        return replace(self, left_out={**self.left_out, why: np.union1d(before, places)})


@dataclass(frozen=True)
class Stores:
    """The stores of a grouping; None for those that it does not need."""

    windows: Store
    atoms: Store | None
    deposits: Store | None

    def by_name(self) -> dict[str, Store | None]:
        """The stores as a state has them."""
        stores = {"windows": self.windows, "atoms": self.atoms}
        return stores if self.deposits is None else {**stores, "deposits": self.deposits}


@dataclass(frozen=True)
class Progress:
    """The values that one phase of a step hands to the next, for one part of the windows."""

    windows: LoadedWindows
    atoms: Atoms | None
    touched: np.ndarray
    """True where a window got rows in this step, is new or has other bounds, or had a deadline of processing time.

    With a watermark of each batch only where it got rows.
    """
    output: Output


@dataclass(frozen=True)
class Step:
    """One step, or that part of it which concerns one part of the windows."""

    compiled: CompiledGrouping
    clocks: Clocks
    bundle: Bundle
    part: Part | None = None

    def run(self, state: OperatorState) -> StepResult:
        """The panes of the step, and the state after it."""
        stores = Stores(windows=state.windows, atoms=state.atoms, deposits=state.deposits)
        touched = self.bundle.touched(self.compiled, state)
        rows, told = self.bundle.rows, self.bundle.told
        bad = np.concatenate([rows.bad_places, told.bad])
        output = Output(left_out={"bad": bad}, counts=Counts(bad=rows.bad + len(told.bad)))
        for part in self._parts(stores, touched):
            stores, output = replace(self, part=part)._of_part(stores, touched, output)
        return self._result(state, stores, output)

    def _parts(self, stores: Stores, touched: np.ndarray) -> list[Part | None]:
        """One part, or more where all windows of the step together would be too large for arrays."""
        clocks, least = self.clocks, min(IN_HAND, LARGE_IN_HAND)
        weights = [stores.windows.weight(touched, self._of_windows, least)]
        if stores.atoms is not None:
            weights.append(stores.atoms.weight(touched, clocks.of_atoms, least))
        if stores.deposits:
            weights.append(deposit_weight(stores.windows, touched, self._of_windows, stores.deposits, least))
        count = max(parts(*weight) for weight in weights)
        return [Part(number, count) for number in range(count)] if count > 1 else [None]

    @property
    def _of_windows(self) -> dict[str, int]:
        """The clocks that bring windows into hand: a signal brings all of them."""
        clocks = self.clocks.of_windows
        return {**clocks, "event": NEVER} if self.bundle.told.bits else clocks

    def _of_part(self, stores: Stores, touched: np.ndarray, output: Output) -> tuple[Stores, Output]:
        """All phases for the windows of the part. Windows of a key that may merge are in one part."""
        compiled, clocks, part = self.compiled, self.clocks, self.part
        if part is not None:
            touched = touched[part.has(touched)]
        table, window_store = stores.windows.take(touched, self._of_windows, part)
        windows = with_deposits(compiled, compiled.shape.read(table), stores.deposits)
        windows = percentiles_begin(compiled, clocks, windows)
        atoms, deposits = stores.atoms, stores.deposits
        part_atoms = None if atoms is None else Atoms.take(compiled, atoms, touched, clocks.of_atoms, part)
        progress = self._processing_time(
            Progress(windows=windows, atoms=part_atoms, touched=np.zeros(len(windows), np.bool_), output=output)
        )
        for rows, cells in self.bundle.rounds(compiled, clocks):
            progress = self._round(progress, rows, cells)
        progress = self._signals(progress)
        progress = self._expiry(self._watermark(progress))
        windows = progress.windows
        if deposits is not None:
            windows, deposits = put_deposits(compiled, windows, deposits)
        if len(windows):
            hashes = compiled.hashes(windows.keys, windows.num["start"])
            window_store = window_store.put(hashes, windows.table(), self._wake(windows))
        if progress.atoms is not None:
            atoms = progress.atoms.put(compiled, clocks.before if clocks.each_batch else clocks.after)
        return Stores(windows=window_store, atoms=atoms, deposits=deposits), progress.output

    def _processing_time(self, progress: Progress) -> Progress:
        """Deadlines of processing time fire."""
        if len(progress.windows) == 0:
            return progress
        moment = self._moment("processing", progress.windows)
        deadline = deadlines(self.compiled, progress.windows, "processing", moment)
        if isinstance(deadline, int):
            return progress
        due = np.broadcast_to(deadline <= self.clocks.now, len(progress.windows))
        touched = progress.touched if self.clocks.each_batch else due.copy()
        return self._evaluated(replace(progress, touched=touched), moment, due)

    def _round(self, progress: Progress, rows: Rows, cells: Cells) -> Progress:
        """Rows are taken in, and the triggers of the windows that got some are asked."""
        compiled, part, atoms = self.compiled, self.part, progress.atoms
        unassigned = cells.unassigned if part is None or part.number == 0 else 0
        places = rows.places_in(cells) if unassigned else rows.places
        if part is not None:
            cells = cells.take(part.has(upper_half(compiled.hashes(cells.keys, cells.start))))
        lateness = Lateness.of(cells.end, cells.count, self.clocks.before)
        if atoms is None:
            admission = take_in(compiled, progress.windows, cells, self.clocks)
        else:
            admission, atoms = take_in_and_split(compiled, progress.windows, atoms, cells, self.clocks)
        output = progress.output if admission.late is None else self._late(progress.output, rows, admission.late)
        if admission.finished is not None:
            output = output.without("finished", rows.places_in(admission.finished))
        if unassigned and len(rows):
            output = output.without("unassigned", np.setdiff1d(rows.places, places))
        counted = Counts(dropped=rows_of(admission.late), finished=rows_of(admission.finished), unassigned=unassigned)
        windows, retractions = retract_ended(compiled, admission.windows)
        output = replace(output, counts=output.counts + counted, lateness=output.lateness + lateness)
        output = output.with_panes(retractions)
        moment = rows_moment(compiled, self.clocks, replace(admission, windows=windows), rows)
        return self._evaluated(
            Progress(windows=windows, atoms=atoms, touched=self._touched(progress, admission), output=output),
            moment,
            admission.got,
        )

    def _signals(self, progress: Progress) -> Progress:
        """The triggers of all windows are asked if there are signals; then all windows are in hand."""
        bits, windows = self.bundle.told.bits, progress.windows
        if not bits or len(windows) == 0:
            return progress
        every = np.ones(len(windows), np.bool_)
        moment = replace(self._moment("signal", windows), signals=bits)
        # With a watermark of each batch it passes windows that got rows alone.
        touched = progress.touched if self.clocks.each_batch else every
        return self._evaluated(replace(progress, touched=touched), moment, every.copy())

    def _touched(self, progress: Progress, admission: Admission) -> np.ndarray:
        if self.clocks.advance and not self.clocks.each_batch:
            return admission.got  # not looked at: every window is asked that has a deadline
        before, after = admission.lineage
        touched = admission.got.copy()
        touched[after[progress.touched[before]]] = True
        if not self.clocks.each_batch:
            was, now = progress.windows.num, admission.windows.num
            same = (was["start"][before] == now["start"][after]) & (was["end"][before] == now["end"][after])
            other = np.ones(len(touched), np.bool_)
            other[after[same]] = False
            touched |= other
        return touched

    def _late(self, output: Output, rows: Rows, late: Cells) -> Output:
        """The output with rows that came too late."""
        compiled, clocks = self.compiled, self.clocks
        output = output.without("late", rows.places_in(late))
        if compiled.grouping.late == "duplicate":
            every = np.ones(len(late), np.bool_)
            numbers = {"fresh": every, "born_late": every, **{name: getattr(late, name) for name in NUMBERS}}
            windows = compiled.shape.new(late.keys, len(late), numbers, late.acc)
            percentiles = clocks.percentiles(compiled, passing=False)
            output_watermark = clocks.output_watermark
            firing = FiringWindows(
                cause="late",
                watermark=clocks.before,
                processing_time=clocks.now,
                output_watermark=output_watermark,
                fired=every,
                last=every,
                cleared=~every,
                percentiles=percentiles,
            )
            return output.with_panes(emit(compiled, windows, firing)[1])
        return output

    def _watermark(self, progress: Progress) -> Progress:
        """The watermark advances, and deadlines of event time and of percentiles fire."""
        compiled, clocks, windows = self.compiled, self.clocks, progress.windows
        if len(windows) == 0:
            return progress
        moment = self._moment("watermark", windows)
        if clocks.each_batch:
            return self._evaluated(progress, moment, progress.touched)
        # Only those with a deadline: other windows may be in hand for other reasons.
        due = np.full(len(windows), False)
        due |= np.asarray(deadlines(compiled, windows, "event", moment) <= clocks.after)
        if compiled.percents:
            due |= np.asarray(deadlines(compiled, windows, "percentile", moment) <= clocks.furthest_percentile)
        if not clocks.advance:
            due &= progress.touched
        return self._evaluated(progress, moment, due)

    def _expiry(self, progress: Progress) -> Progress:
        """Expired windows give their closing pane and leave."""
        clocks, closing = self.clocks, self.compiled.grouping.closing
        if len(progress.windows) == 0 or clocks.each_batch:
            return progress
        expired = self.compiled.expiry(progress.windows.num["end"]) <= clocks.after
        if not expired.any():
            return progress
        if closing != "never":
            shows = expired & (progress.windows.num["fresh"] | (closing == "always"))
            every = np.ones(len(expired), np.bool_)
            percentiles = clocks.percentiles(self.compiled, passing=True)
            output_watermark = clocks.output_watermark
            firing = FiringWindows(
                cause="expiry",
                watermark=clocks.after,
                processing_time=clocks.now,
                output_watermark=output_watermark,
                fired=shows,
                last=every,
                cleared=~every,
                percentiles=percentiles,
            )
            progress = self._emitted(progress, firing)
        return replace(progress, windows=progress.windows.take(np.flatnonzero(~expired)))

    def _moment(self, phase: str, windows: LoadedWindows) -> Moment:
        return self.clocks.moment(phase, windows.num, values=values_of(self.compiled, windows))

    def _evaluated(self, progress: Progress, moment: Moment, mask: np.ndarray) -> Progress:
        windows, firing = evaluate(self.compiled, self.clocks, progress.windows, moment, mask)
        progress = replace(progress, windows=windows)
        return progress if firing is None else self._emitted(progress, firing)

    def _emitted(self, progress: Progress, firing: FiringWindows) -> Progress:
        windows, panes = emit(self.compiled, progress.windows, firing)
        return replace(progress, windows=windows, output=progress.output.with_panes(panes))

    def _wake(self, windows: LoadedWindows) -> dict[str, np.ndarray]:
        """For each clock, the reading at which each window is next in hand; and its hold on the output watermark."""
        compiled, clocks = self.compiled, self.clocks
        moment = clocks.moment("watermark", windows.num)
        done = compiled.trigger.done(windows.trigger)
        event = deadlines(compiled, windows, "event", moment)
        wake: dict[str, Deadlines] = {
            "event": sooner(event, compiled.expiry(windows.num["end"])),
            "processing": deadlines(compiled, windows, "processing", moment),
            "hold": window_holds(compiled.grouping, windows, done, clocks.output_watermark),
        }
        if compiled.percents:
            wake["percentile"] = deadlines(compiled, windows, "percentile", moment)
        return {name: np.broadcast_to(deadline, len(done)) for name, deadline in wake.items()}

    def _result(self, state: OperatorState, stores: Stores, output: Output) -> StepResult:
        compiled, clocks = self.compiled, self.clocks
        after = replace(
            state,
            stores=stores.by_name(),
            processing_time=clocks.now,
            counts=state.counts + output.counts,
            closed=clocks.closed_after(compiled),
        )
        if not clocks.each_batch:
            hold = stores.windows.least("hold", below=furthest(compiled.grouping, clocks.after))
            after = replace(
                after,
                watermark=clocks.after,
                output_watermark=max(state.output_watermark, hold),
                percentiles=clocks.percentiles_after or state.percentiles,
            )
        panes = pa.concat_tables([compiled.output_schema.empty_table(), *output.panes])
        return StepResult(panes=panes, state=after, left_out=output.left_out, lateness=output.lateness)


def rows_of(cells: Cells | None) -> int:
    """The number of rows of cells, counted once for each window."""
    return 0 if cells is None else int(cells.count.sum())
