"""The left rows that were given, with the right rows that each met: a retraction retracts exactly these.

Equal left rows may be given several times, and each time meet others: each time is a turn of the row. A retraction
is of the last turn first. Retractions of rows that never came wait for them.

Guarded by tests/panes/lookup/test_lookup.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import flat, int64_column
from ...combiners.rows.group_sums import sum_counts
from ...combiners.rows.groups import Groups, group_rows
from ..join.compiled import CompiledJoin, Side
from ..join.loaded_rows import LoadedRows
from ..join.output import row_values, rows_in_piece, values_at
from ..join.side_changes import ChangedRows, identity
from ..join.side_rows import Rows
from ..state.hashes import lookup
from ..state.store import Store
from ..state.store_rows import StoreRows

TURN, PART, TIMES = "turn", "part", "times"
"""The columns beside those of the left row: its turn, the number of the right row in it, and the weight of that one."""

MET = "met."
"""The start of the names of the columns of the right row, which are null where `TIMES` is 0: then there is none."""


def given_schema(compiled: CompiledJoin) -> pa.Schema:
    """The columns of a left row that was given, and of one right row that it met."""
    left, right = compiled.sides
    met = [(f"{MET}{i}", right.stored.field(f"value.{i}").type) for i in range(len(right.values))]
    return pa.schema([*left.stored, *((name, pa.int64()) for name in (TURN, PART, TIMES)), *met])


@dataclass(frozen=True)
class Settled:
    """The effect of a bundle on left rows: those that are given now, and those that were given and are retracted."""

    new: ChangedRows
    turns: np.ndarray
    """The turn of each new row."""
    back: pa.Table
    """The stored rows that are retracted, at least in part."""
    taken: np.ndarray
    """The weight that is taken of each of these."""
    given: Store
    early: Store


@dataclass(frozen=True)
class _Equal:
    """Rows of a bundle, of the store and of the early retractions, grouped by all columns of a left row."""

    groups: Groups
    first: np.ndarray
    """The first row of each group that the bundle has. These groups have the least numbers."""
    weights: np.ndarray
    kind: np.ndarray
    """For each row 0 if it is of the bundle, 1 if it was given, 2 if it is an early retraction."""

    @classmethod
    def of(cls, side: Side, rows: Rows, held: StoreRows, early: StoreRows) -> _Equal:
        names = side.stored.names
        every = pa.concat_tables([rows.table, held.read(names), early.read()]).combine_chunks()
        columns = [part for name in names if name != "weight" for part in identity(flat(every[name]))]
        groups, first = group_rows(columns, every.num_rows)
        kind = np.repeat(np.arange(3), [len(rows), len(held), len(early)])
        first = first[: np.count_nonzero(first < len(rows))]
        return cls(groups=groups, first=first, weights=int64_column(every["weight"]), kind=kind)

    def sums(self, chosen: np.ndarray) -> np.ndarray:
        """The sum of the weights of the chosen rows of each group of the bundle."""
        return sum_counts(self.groups, np.where(chosen, self.weights, 0))[: len(self.first)]

    def codes(self, kind: int) -> np.ndarray:
        """The group of each row of a kind; one more than the last of the bundle where it has none."""
        return np.minimum(self.groups.codes[self.kind == kind], len(self.first))


def settle(side: Side, rows: Rows, given: Store, early: Store) -> Settled:
    """Net the left rows of a bundle with each other, and with what was given."""
    touched = lookup(rows.hashes)
    held, waiting = StoreRows.of(given, touched, {}, given.schema), StoreRows.of(early, touched, {}, side.stored)
    equal = _Equal.of(side, rows, held, waiting)
    marks = held.read([TURN, PART])
    turns, parts = (int64_column(marks[name]) for name in (TURN, PART))
    leads = equal.kind == 1
    leads[leads] = parts == 0
    sums, before = equal.sums(equal.kind == 0), equal.sums(equal.kind == 2)
    take = np.minimum(equal.sums(leads), np.maximum(-sums, 0))
    rest = sums + before + take
    codes = equal.codes(1)
    last = np.full(len(equal.first) + 1, -1)
    np.maximum.at(last, codes, turns)
    taken = _taken(np.append(take, 0), codes, turns, parts, equal.weights[equal.kind == 1])
    back = held.where(taken > 0)
    is_new = rest > 0
    changes = np.append(np.minimum(rest, 0) != before, False)
    early = waiting.where(changes[equal.codes(2)]).removed()
    waits = changes[:-1] & (rest < 0)
    still = _changed(rows, equal.first[waits], rest[waits])
    return Settled(
        new=_changed(rows, equal.first[is_new], rest[is_new]),
        turns=last[:-1][is_new] + 1,
        back=back.read(),
        taken=taken[taken > 0],
        given=_reduced(back, taken[taken > 0]),
        early=early.put(still.hashes, still.table, {"event": still.expiry}),
    )


def _taken(
    take: np.ndarray, codes: np.ndarray, turns: np.ndarray, parts: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """The weight that is taken of each stored row, if so much is taken of each group, and its last turn goes first."""
    out = np.zeros(len(codes), np.int64)
    places = np.flatnonzero(take[codes] > 0)
    if not len(places):
        return out
    places = places[np.lexsort((parts[places], -turns[places], codes[places]))]
    leads = parts[places] == 0
    of_turn, group = weights[places][leads], codes[places][leads]
    before = np.cumsum(of_turn) - of_turn
    starts = np.ones(len(group), np.bool_)
    starts[1:] = group[1:] != group[:-1]
    before -= before[starts][np.cumsum(starts) - 1]
    some = np.clip(take[group] - before, 0, of_turn)
    out[places] = some[np.cumsum(leads) - 1]
    return out


def _reduced(back: StoreRows, taken: np.ndarray) -> Store:
    """The store after these weights were taken of rows of it."""
    table = back.read()
    rest = int64_column(table["weight"]) - taken
    table = table.set_column(table.column_names.index("weight"), table.schema.field("weight"), pa.array(rest))
    stays = rest > 0
    table = table.filter(pa.array(stays)).combine_chunks()
    return back.removed().put(back.hashes()[stays], table, {"event": back.clock("event")[stays]})


def _changed(rows: Rows, places: np.ndarray, weights: np.ndarray) -> ChangedRows:
    """Rows of a bundle with other weights."""
    table = rows.table.take(pa.array(places))
    table = table.set_column(table.column_names.index("weight"), table.schema.field("weight"), pa.array(weights))
    return ChangedRows(
        table=table,
        expiry=rows.expiry[places],
        before=np.zeros(len(places), np.int64),
        after=weights,
        rows=rows,
        chosen=places,
    )


def remembered(settled: Settled, right: LoadedRows, sizes: np.ndarray, partners: np.ndarray, watermark: int) -> Store:
    """The store with the new left rows, and the right rows that each met: `sizes` of the partners, one after the other.

    Rows that the watermark has passed are not kept.
    """
    new, stays = settled.new, settled.new.expiry > watermark
    if not stays.any():
        return settled.given
    count = np.maximum(sizes, 1)
    owner = np.repeat(np.arange(len(new)), count)
    part = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    partner = np.full(len(owner), -1)
    partner[np.repeat(sizes > 0, count)] = partners
    kept = stays[owner]
    owner, part, partner = owner[kept], part[kept], partner[kept]
    met = partner >= 0
    times = np.where(met, right.after.take(partner, mode="wrap"), 0) if met.any() else np.zeros(len(owner), np.int64)
    names = [name.replace(MET, "value.") for name in settled.given.schema.names if name.startswith(MET)]
    values, places = row_values(right, partner, names)
    left, met_values = ([flat(column) for column in some.columns] for some in (new.table, values))
    store, size = settled.given, rows_in_piece([*left, *met_values])
    for first in range(0, len(owner), size):
        piece = slice(first, first + size)
        of_left = pa.array(owner[piece])
        columns = [column.take(of_left) for column in left]
        columns += [pa.array(settled.turns[owner[piece]]), pa.array(part[piece]), pa.array(times[piece])]
        columns += values_at(met_values, places[piece])
        table = pa.Table.from_arrays(columns, schema=store.schema)
        store = store.put(new.hashes[owner[piece]], table, {"event": new.expiry[owner[piece]]})
    return store


__all__ = ["MET", "TIMES", "Settled", "given_schema", "remembered", "settle"]
