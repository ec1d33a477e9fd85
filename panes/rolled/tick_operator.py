"""The operator of `rolling(every=).combine(...)`: it keeps the rows of the period, and the ticks that may be corrected.

A tick is shown as the watermark passes it; every key has rows in its period then, or had at the tick before, so all
rows of the state are read. A row that comes later reads the rows near it in time (`TimeBlocks`), and the ticks that it
has an effect on are computed again and compared with what was shown.

Guarded by tests/panes/rolled/test_ticks.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import Column, flat
from ...combiners.rows.groups import Groups, group_rows
from ...combiners.rows.hashing import hash_rows_128
from ...lookbacks.sorted_rows import SortedRows
from ...lookbacks.ticks import last_ticks, there_is, ticks_near
from ...windows.times import LAST, MIN_TIME, NEVER, UTC_MICROS
from ..rows.clocks import Clocks
from ..rows.operator import RowOperator, Stores, store_of
from ..rows.options import EVENT_TIME, ROW, AdmittedRows, key_arrays, output, output_schema, restored, stored_schema
from ..rows.unmet import tell_unmet, without_due
from ..state.hashes import key_hashes, lookup, with_start
from ..state.operator_state import OperatorState
from ..state.store import Store
from ..state.store_rows import StoreRows
from .copies import Copies, copies_of
from .operator import RESULT, has_hash
from .rolled import Rolled
from .time_blocks import TimeBlocks

NEXT = "due_tick"
"""The store of the tick that is shown next: a watermark that follows the clock is moved to it."""

_NEXT_SCHEMA = pa.schema({"tick": pa.int64()})
_NOTHING = np.empty(0, np.uint32)


@dataclass(frozen=True)
class Ticks:
    """Ticks by their keys and instants: the columns of their keys, their codes and their hashes."""

    keys: list[pa.Array]
    codes: np.ndarray
    times: np.ndarray
    hashes: np.ndarray

    def __len__(self) -> int:
        return len(self.times)

    def where(self, chosen: np.ndarray) -> Ticks:
        """Some of the ticks, in their order."""
        keys = [key.filter(pa.array(chosen)) for key in self.keys]
        return Ticks(keys=keys, codes=self.codes[chosen], times=self.times[chosen], hashes=self.hashes[chosen])


class TickOperator(RowOperator):
    """`Rolled` with ticks, for the schema of its input.

    >>> import pyarrow as pa, uncombine as uc
    >>> from uncombine.lookbacks.lookback import LookBack
    >>> schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int64()})
    >>> rolled = Rolled({"total": uc.Sum("x")}, {"": LookBack(micros=10)}, every=5, allowed_lateness="1 second")
    >>> op = TickOperator(rolled, schema)
    >>> first, late = (pa.table({"ts": [at], "x": [x]}).cast(schema) for at, x in ((7, 1), (4, 2)))
    >>> shown = op.step(op.initial(), first, watermark=11)
    >>> op.step(shown.state, late, watermark=11).panes.select(["total", "diff"]).to_pylist()
    [{'total': 1, 'diff': -1}, {'total': 2, 'diff': 1}, {'total': 3, 'diff': 1}]
    """

    def __init__(self, rolled: Rolled, schema: pa.Schema) -> None:
        assert rolled.every is not None
        columns = rolled.checked(schema)
        self.rolled, self.plan, self.every = rolled, rolled.plan(columns), rolled.every
        self.lookbacks = list(rolled.lookbacks.values())
        self.results = rolled.results(self.plan)
        self.blocks = TimeBlocks.over(max(one.longest for one in self.lookbacks) + self.every)
        keys = [columns.user.field(name) for name in rolled.by]
        given = output_schema(pa.schema([*keys, *self.results]))
        super().__init__(columns, given, 0 if rolled.final else rolled.wait)
        self.row_schema = stored_schema(columns.rows, [("weight", pa.int64())])
        own = [pa.field(f"key.{place}", field.type) for place, field in enumerate(keys)]
        results = [pa.field(RESULT + field.name, field.type) for field in self.results]
        self.tick_schema = pa.schema([*own, (ROW + EVENT_TIME, UTC_MICROS), *results])
        self.compares = all(has_hash(field.type) for field in self.results)

    def initial(self) -> OperatorState:
        """The state before any row."""
        schemas = {"rows": self.row_schema, "ticks": self.tick_schema, NEXT: _NEXT_SCHEMA}
        return OperatorState({name: Store(schema) for name, schema in schemas.items()})

    def hashes(self, store: str, rows: pa.Table) -> np.ndarray:
        """The hashes of the blocks of time of the keys of rows, and of the keys and instants of ticks."""
        keys = self.routes(store, rows)
        if store == NEXT:
            return keys
        times = _micros(rows[ROW + EVENT_TIME])
        return self.blocks.hashes(keys, times) if store == "rows" else with_start(keys, times)

    def routes(self, store: str, rows: pa.Table) -> np.ndarray:
        """The hashes of the keys, all rows and ticks of which are in one shard."""
        places = enumerate(() if store == NEXT else self.rolled.by)
        names = [ROW + name if store == "rows" else f"key.{place}" for place, name in places]
        return key_hashes(key_arrays(rows, names), rows.num_rows)

    def take_in(self, state: OperatorState, bundle: AdmittedRows, clocks: Clocks) -> tuple[pa.Table, Stores, int]:
        """The rows of output, the stores after the bundle, and the output watermark that they allow."""
        low, high = self._shown_before(clocks.before), self._shown_before(clocks.after)
        stored = self._read(store_of(state, "rows"), bundle, low, high)
        if not len(stored) and not len(bundle):
            stores: Stores = {name: store_of(state, name).without_due(clocks.leaves) for name in ("ticks", NEXT)}
            stores["rows"] = self._without_due(stored.store, clocks)
            return self.output_schema.empty_table(), stores, self._hold(state, clocks)
        loaded = stored.read().combine_chunks()
        rows = pa.concat_tables([restored(loaded, self.columns.rows), bundle.rows]).combine_chunks()
        copies, replaced = copies_of(self.columns, rows, loaded, bundle)
        sorted_rows, ticks, exist = self._ticks(rows, copies, low, high)
        some = ticks.where(exist)
        held = np.concatenate([copies.stay, copies.come])[sorted_rows.order]
        results = self._results(rows.take(pa.array(held)), sorted_rows, some)
        before, panes, shown = self._compared(store_of(state, "ticks"), ticks, exist, results, low)
        left = np.zeros(len(loaded), np.bool_)
        left[np.concatenate([replaced, copies.go])] = True
        kept = self._without_due(stored.where(left).removed(), clocks)
        stores = {"rows": self._put_rows(kept, rows, copies, clocks)}
        stores["ticks"] = self._put_ticks(before.without_due(clocks.leaves), shown, some, results, clocks)
        times = _micros(rows[EVENT_TIME])[held if self._is_due(low, high) else copies.come]
        stores[NEXT] = self._put_next(store_of(state, NEXT).without_due(clocks.leaves), times, high, clocks)
        return panes, stores, self._hold(state, clocks)

    def count_entries(self, state: OperatorState) -> int:
        """The number of rows and ticks in the state."""
        return sum(len(store_of(state, name)) for name in ("rows", "ticks"))

    def _hold(self, state: OperatorState, clocks: Clocks) -> int:
        """The output watermark: no tick that is shown later lies before it, but for corrections."""
        return max(self._shown_before(clocks.after), state.output_watermark)

    def _shown_before(self, watermark: int) -> int:
        """The instant before which all ticks have been shown under a watermark."""
        return max(watermark - self.rolled.wait, MIN_TIME) if self.rolled.final and watermark < NEVER else watermark

    def _is_due(self, low: int, high: int) -> bool:
        """True if there is a tick from `low` to before `high`."""
        return -(-low // self.every) * self.every < high

    def _read(self, store: Store, bundle: AdmittedRows, low: int, high: int) -> StoreRows:
        """The rows of the store that the step reads."""
        if self._is_due(low, high):
            return StoreRows.of(store, _NOTHING, {"event": NEVER}, self.row_schema)
        keys = key_hashes(key_arrays(bundle.rows, self.rolled.by), len(bundle))
        late = bundle.times < low
        touched = self.blocks.near(keys[late], bundle.times[late])
        if bundle.weights is not None:
            touched = np.union1d(touched, lookup(self.blocks.hashes(keys, bundle.times)))
        return StoreRows.of(store, touched, {}, self.row_schema)

    def _ticks(self, rows: pa.Table, copies: Copies, low: int, high: int) -> tuple[SortedRows, Ticks, np.ndarray]:
        """The rows that are held, in order; ticks that are due or may have changed; and which of these there are."""
        held = len(copies.stay) + len(copies.come)
        places = np.concatenate([copies.stay, copies.come, copies.go])
        some = rows.take(pa.array(places))
        by, times = key_arrays(some, self.rolled.by), _micros(some[EVENT_TIME])
        groups, first = group_rows(by, len(places)) if by else (Groups.single(len(places)), np.zeros(1, np.int64))
        here, changed = np.arange(len(places)) < held, np.arange(len(places)) >= len(copies.stay)
        sorted_rows = SortedRows.of(groups.take(here), times[here])
        change = SortedRows.of(groups.take(changed), times[changed])
        parts = [ticks_near(change, self.lookbacks, self.every, high=low)]
        parts.append(ticks_near(sorted_rows, self.lookbacks, self.every, low, high))
        codes, ticks = (np.concatenate(both) for both in zip(*parts, strict=True))
        order = np.lexsort((ticks, codes))
        codes, ticks = codes[order], ticks[order]
        keys = [key.take(pa.array(first[codes])) for key in by]
        hashes = with_start(key_hashes(keys, len(codes)), ticks)
        exist = there_is(sorted_rows, codes, ticks, self.lookbacks, self.every)
        return sorted_rows, Ticks(keys=keys, codes=codes, times=ticks, hashes=hashes), exist

    def _results(self, rows: pa.Table, sorted_rows: SortedRows, ticks: Ticks) -> list[pa.Array]:
        """The results of ticks over the rows, which are in order."""
        if not len(ticks):
            return [pa.nulls(0, field.type) for field in self.results]
        return self.rolled.rolling.results_of_ticks(rows, self.plan, sorted_rows, ticks.codes, ticks.times)

    def _compared(
        self, store: Store, ticks: Ticks, exist: np.ndarray, results: Sequence[pa.Array], low: int
    ) -> tuple[Store, pa.Table, np.ndarray]:
        """The store without the ticks that are shown otherwise now, the rows of output, and which results are new."""
        late = np.flatnonzero(ticks.times < low)
        stored = StoreRows.of(store, lookup(ticks.hashes[late]), {}, self.tick_schema)
        loaded = stored.read().combine_chunks()
        tick_of = self._matches(ticks, late, loaded)
        place = np.cumsum(exist) - 1
        gone, same = tick_of >= 0, np.zeros(len(loaded), np.bool_)
        both = np.flatnonzero(gone)
        both = both[exist[tick_of[both]]]
        if self.compares and len(both):
            old = [Column(flat(loaded[RESULT + field.name]).take(pa.array(both))) for field in self.results]
            new = [Column(column.take(pa.array(place[tick_of[both]]))) for column in results]
            (a, b), (c, d) = hash_rows_128(old), hash_rows_128(new)
            same[both] = (a == c) & (b == d)
        given = np.ones(int(np.count_nonzero(exist)), np.bool_)
        given[place[tick_of[same]]] = False
        gone &= ~same
        names = self.output_schema.names[:-1]
        shown = ticks.where(exist).where(given)
        fresh = [*shown.keys, *(column.filter(pa.array(given)) for column in results), _instants(shown.times)]
        before = loaded.filter(pa.array(gone))
        keys = [f"key.{place}" for place in range(len(self.rolled.by))]
        stale = [*(before[name] for name in keys), *(before[RESULT + field.name] for field in self.results)]
        tables = [
            pa.Table.from_arrays([*stale, before[ROW + EVENT_TIME]], names=names),
            pa.Table.from_arrays(fresh, names=names),
        ]
        weights = np.concatenate([np.full(len(before), -1), np.ones(len(shown), np.int64)])
        panes = output(pa.concat_tables(tables), weights, self.output_schema)
        return stored.where(gone).removed(), panes, given

    def _matches(self, ticks: Ticks, late: np.ndarray, loaded: pa.Table) -> np.ndarray:
        """For each tick that was shown, the place among the ticks; -1 for one that was found by mistake."""
        count = len(late)
        keys = [
            pa.concat_arrays([key.take(pa.array(late)), flat(loaded[f"key.{place}"])])
            for place, key in enumerate(ticks.keys)
        ]
        times = pa.array(np.concatenate([ticks.times[late], _micros(loaded[ROW + EVENT_TIME])]))
        groups, first = group_rows([*keys, times], count + len(loaded))
        at = first[groups.codes[count:]]
        out = np.full(len(loaded), -1)
        out[at < count] = late[at[at < count]]
        return out

    def _put_rows(self, store: Store, rows: pa.Table, copies: Copies, clocks: Clocks) -> Store:
        """The store with the rows that come, and with those that are awaited."""
        times, wait = _micros(rows[EVENT_TIME]), self.rolled.wait
        last = last_ticks(times[copies.come], self.lookbacks, self.every)
        places = np.concatenate([copies.come, copies.awaited])
        weights = np.concatenate([np.ones(len(copies.come), np.int64), copies.lacking])
        until = np.concatenate([last, times[copies.awaited]]) + wait + 1
        stays = until > clocks.after
        unmet = ~stays & (weights < 0)
        tell_unmet("rolling", rows.take(pa.array(places[unmet])), weights[unmet])
        columns = [*rows.take(pa.array(places[stays])).columns, pa.array(weights[stays])]
        table = pa.Table.from_arrays(columns, schema=self.row_schema)
        return store.put(self.hashes("rows", table), table, {"event": until[stays]})

    def _without_due(self, store: Store, clocks: Clocks) -> Store:
        return without_due("rolling", store, clocks.leaves, self.rolled.diff)

    def _put_next(self, store: Store, times: np.ndarray, high: int, clocks: Clocks) -> Store:
        """The store with the first tick that is to be shown: of rows of these times, or the one that is known."""
        first = np.maximum(-(-times // self.every), -(-min(high, LAST) // self.every)) * self.every
        first = first[first <= last_ticks(times, self.lookbacks, self.every)]
        wake = int(first.min()) + 1 + (self.rolled.wait if self.rolled.final else 0) if len(first) else NEVER
        if wake >= store.least("event") or wake <= clocks.after:
            return store
        table = pa.table({"tick": [wake]}, schema=_NEXT_SCHEMA)
        return Store(_NEXT_SCHEMA).put(self.hashes(NEXT, table), table, {"event": np.array([wake])})

    def _put_ticks(
        self, store: Store, given: np.ndarray, ticks: Ticks, results: Sequence[pa.Array], clocks: Clocks
    ) -> Store:
        """The store with the ticks that are shown and may be corrected."""
        until = ticks.times + self.rolled.wait + 1
        stays = given & (until > clocks.after)
        if self.rolled.final or not stays.any():
            return store
        kept = ticks.where(stays)
        columns = [*kept.keys, _instants(kept.times), *(column.filter(pa.array(stays)) for column in results)]
        table = pa.Table.from_arrays(columns, schema=self.tick_schema)
        return store.put(kept.hashes, table, {"event": until[stays]})


def _instants(times: np.ndarray) -> pa.Array:
    return pa.array(times, pa.int64()).view(UTC_MICROS)


def _micros(column: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(flat(column).cast(pa.int64()))


__all__ = ["TickOperator", "Ticks"]
