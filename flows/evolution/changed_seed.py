"""A seed made of another one by a plan: files of rows are copied, converted, or those of a history.

Guarded by tests/flows/evolution/test_evolution.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...combiners.expressions.expr import Expr
from ...combiners.rows.columns import flat
from ...errors import InvalidArgument, StateMismatch
from ...panes.grouping.loaded_windows import OUTSTANDING
from ...panes.grouping.stage import GroupingStage
from ...panes.state.codec import DAMAGE, pack, unpack
from ...panes.state.operator_state import Counts
from ...panes.state.seed import (
    Seed,
    SeedFile,
    SeedMaker,
    SeedPiece,
    SeedStep,
    file_bytes,
    unreadable_file,
    write_bytes,
    write_seed,
)
from ...panes.state.store import Chunk, Store
from ...windows.times import MAX_TIME, MIN_TIME
from ..fingerprint.differences import number_of
from ..seeds import PLACED, step_under
from .conversion import Conversion, shown_panes
from .plan import Planned, StepPlan

WINDOW_STORES = ("windows", "atoms")
"""The stores whose rows have starts of windows."""


class SeedWork(Protocol):
    """Works on the files of seeds, in this process or in tasks."""

    def numbers(self, of: Callable[[SeedFile], int], files: Sequence[SeedFile]) -> list[int]:
        """A number of each file."""

    def files(self, change: Callable[[SeedFile], SeedFile | None], files: Sequence[SeedFile]) -> list[SeedFile]:
        """The files that a function makes of others, one of each, or none."""

    def net(self, panes: Callable[[ShownFile], pa.Table], files: Sequence[ShownFile], folder: str) -> list[SeedFile]:
        """Write the panes that a function reads from files, netted, as corrections."""


@dataclass(frozen=True)
class ChangeFile:
    """Takes a file of stored rows from one seed into another."""

    source: str
    target: str
    conversion: Conversion | None
    deposits: tuple[SeedFile, ...] = ()
    """The files of large contents of windows."""

    def __call__(self, file: SeedFile) -> SeedFile | None:
        if self.conversion is None:
            value = file_bytes(self.source, file)
            return write_bytes(self.target, file.store, file.piece, file.rows, value)
        _, table, wake = stored_rows(self.source, file).living()
        made = self.conversion(file.store, table, wake)
        if made is None:
            return None
        rows, clocks = made
        if file.store == "windows" and self.conversion.fills:
            rows = self.conversion.filled(rows, self._deposits(file.piece))
        chunk = Chunk.of(np.zeros(rows.num_rows, np.uint64), rows, dict(clocks))
        return write_bytes(self.target, file.store, file.piece, rows.num_rows, pack(chunk))

    def _deposits(self, piece: int) -> Store | None:
        """The large contents of the windows of a piece, as they are kept now."""
        assert self.conversion is not None
        operator = self.conversion.operator
        kept = operator.initial().stores.get("deposits")
        for file in self.deposits if kept is not None else ():
            if file.piece == piece:
                _, table, wake = stored_rows(self.source, file).living()
                made = self.conversion(file.store, table, wake)
                assert kept is not None
                assert made is not None
                kept = kept.put(operator.hashes(file.store, made[0]), made[0], dict(made[1]))
        return kept


@dataclass(frozen=True)
class KeepKeys:
    """Takes a file of stored rows into another seed, but for those of keys for which a condition is not true."""

    source: str
    target: str
    condition: Expr
    names: tuple[str, ...]
    """The names of the columns of a key."""

    def __call__(self, file: SeedFile) -> SeedFile | None:
        _, table, wake = stored_rows(self.source, file).living()
        places = {name: f"key.{place}" for place, name in enumerate(self.names)}
        if set(places.values()) <= set(table.column_names):
            keys = pa.table({name: table[place] for name, place in places.items()})
            kept = np.flatnonzero(np.asarray(pc.fill_null(flat(self.condition.evaluate(keys)), False)))
            table, wake = table.take(pa.array(kept)), {clock: times[kept] for clock, times in wake.items()}
        if not table.num_rows:
            return None
        chunk = Chunk.of(np.zeros(table.num_rows, np.uint64), table, wake)
        return write_bytes(self.target, file.store, file.piece, table.num_rows, pack(chunk))


@dataclass(frozen=True)
class LastStart:
    """Finds the start of the last window in a file of a seed."""

    source: str

    def __call__(self, file: SeedFile) -> int:
        _, table, _ = stored_rows(self.source, file).living()
        return int(np.asarray(table["num.start"]).max(initial=MIN_TIME))


@dataclass(frozen=True)
class FirstStart:
    """Finds the start of the first window in a file of a seed."""

    source: str

    def __call__(self, file: SeedFile) -> int:
        _, table, _ = stored_rows(self.source, file).living()
        return int(np.asarray(table["num.start"]).min(initial=MAX_TIME))


@dataclass(frozen=True)
class CountShown:
    """Counts the outstanding panes in a file of windows."""

    source: str

    def __call__(self, file: SeedFile) -> int:
        _, table, _ = stored_rows(self.source, file).living()
        return len(flat(table[OUTSTANDING]).flatten()) if OUTSTANDING in table.column_names else 0


@dataclass(frozen=True)
class ShownFile:
    """A file of windows whose outstanding panes are shown now, or are to be retracted."""

    folder: str
    file: SeedFile
    diff: int


@dataclass(frozen=True)
class ShownPanes:
    """Reads the panes that files of windows take for shown, in the columns of an output as it is now."""

    keys: Mapping[int, tuple[str, ...]]
    """The names of the key columns, of files of before (-1) and of now (1)."""
    schema: pa.Schema
    since: Mapping[int, Mapping[str, int]] = field(default_factory=dict, kw_only=True)
    """The times from which on combiners had all rows when panes were shown, of files of before and of now."""

    def __call__(self, one: ShownFile) -> pa.Table:
        _, table, _ = stored_rows(one.folder, one.file).living()
        return shown_panes(table, self.keys[one.diff], self.schema, one.diff, self.since.get(one.diff))


def stored_rows(folder: str, file: SeedFile) -> Chunk:
    """The rows of a file of a seed with their clocks, without hashes."""
    value = file_bytes(folder, file)
    try:
        return unpack(value, lambda table: np.zeros(table.num_rows, np.uint64))
    except DAMAGE as error:
        raise unreadable_file(folder, file, f"cannot be read ({type(error).__name__})") from None


def write_changed(
    former: Seed,
    plan: Planned,
    computed: Sequence[SeedStep],
    folder: str,
    work: SeedWork,
    positions: Sequence[str],
    shards: int | None = None,
) -> Seed:
    """Write the seed that a plan makes of another one, with the steps that were computed into the same folder."""
    before = {number_of(step.made_by): step for step in former.steps}
    if plan.computed and not plan.same_windows:
        _check_none_expired(computed, folder, work)
    steps = [_counted_on(step, before.get(number_of(step.made_by))) for step in computed]
    for one in plan.steps if not plan.computed else ():
        if (step := before.get(one.step.number)) is not None:
            pieces, conversion = _pieces(former.folder, step, one.conversion, work), one.conversion
            if conversion is not None:
                conversion = replace(conversion, known_since=pieces[0].since)
            deposits = tuple(file for file in step.files if file.store == "deposits")
            change: Callable[[SeedFile], SeedFile | None] = ChangeFile(former.folder, folder, conversion, deposits)
            if one.keeps is not None:
                change = KeepKeys(former.folder, folder, one.keeps, _keys(one.made_by))
            files = work.files(change, step.files)
            step = step_under(replace(step, pieces=pieces), one.made_by)
            steps.append(replace(step, made_by=_laid_out(step, one), files=tuple(files)))
    begun = plan.steps[-1].fate == "begun"
    steps = _passed_on(plan, steps, folder, work) if begun else _corrected(former, before, plan, steps, folder, work)
    maker = SeedMaker(owner=uuid4().hex, batch=0)
    return write_seed(
        Seed(
            folder=folder,
            steps=tuple(steps),
            maker=maker,
            positions=tuple(positions),
            corrects=True,
            base=None if begun else former.maker,
            shards=shards,
        )
    )


def _counted_on(step: SeedStep, was: SeedStep | None) -> SeedStep:
    """A step of a history, whose counts of rows that were left out go on from those of before.

    The history has each row once, and no bundles: what it leaves out says nothing of what the query has left out.
    """
    counts = sum((piece.counts for piece in was.pieces), Counts()) if was is not None else Counts()
    pieces = [replace(piece, counts=Counts()) for piece in step.pieces]
    pieces[0] = replace(pieces[0], counts=counts)
    return replace(step, pieces=tuple(pieces), corrections=())  # its corrections are of one that nobody has seen


def _pieces(folder: str, step: SeedStep, conversion: Conversion | None, work: SeedWork) -> tuple[SeedPiece, ...]:
    """The pieces of a step, which say since when each combiner is there that was added without a history."""
    if conversion is None:
        return step.pieces
    now = MIN_TIME
    if any(one.partial for one in conversion.lacking.values()):
        files = [file for file in step.files if file.store in WINDOW_STORES]
        now = max(work.numbers(LastStart(folder), files), default=MIN_TIME - 1) + 1
    return tuple(replace(piece, since=conversion.since(piece.since, now)) for piece in step.pieces)


def _check_none_expired(computed: Sequence[SeedStep], folder: str, work: SeedWork) -> None:
    """Raise if the history has shown windows that have expired: what they take the place of has not."""
    if not computed:
        return
    last = computed[-1]
    shown = sum(file.rows for file in last.corrections)
    files = [file for file in last.files if file.store == "windows"]
    held = sum(work.numbers(CountShown(folder), files))
    if shown > held:
        raise StateMismatch(
            f"{shown - held} windows of the changed flow have expired, so that their rows would leave what was shown: "
            "give it a longer allowed_lateness, or start it from flow.seed(history, to=) into a new table"
        )


def _laid_out(before: SeedStep, one: StepPlan) -> Mapping[str, Any]:
    """The fingerprint of a step now, whose rows lie as they lay before."""
    placed = ("shards", *PLACED)
    now = {name: value for name, value in one.made_by.items() if name not in placed}
    return {**now, **{name: before.made_by[name] for name in placed if name in before.made_by}}


def _corrected(
    former: Seed,
    before: Mapping[int, SeedStep],
    plan: Planned,
    steps: Sequence[SeedStep],
    folder: str,
    work: SeedWork,
) -> list[SeedStep]:
    """The steps, the last of which has the panes that it takes for shown and nobody has, and the reverse."""
    last, out = plan.steps[-1], list(steps)
    was = before.get(max(before, default=0))
    same_place = was is not None and number_of(was.made_by) == last.step.number
    stage = last.step.stage
    if (last.fate == "kept" and same_place) or not isinstance(stage, GroupingStage) or not stage.grouping.retracting:
        return out
    place = next((place for place, step in enumerate(out) if number_of(step.made_by) == last.step.number), None)
    old = _windows(former.folder, was.files, -1) if was is not None else []
    new = _windows(folder, out[place].files, 1) if place is not None else []
    keys = {1: _keys(last.made_by), -1: () if was is None else _keys(was.made_by)}
    since = {} if was is None or place is None else _shown_since(was, out[place], last.conversion)
    schema = stage.operator(*last.step.schemas).output_schema
    panes = work.net(ShownPanes(keys, schema, since=since), [*old, *new], folder)
    if not panes:
        return out
    if place is None:
        raise InvalidArgument(
            "the history has no rows for the last step, so nothing can take the place of what was shown"
        )
    out[place] = replace(out[place], corrections=tuple(panes))
    return out


def _shown_since(was: SeedStep, now: SeedStep, conversion: Conversion | None) -> dict[int, Mapping[str, int]]:
    """The times from which on combiners have all rows, for panes as they were shown and as they are shown now.

    A change that fills no pane shows none again only to say the time.
    """
    before, after = was.pieces[0].since, now.pieces[0].since
    if conversion is not None and not conversion.fills:
        after = {name: time for name, time in after.items() if time in before.values()}
    return {-1: before, 1: after}


def _passed_on(plan: Planned, steps: Sequence[SeedStep], folder: str, work: SeedWork) -> list[SeedStep]:
    """The steps, the last of which gives the panes that it takes for shown to a step that was added after it."""
    *before, last = sorted(steps, key=lambda one: number_of(one.made_by))
    one = plan.steps[-2]
    schema, keys = one.step.operator().output_schema, _keys(one.made_by)
    panes = work.net(ShownPanes({1: keys, -1: keys}, schema), _windows(folder, last.files, 1), folder)
    return [*before, replace(last, corrections=tuple(panes))]


def _windows(folder: str, files: Iterable[SeedFile], diff: int) -> list[ShownFile]:
    return [ShownFile(folder, file, diff) for file in files if file.store == "windows"]


def _keys(made_by: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(name for name, _ in made_by["by"])


__all__ = [
    "WINDOW_STORES",
    "ChangeFile",
    "FirstStart",
    "SeedWork",
    "ShownFile",
    "ShownPanes",
    "stored_rows",
    "write_changed",
]
