"""The operator of `rolling(...).combine(...)`: it keeps the rows of the period, with the results that were shown.

Of the key of each row of a bundle the rows near it in time are loaded (`TimeBlocks`), and the results of each row that
sees one that came or went are computed again; rows that were shown otherwise are corrected by what was shown. Only
rows that change are written again. A row leaves when no row that may still come, or be corrected, can see it. Each copy
of a row has a place of its own.

Guarded by tests/panes/rolled/test_rolled.py.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import Column, flat
from ...combiners.rows.groups import Groups, group_rows
from ...combiners.rows.hashing import hash_rows_128, require_hash
from ...combiners.rows.ordering import order_keys
from ...errors import TypeMismatch
from ...lookbacks.known import Runs
from ...lookbacks.lookback import LookBack
from ...lookbacks.sorted_rows import SortedRows
from ...windows.times import NEVER
from ..rows.clocks import Clocks
from ..rows.equal_rows import netted
from ..rows.operator import RowOperator, Stores, store_of
from ..rows.options import EVENT_TIME, ROW, AdmittedRows, key_arrays, output, output_schema, restored, stored_schema
from ..rows.unmet import tell_unmet, without_due
from ..state.hashes import key_hashes, lookup
from ..state.operator_state import OperatorState
from ..state.store import Store
from ..state.store_rows import StoreRows
from .copies import Copies, copies_of
from .labels import IS_LABEL, KNOWN, label_names, results_of_labels
from .rolled import Rolled
from .shown_results import NONE, ShownResults
from .time_blocks import TimeBlocks

RESULT = "result."
"""The beginning of the names of the results in the store."""


class RolledOperator(RowOperator):
    """`Rolled` for the schema of its input.

    >>> import pyarrow as pa, uncombine as uc
    >>> from uncombine.lookbacks.lookback import LookBack
    >>> schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int64()})
    >>> rolled = Rolled({"total": uc.Sum("x")}, {"": LookBack(micros=10)}, allowed_lateness="1 second")
    >>> op = RolledOperator(rolled, schema)
    >>> first, late = (pa.table({"ts": [at], "x": [x]}).cast(schema) for at, x in ((7, 1), (5, 2)))
    >>> shown = op.step(op.initial(), first, watermark=7)
    >>> op.step(shown.state, late, watermark=7).panes.select(["x", "total", "diff"]).to_pylist()
    [{'x': 1, 'total': 1, 'diff': -1}, {'x': 2, 'total': 2, 'diff': 1}, {'x': 1, 'total': 3, 'diff': 1}]
    """

    def __init__(self, rolled: Rolled, schema: pa.Schema) -> None:
        columns = rolled.checked(schema)
        self.rolled, self.plan = rolled, rolled.plan(columns)
        self.results = rolled.results(self.plan)
        self.blocks = TimeBlocks.of(rolled.lookbacks.values())
        given = [columns.user.field(name) for name in label_names(columns.user.names)]
        super().__init__(columns, output_schema(pa.schema([*given, *self.results])), self._lateness(rolled))
        own = [("weight", pa.int64()), ("shown", pa.bool_())]
        own += [(RESULT + field.name, field.type) for field in self.results]
        self.stored_schema = stored_schema(columns.rows, own)
        self.compares = all(has_hash(field.type) for field in self.results)
        self.nets = self.compares and (rolled.diff is not None or rolled.rows > 0)

    @staticmethod
    def _lateness(rolled: Rolled) -> int:
        return 0 if rolled.final else rolled.wait

    def initial(self) -> OperatorState:
        """The state before any row."""
        return OperatorState({"rows": Store(self.stored_schema)})

    def hashes(self, store: str, rows: pa.Table) -> np.ndarray:
        """The hashes of the blocks of time of the keys, by which the rows near a time are found."""
        plain = _plain(rows)
        return self.blocks.hashes(self._keys(plain), _times(plain))

    def routes(self, store: str, rows: pa.Table) -> np.ndarray:
        """The hashes of the keys, all rows of which are in one shard."""
        return self._keys(_plain(rows))

    def count_waiting(self, state: OperatorState) -> int:
        """The number of rows that wait for the watermark."""
        rows = store_of(state, "rows").rows()
        return int(np.count_nonzero(self._waiting(rows) & (_ints(rows["weight"]) > 0)))

    def take_in(self, state: OperatorState, bundle: AdmittedRows, clocks: Clocks) -> tuple[pa.Table, Stores, int]:
        """The rows of output, the stores after the bundle, and the output watermark that they allow."""
        stored = self._near(store_of(state, "rows"), bundle, clocks)
        panes, store = self._corrected(stored, bundle, clocks)
        hold = clocks.after
        if self.rolled.final and not clocks.each_batch:
            hold = max(clocks.after - self.rolled.wait, state.output_watermark) if hold < NEVER else hold
        return panes, {"rows": store}, hold

    def _corrected(self, stored: StoreRows, bundle: AdmittedRows, clocks: Clocks) -> tuple[pa.Table, Store]:
        """The rows of output, and the store after the bundle, of which some rows are loaded."""
        if not len(stored) and not len(bundle):
            return self.output_schema.empty_table(), self._without_due(stored.store, clocks)
        loaded = stored.read().combine_chunks()
        rows = pa.concat_tables([restored(loaded, self.columns.rows), bundle.rows]).combine_chunks()
        copies, replaced = copies_of(self.columns, rows, loaded, bundle)
        shown = np.concatenate([_bools(loaded["shown"]), np.zeros(len(bundle), np.bool_)])
        results = ShownResults.of([flat(loaded[RESULT + field.name]) for field in self.results])
        held, gone = np.concatenate([copies.stay, copies.come]), copies.go
        came = np.arange(len(held)) >= len(copies.stay)
        sorted_rows, wanted = None, np.zeros(len(held), np.bool_)
        waits, labels = ~shown[held] | came, self._sees_others(rows)[held]
        if self.rolled.final:
            wanted = labels & waits & (_times(rows)[held] + self.rolled.wait < clocks.after)
        if not self.rolled.final or wanted.any():
            sorted_rows, changed, known = self._sorted(rows, held, came, gone)
            order = sorted_rows.order
            held, came, waits, labels, wanted = (
                some.take(order, mode="clip") for some in (held, came, waits, labels, wanted)
            )
            wanted = wanted if self.rolled.final else labels & self._sees(changed, sorted_rows, came, known)
        results = results.at(np.where(came, NONE, held))
        if sorted_rows is not None and wanted.any():
            places = np.flatnonzero(wanted)
            results = results.with_new(places, self._computed(rows, held, sorted_rows, places))
        differs = wanted & ~self._equal(results, held, wanted & ~waits)
        panes = self._panes(rows, gone[shown[gone]], held, results, differs & ~waits, differs)
        # Nothing sees a label, and an event waits for nothing.
        out = labels if self.rolled.labels else waits & ~wanted
        wake = self._wake(_times(rows)[held], out, sorted_rows, clocks)
        stays, fresh = (wake > clocks.after) | clocks.each_batch, came | differs
        leaves = np.zeros(len(loaded), np.bool_)
        leaves[np.concatenate([replaced, gone, held[~came & (fresh | ~stays)]])] = True
        store = self._without_due(stored.where(leaves).removed(), clocks)
        return panes, self._put(store, rows, held, results, ~waits | wanted, wake, fresh & stays, copies, clocks)

    def _near(self, store: Store, bundle: AdmittedRows, clocks: Clocks) -> StoreRows:
        """The rows of the store that the step reads."""
        keys, times, nothing = self._keys(bundle.rows), bundle.times, np.empty(0, np.uint32)
        if not len(store):
            return StoreRows.of(store, nothing, {}, self.stored_schema)
        if not self.rolled.final:
            return StoreRows.of(store, self.blocks.near(keys, times), {}, self.stored_schema)
        due = StoreRows.of(store, nothing, clocks.leaves, self.stored_schema)
        due = due.where(self._waiting(due.read(["shown", *([ROW + IS_LABEL] if self.rolled.labels else [])])))
        if len(due) == len(store):
            return due
        # The rows that come out see others; those that wait may meet a retraction.
        out = times + self.rolled.wait < clocks.after
        due_rows = _plain(due.read([ROW + name for name in (*self.rolled.by, EVENT_TIME)]))
        seen = np.concatenate([keys[out], self._keys(due_rows)]), np.concatenate([times[out], _times(due_rows)])
        touched = self.blocks.near(*seen, after=False)
        if bundle.weights is not None:
            touched = np.union1d(touched, lookup(self.blocks.hashes(keys, times)))
        return StoreRows.of(store, touched, {}, self.stored_schema)

    def _sorted(
        self, rows: pa.Table, held: np.ndarray, came: np.ndarray, gone: np.ndarray
    ) -> tuple[SortedRows, SortedRows, np.ndarray | None]:
        """The rows that are held, in order, those that came or went, and when these were known, if it matters."""
        places = np.concatenate([held, gone])
        times, by = _times(rows)[places], key_arrays(rows.take(pa.array(places)), self.rolled.by)
        groups = group_rows(by, len(places))[0] if by else Groups.single(len(places))
        here = np.arange(len(places)) < len(held)
        then = None
        if self.rolled.rows:
            low, high = self.columns.row_hashes(rows)
            keys = order_keys([Column(flat(rows[str(self.rolled.order)]))]).keys
            then = np.empty(len(held), np.int64)
            then[np.lexsort((high[held], low[held], keys[held]))] = np.arange(len(held))
        sorted_rows = SortedRows.of(groups.take(here), times[here], then)
        change = np.append(came, np.ones(len(gone), np.bool_))
        if self.rolled.labels:
            change &= ~self._sees_others(rows)[places]
        changed, known = SortedRows.of(groups.take(change), times[change]), None
        if KNOWN in rows.column_names:
            known = _micros(rows[KNOWN])[places[change][changed.order]]
        return sorted_rows, changed, known

    def _sees(self, changed: SortedRows, rows: SortedRows, came: np.ndarray, known: np.ndarray | None) -> np.ndarray:
        """True for the rows that came, and for those that see one that came or went.

        With a number of rows that is all that come after one.
        """
        sees = came.copy()
        asks = np.flatnonzero(~came & (rows.times >= changed.times.min(initial=NEVER)))
        if not len(asks):
            return sees
        for lookback in self.rolled.lookbacks.values():
            one = LookBack() if lookback.rows else lookback
            if known is not None:
                ranges = changed.ranges_at(rows.codes, rows.times, one)
                sees |= Runs.of(changed, rows, ranges, known).sizes > 0
            else:
                sees[asks] |= changed.ranges_at(rows.codes[asks], rows.times[asks], one).sizes > 0
        return sees

    def _computed(
        self, rows: pa.Table, held: np.ndarray, sorted_rows: SortedRows, places: np.ndarray
    ) -> list[pa.Array]:
        """The results at some places of the rows that are held, which are sorted."""
        rolling = self.rolled.rolling
        if not self.rolled.labels:
            read = rows.select(list(self.plan.columns) or [EVENT_TIME]).take(pa.array(held))
            return rolling.results_at(read, self.plan, sorted_rows, places)
        some = rows.take(pa.array(held))
        return results_of_labels(self.plan, rolling.lookbacks, rolling.min_rows, some, sorted_rows, places)

    def _equal(self, results: ShownResults, held: np.ndarray, asked: np.ndarray) -> np.ndarray:
        """True where the results that are asked for are those that were shown."""
        equal = np.zeros(len(held), np.bool_)
        if not self.compares or not asked.any():
            return equal
        (a, b), (c, d) = (
            hash_rows_128([Column(column) for column in some])
            for some in (results.before(held[asked]), results.take(np.flatnonzero(asked)))
        )
        equal[asked] = (a == c) & (b == d)
        return equal

    def _panes(
        self,
        rows: pa.Table,
        gone: np.ndarray,
        held: np.ndarray,
        results: ShownResults,
        corrected: np.ndarray,
        given: np.ndarray,
    ) -> pa.Table:
        """The rows of output: retractions first."""
        before = np.concatenate([gone, held[corrected]])
        after = np.flatnonzero(given)
        taken = rows.take(pa.array(np.concatenate([before, held[after]])))
        pairs = zip(results.before(before), results.take(after), strict=True)
        both = [pa.concat_arrays(pair) for pair in pairs]
        names = [field.name for field in self.results]
        table = pa.Table.from_arrays([*taken.columns, *both], names=[*taken.column_names, *names])
        weights = np.concatenate([np.full(len(before), -1), np.ones(len(after), np.int64)])
        if len(before) and self.nets:
            # A copy may be shown as another one was.
            _, first, sums = netted(*hash_rows_128([Column(column) for column in table.columns]), weights)
            left = first[sums != 0]
            table, weights = table.take(pa.array(left)), sums[sums != 0]
        return output(table, weights, self.output_schema)

    def _put(
        self,
        store: Store,
        rows: pa.Table,
        held: np.ndarray,
        results: ShownResults,
        shown: np.ndarray,
        wake: np.ndarray,
        chosen: np.ndarray,
        copies: Copies,
        clocks: Clocks,
    ) -> Store:
        """The store with the rows that are chosen, and with those that are awaited."""
        stays = np.flatnonzero(chosen)
        waits = _times(rows)[copies.awaited] + self.rolled.wait + 1
        awaits = (waits > clocks.after) | clocks.each_batch
        tell_unmet("rolling", rows.take(pa.array(copies.awaited[~awaits])), copies.lacking[~awaits])
        awaited, lacking = copies.awaited[awaits], copies.lacking[awaits]
        places = pa.array(np.concatenate([held[stays], awaited]))
        columns = [
            *rows.take(places).columns,
            pa.array(np.concatenate([np.ones(len(stays), np.int64), lacking])),
            pa.array(np.concatenate([shown[stays], np.ones(len(awaited), np.bool_)])),
            *results.take(stays, nulls=len(awaited)),
        ]
        table = pa.Table.from_arrays(columns, schema=self.stored_schema)
        until = np.concatenate([wake[stays], waits[awaits]])
        return store.put(self.hashes("rows", table), table, {"event": until})

    def _without_due(self, store: Store, clocks: Clocks) -> Store:
        return without_due("rolling", store, clocks.leaves, self.rolled.diff)

    def _wake(self, times: np.ndarray, waits: np.ndarray, sorted_rows: SortedRows | None, clocks: Clocks) -> np.ndarray:
        """The watermark at which each row comes out, or leaves."""
        wake = times + self.rolled.wait + 1
        if waits.all():
            return wake
        return np.where(waits, wake, self._leaves(times, sorted_rows, clocks))

    def _leaves(self, times: np.ndarray, rows: SortedRows | None, clocks: Clocks) -> np.ndarray:
        """The watermark at which no row that may come or be corrected sees a row any more."""
        leaves = np.zeros(len(times), np.int64)
        for lookback in self.rolled.lookbacks.values():
            if lookback.ever or (lookback.rows and rows is None):
                return np.full(len(times), NEVER)
            leaves = np.maximum(leaves, times + self.rolled.wait + lookback.longest)
        if rows is not None and self.rolled.rows:
            # Of the rows that are before all that may come, the last so many are seen.
            fixed = rows.times + self.rolled.wait < clocks.after
            before = np.append(0, np.cumsum(fixed))
            left = before[rows.bounds[1:]][rows.codes] - before[1:]
            return np.where(fixed & (left >= self.rolled.rows), clocks.after, NEVER)
        return leaves

    def _waiting(self, rows: pa.Table) -> np.ndarray:
        """True for the stored rows that are to be given, and were not."""
        return ~_bools(rows["shown"]) & self._sees_others(rows, ROW)

    def _sees_others(self, rows: pa.Table, prefix: str = "") -> np.ndarray:
        """True for the rows that see others, and are given: all, or the labels."""
        return _bools(rows[prefix + IS_LABEL]) if self.rolled.labels else np.ones(rows.num_rows, np.bool_)

    def _keys(self, rows: pa.Table) -> np.ndarray:
        return key_hashes(key_arrays(rows, self.rolled.by), rows.num_rows)


def has_hash(kind: pa.DataType) -> bool:
    """True for a type whose values can be told apart by hashes."""
    try:
        require_hash(kind, "it", "it")
    except TypeMismatch:
        return False
    return True


def _plain(rows: pa.Table) -> pa.Table:
    """Stored rows under the names of the columns of the input."""
    return rows.rename_columns([name.removeprefix(ROW) for name in rows.column_names])


def _times(rows: pa.Table) -> np.ndarray:
    return _micros(rows["event_time"])


def _micros(column: pa.ChunkedArray) -> np.ndarray:
    """The microseconds of times; any number where there is none."""
    return np.asarray(flat(column).cast(pa.int64()).fill_null(0))


def _bools(column: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(flat(column).to_numpy(zero_copy_only=False)).astype(np.bool_)


def _ints(column: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(flat(column))


__all__ = ["RESULT", "RolledOperator", "has_hash"]
