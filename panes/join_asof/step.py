"""One step of an as-of join: rows are taken in, left rows look for their matches, and rows leave.

The rows of a side are in its store until the watermark passes them: no other row of their time can come then, and no
retraction. A left row whose match lies after it waits until that is passed too. Of the right rows that are passed, the
last one of each key stays, because left rows that come later may meet it.

Only rows with the keys of the bundle are read, and those that the watermark passes.

Guarded by tests/panes/join_asof/test_join_asof.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import int64_column
from ...combiners.rows.groups import Groups
from ...windows.grid import later
from ...windows.times import MAX_TIME, MIN_TIME, NEVER
from ..join.compiled import CompiledJoin, Side
from ..join.difference import Difference, Keys
from ..join.loaded_rows import LoadedRows
from ..join.output import output
from ..join.ranges import FAR
from ..join.side_changes import ChangedRows, all_new, netted
from ..join.side_rows import Rows, take_in
from ..state.hashes import lookup
from ..state.operator_state import Counts, OperatorState, StepResult
from ..state.store import Store
from ..state.store_rows import StoreRows
from .candidates import NONE, Asking, Candidates, tie_columns
from .join_asof import JoinAsof
from .last_rows import LAST, last_rows

_NOTHING = np.empty(0, np.uint32)


@dataclass(frozen=True)
class Read:
    """The rows of a side that a step looks at: those of its store, and those that the bundle changes."""

    held: StoreRows
    replaced: np.ndarray
    """True for the rows of the store in whose place a row of the bundle comes."""
    changed: ChangedRows

    @cached_property
    def unchanged(self) -> StoreRows:
        """The rows of the store that stay as they are."""
        return self.held.where(~self.replaced) if self.replaced.any() else self.held


@dataclass(frozen=True)
class Matched:
    """Left rows, by their numbers, with their matches before the bundle and after it."""

    rows: np.ndarray
    before: np.ndarray
    after: np.ndarray


@dataclass(frozen=True)
class AsofStep:
    """One step, with the watermark before and after its bundle."""

    asof: JoinAsof
    compiled: CompiledJoin
    stores: Mapping[str, Store | None]
    before: int
    watermark: int

    def run(self, state: OperatorState, bundle: Sequence[pa.Table], processing_time: int) -> StepResult:
        """The output of the step, and the state after it."""
        compiled = self.compiled
        rows = [take_in(side, table, self.before) for side, table in zip(compiled.sides, bundle, strict=True)]
        stores = dict(self.stores)
        touched = self._touched(*rows)
        sides = zip(compiled.sides, rows, touched, strict=True)
        of_left, of_right = [self._read(side, some, at, stores) for side, some, at in sides]
        last = StoreRows.of(self.stores[LAST], touched[1], {}, compiled.right.stored)
        left = LoadedRows.of(compiled.left, of_left.unchanged, of_left.changed, None, self.watermark)
        others = _together(of_right.unchanged, last)
        right = LoadedRows.of(compiled.right, others, of_right.changed, None, self.watermark)
        stores["left"], stores["right"] = (some.held.where(some.replaced).removed() for some in (of_left, of_right))
        panes = compiled.output_schema.empty_table()
        if len(left):
            keys = Keys.of(left, right, windowed=False)
            matched = self._matched(left, right, keys)
            expiry = self._expiry(left, right, keys, matched)
            change = self._final(left, matched, expiry) if self.asof.final else _difference(left, matched)
            if self.asof.how == "inner":
                change = change.take(np.flatnonzero(change.right != NONE))
            panes = output(compiled, left, right, keys, change, of_left=True)
            self._put_left(of_left, matched, expiry, stores)
        for name in ("left", "left_early", "right_early"):
            if (store := stores[name]) is not None:
                stores[name] = store.without_due(self._clocks)
        self._put_right(of_right.changed, stores)
        after = replace(
            state,
            stores=stores,
            watermark=self.watermark,
            processing_time=processing_time,
            counts=state.counts + Counts(dropped=sum(len(r.late) for r in rows), bad=sum(len(r.bad) for r in rows)),
        )
        after = replace(after, output_watermark=max(state.output_watermark, self._hold(stores["left"])))
        (one, other), first = rows, bundle[0].num_rows
        left_out = {"late": (one.late, other.late + first), "bad": (one.bad, other.bad + first)}
        return StepResult(
            panes=panes, state=after, left_out={why: np.concatenate(places) for why, places in left_out.items()}
        )

    @cached_property
    def _clocks(self) -> dict[str, int]:
        return {"event": self.watermark}

    def _touched(self, left: Rows, right: Rows) -> tuple[np.ndarray, np.ndarray]:
        """For each side, the hashes of the rows of its state that the step reads, in the form for a look-up."""
        of_left, of_right = list[np.ndarray](), list[np.ndarray]()
        if any(len(self.stores[name] or ()) for name in ("left", "left_early")):
            if not (self.asof.final and self.asof.direction == "backward"):
                of_left.append(right.hashes)  # else the time of emission does not depend on the match
            if self._nets(self.compiled.left, left):
                of_left.append(left.hashes)
        if any(len(self.stores[name] or ()) for name in ("right", "right_early", LAST)):
            of_right += [left.hashes, right.hashes]
            if self.asof.final:
                due = StoreRows.of(self.stores["left"], _NOTHING, self._clocks, self.compiled.left.stored)
                of_right.append(due.hashes())
        empty = np.empty(0, np.uint64)
        return lookup(np.concatenate([empty, *of_left])), lookup(np.concatenate([empty, *of_right]))

    def _nets(self, side: Side, rows: Rows) -> bool:
        """True if rows of the bundle may be retractions, or may have been retracted before they came."""
        early = self.stores[f"{side.name}_early"]
        return early is not None and len(rows) > 0 and (len(early) > 0 or int(rows.weights.min()) < 0)

    def _read(self, side: Side, rows: Rows, touched: np.ndarray, stores: dict[str, Store | None]) -> Read:
        """The rows of a side that the step looks at; puts its early rows without those that are netted."""
        clocks = self._clocks if side.name == "left" and self.asof.final else {}
        held = StoreRows.of(self.stores[side.name], touched, clocks, side.stored)
        if not self._nets(side, rows):
            return Read(held=held, replaced=np.zeros(len(held), np.bool_), changed=all_new(rows))
        early = StoreRows.of(self.stores[f"{side.name}_early"], touched, {}, side.stored)
        changed, replaced, met = netted(rows, held, early)
        stores[f"{side.name}_early"] = early.where(met).removed()
        return Read(held=held, replaced=replaced, changed=changed)

    def _matched(self, left: LoadedRows, right: LoadedRows, keys: Keys) -> Matched:
        """The left rows whose output or expiry may change, with their matches."""
        cut = len(left)
        codes, others = keys.codes[:cut], keys.codes[cut:]
        shown = [weights > 0 for weights in (right.before, right.after)]
        differs = shown[0] != shown[1]
        chosen = left.leaves.copy() if self.asof.final else np.zeros(cut, np.bool_)
        chosen[len(left.store_rows) :] = True
        if len(left.store_rows) and differs.any():
            of_key = np.zeros(keys.count, np.bool_)
            of_key[others[differs]] = True
            chosen |= of_key[codes]
        rows = np.arange(cut) if chosen.all() else np.flatnonzero(chosen)
        every_row = len(rows) == cut
        asking = Asking(
            rows=rows,
            keys=Groups(codes if every_row else codes.take(rows), keys.count),
            times=left.times if every_row else left.times.take(rows),
            able=None if keys.non_null is None else keys.non_null[:cut][rows],
        )
        every = Candidates.of(right, Groups(others, keys.count), tie_columns(self.asof, self.compiled.right))
        after = every.where(shown[1]).matches(self.asof, asking)
        if self.asof.final or not left.before.any():
            before = after
        else:
            before = every.where(shown[0]).matches(self.asof, asking) if differs.any() else after
        return Matched(rows=rows, before=before, after=after)

    def _expiry(self, left: LoadedRows, right: LoadedRows, keys: Keys, matched: Matched) -> np.ndarray:
        """The watermark at which each of the rows leaves, since its match cannot change any longer."""
        times = left.times.take(matched.rows)
        late, tolerance = self.compiled.left.lateness, self.asof.tolerance
        if self.asof.direction == "backward" or self.watermark == MAX_TIME:
            return later(times, late + 1)
        met = matched.after != NONE
        length = np.zeros(len(times), np.int64)
        if len(right):
            length = np.where(met, np.abs(right.times.take(matched.after, mode="clip") - times), 0)
        if tolerance is not None:
            length[~met] = min(int(tolerance), FAR)
        expiry = later(times, length + late + 1)
        if keys.non_null is not None:
            null = ~keys.non_null[: len(left)][matched.rows]
            expiry[null] = later(times[null], late + 1)
            met |= null
        return expiry if tolerance is not None else np.where(met, expiry, NEVER)

    def _final(self, left: LoadedRows, matched: Matched, expiry: np.ndarray) -> Difference:
        """The rows whose matches cannot change any longer."""
        leaves = np.flatnonzero(expiry <= self.watermark)
        rows = matched.rows[leaves]
        return Difference.joined([Difference(left=rows, right=matched.after[leaves], weights=left.after[rows])])

    def _put_left(self, read: Read, matched: Matched, expiry: np.ndarray, stores: dict[str, Store | None]) -> None:
        """Put the left rows of the bundle into the state, and those of the state whose expiry is another one again."""
        unchanged, changed = read.unchanged, read.changed
        held = int(np.searchsorted(matched.rows, len(unchanged)))
        rows, own = matched.rows[:held], unchanged.clock("event")
        moved = np.zeros(len(unchanged), np.bool_)
        moved[rows] = expiry[:held] != own[rows]
        if moved.any():
            own[rows] = expiry[:held]
            some, gone = unchanged.where(moved), read.replaced.copy()
            gone[np.flatnonzero(~read.replaced)[moved]] = True
            stores["left"] = read.held.where(gone).removed()
            self._put("left", some.read(), some.hashes(), own[moved], stores)
        self._put("left", changed.table, changed.hashes, np.where(changed.sums > 0, expiry[held:], MIN_TIME), stores)
        self._put_early("left_early", changed, stores)

    def _put_right(self, changed: ChangedRows, stores: dict[str, Store | None]) -> None:
        """Put the right rows of the bundle into the state, and keep the last ones that are passed."""
        side = self.compiled.right
        due = StoreRows.of(stores["right"], _NOTHING, self._clocks, side.stored)
        stores["right"] = due.removed()
        shown = np.where(changed.sums > 0, changed.expiry, MIN_TIME)
        self._put("right", changed.table, changed.hashes, shown, stores)
        self._put_early("right_early", changed, stores)
        if self.asof.direction != "forward":
            stores[LAST] = last_rows(self.asof, side, stores[LAST], due, changed, self.watermark)

    def _put_early(self, name: str, changed: ChangedRows, stores: dict[str, Store | None]) -> None:
        """Put the rows whose retraction came first, until the watermark passes their own time."""
        if stores[name] is not None:
            early = np.where(changed.sums < 0, changed.expiry, MIN_TIME)
            self._put(name, changed.table, changed.hashes, early, stores)

    def _put(
        self, name: str, table: pa.Table, hashes: np.ndarray, expiry: np.ndarray, stores: dict[str, Store | None]
    ) -> None:
        """Put those rows into a store that the watermark has not passed."""
        store, stays = stores[name], expiry > self.watermark
        assert store is not None
        if not stays.any():
            return
        if not stays.all():
            table, hashes, expiry = table.filter(pa.array(stays)), hashes[stays], expiry[stays]
        table = table.combine_chunks()
        stores[name] = store.put(hashes, table, {"event": expiry, "hold": int64_column(table["time"])})

    def _hold(self, left: Store | None) -> int:
        """The time before which no later row of output lies: a row of output has the time of its left row."""
        if not MIN_TIME < self.watermark < MAX_TIME or left is None:
            return self.watermark
        return left.least("hold", below=max(self.watermark - self.compiled.left.lateness, MIN_TIME))


def _difference(left: LoadedRows, matched: Matched) -> Difference:
    """The retractions of what was shown of left rows, and what is shown of them now."""
    rows = matched.rows
    before, after = left.before.take(rows), left.after.take(rows)
    same = matched.before == matched.after
    parts = [Difference(left=rows, right=matched.after, weights=np.where(same, after - before, after))]
    if not same.all():
        parts.append(Difference(left=rows, right=matched.before, weights=np.where(same, 0, -before)))
    return Difference.joined(parts)


def _together(*parts: StoreRows) -> StoreRows:
    """Rows of several stores with the same columns."""
    chunks = tuple(chunk for part in parts for chunk in part.store.chunks)
    return StoreRows(replace(parts[0].store, chunks=chunks), tuple(at for part in parts for at in part.places))


__all__ = ["AsofStep", "Matched"]
