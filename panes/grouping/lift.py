"""The lift: the task that reads rows combines them to cells, which travel to their shards as few large parcels.

Rows travel as rows if a trigger needs them one by one, if rows left out are shown, or if combining does not pay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import flat, int64_column, joined_tables
from ...combiners.rows.groups import keyed_groups
from ...combiners.rows.key_codes import normal_keys, of_values_used
from ...combiners.rows.plain_types import is_text
from ...triggers import UserTrigger, walk
from ...windows import RowWindows, Sliding
from ...windows.times import MAX_TIME, MIN_TIME
from ..parcels import AT, Parcel
from ..row_lift import shard_of, split
from ..state.hashes import key_hashes
from ..state.operator import StatefulOperator
from .cells import Cells
from .compiled import CompiledGrouping
from .grouping import Grouping
from .rows import Rows, good_rows
from .rows_to_cells import assign, combined, merge_in_order
from .slices import windows_from_slices
from .when_to_combine import combining_pays

TOGETHER = 64
"""The number of neighbouring windows of a key that are in one shard, if it has texts and its accumulators are small."""


def needs_rows(grouping: Grouping) -> bool:
    """True if a shard needs the rows one by one, so that cells are not enough."""
    return (
        grouping.granularity == "record"
        or grouping.policy == "earliest"
        or grouping.splits
        or any(isinstance(t, UserTrigger) for t in walk(grouping.effective_trigger))
    )


def where_combined(grouping: Grouping, as_rows: bool) -> str:
    """The place where rows of one processing time are combined, for `explain`; `as_rows` if all travel as rows."""
    if as_rows:
        return "in the shards, which need the rows one by one"
    if grouping.window.merging or not grouping.by:
        return "in the tasks that read them"
    return "in the tasks that read them, unless a sample says that nearly every row is alone in its window"


class Lift:
    """Makes parcels of rows for a number of shards.

    With `timed`, each row may have its own processing time: then some travel as rows and some as cells. With `rows` all
    travel as rows. In both cases all windows of a key are in one shard, since only there the window of a row is known.

    >>> import pyarrow as pa, uncombine as uc
    >>> from uncombine.panes.grouping.compiled import CompiledGrouping
    >>> from uncombine.panes.grouping.lift import Lift
    >>> schema = pa.schema({"ts": pa.timestamp("us"), "x": pa.int64()})
    >>> from uncombine.panes.grouping.grouping import Grouping
    >>> op = CompiledGrouping.of(Grouping({"n": uc.Sum("x")}, uc.Fixed("1 minute")), schema)
    >>> rows = pa.table({"ts": [0, 1], "x": [1, 2]}).cast(schema)
    >>> [(shard, parcel.kind, parcel.table.num_rows) for shard, parcel in Lift(op, 1)(rows, at=0)]
    [(0, 'cells', 1)]
    """

    def __init__(self, compiled: CompiledGrouping, shards: int, timed: bool = False, rows: bool = False) -> None:
        self.compiled, self.shards, self.timed = compiled, shards, timed
        self.as_rows = rows or needs_rows(compiled.grouping)

    def __call__(self, rows: pa.Table, at: int | np.ndarray) -> list[tuple[int, Parcel]]:
        """Make parcels of rows that arrived `at`: one time for all, or one for each."""
        if rows.num_rows == 0:
            return []
        if isinstance(at, np.ndarray) and int(at.min()) == int(at.max()):
            at = int(at[0])
        if self.as_rows or isinstance(at, np.ndarray):
            return self._rows(rows, at)
        op = self.compiled
        good = good_rows(op.grouping, rows, at)
        assigned = assign(op.grouping.window, good)
        if not self.combines(good, assigned):
            shards = np.zeros(rows.num_rows, np.int64)  # bad rows are counted in the first
            shards[good.places] = self.shard_of(good.keys, assigned.start)
            return self._split(rows, shards, at)
        return self.parcels(replace(combined(op, good, assigned, MIN_TIME, coded=True), bad=good.bad), at)

    def combines(self, rows: Rows, assigned: RowWindows) -> bool:
        """True if rows of one time are combined here, and not in their shards."""
        if self.compiled.grouping.window.merging or not rows.keys or assigned.row is not None:
            return True
        return combining_pays(rows.keys, assigned, len(rows))

    def parcels(self, cells: Cells, at: int) -> list[tuple[int, Parcel]]:
        """The parcels of cells of rows that arrived `at`."""
        counts = (cells.bad, cells.unassigned)
        out = []
        whole = cells_table(cells, live_numbers(self.compiled))
        for shard, table in parts_of(whole, self.shard_of(cells.keys, cells.start), self.shards):
            out.append((shard, Parcel("cells", table, at, *counts)))
            counts = (0, 0)
        if any(counts):  # rows that gave no cell and are only counted
            out.append((0, Parcel("cells", whole, at, *counts)))
        return out

    def _rows(self, rows: pa.Table, at: int | np.ndarray) -> list[tuple[int, Parcel]]:
        keys = [normal_keys(flat(rows[name])) for name in self.compiled.grouping.by]
        return self._split(rows, self.shard_of(keys, None, rows.num_rows), at)

    def _split(self, rows: pa.Table, shards: np.ndarray, at: int | np.ndarray) -> list[tuple[int, Parcel]]:
        times = np.full(rows.num_rows, at) if isinstance(at, int) else at
        rows = as_in(rows, self.compiled.schema)
        table = rows.append_column(AT, pa.array(times, pa.int64()))
        return [(shard, Parcel("rows", part)) for shard, part in split(table, shards, self.shards)]

    def shard_of(self, keys: Sequence[pa.Array], start: np.ndarray | None, count: int | None = None) -> np.ndarray:
        """The shard of each key, or of each window if the windows of a key are independent of each other."""
        return shard_of(self.hashes(keys, start, count), self.shards)

    def hashes(self, keys: Sequence[pa.Array], start: np.ndarray | None, count: int | None = None) -> np.ndarray:
        """A hash of the key or window; rows of one hash stay together."""
        rows = len(start) if count is None and start is not None else int(count or 0)
        if self.whole_keys or start is None:
            return key_hashes(keys, rows)
        return key_hashes(keys, rows, start // self.near if self.near else start)

    def routes(self, operator: StatefulOperator, store: str, rows: pa.Table) -> np.ndarray:
        """The hash by which each row of a store of the step belongs to a shard: that of its key or window."""
        if self.whole_keys:
            return operator.routes(store, rows)
        keys = [flat(rows[f"key.{i}"]) for i in range(len(self.compiled.grouping.by))]
        return self.hashes(keys, int64_column(rows["num.start"]))

    @cached_property
    def near(self) -> int:
        """The microseconds within which windows of a key are in one shard; 0 if each may be in a shard of its own.

        A text then travels to one shard instead of to all. Accumulators of one size are small, so that a shard with all
        windows of a key has little more to do than the others.
        """
        op = self.compiled
        kinds = [op.schema.field(name).type for name in op.grouping.by]
        texts = any(is_text(getattr(kind, "value_type", kind)) for kind in kinds)
        sized = not any(is_text(field.type) or pa.types.is_nested(field.type) for field in op.plan.fields)
        return min(TOGETHER * op.grouping.window.stride, MAX_TIME) if texts and sized else 0

    @property
    def whole_keys(self) -> bool:
        """True if all windows of a key are in one shard."""
        window = self.compiled.grouping.window
        return window.merging or isinstance(window, Sliding) or self.as_rows or self.timed


def keys_alone(op: CompiledGrouping) -> frozenset[str]:
    """The key columns that nothing else reads, so that their texts can stay dictionaries."""
    grouping = op.grouping
    return frozenset(grouping.by) - {grouping.time, grouping.diff, *grouping.window.columns, *op.plan.columns}


def as_in(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows whose columns are dictionaries only where those of the schema are."""
    for i, field in enumerate(rows.schema):
        place = schema.get_field_index(field.name)
        if place >= 0 and pa.types.is_dictionary(field.type) and not pa.types.is_dictionary(schema.field(place).type):
            rows = rows.set_column(i, field.name, rows.column(i).cast(schema.field(place).type))
    return rows


def cells_of_rows(op: CompiledGrouping, rows: pa.Table, at: int) -> Cells:
    """Combine rows to cells. Their windows are merged; sliding windows are still in slices."""
    good = good_rows(op.grouping, rows, at)
    return replace(combined(op, good, assign(op.grouping.window, good), MIN_TIME, coded=True), bad=good.bad)


def live_numbers(op: CompiledGrouping) -> tuple[str, ...]:
    """The numbers of cells that travel to the shards."""
    return ("start", "end", "count", "weight", *op.grouping.extents)


def cells_table(cells: Cells, numbers: Sequence[str]) -> pa.Table:
    """Cells as a table for `cells_back`, which replaces a missing column by its default."""
    columns: dict[str, pa.Array] = {f"key.{i}": _travelling(key) for i, key in enumerate(cells.keys)}
    for name in numbers:
        columns[name] = pa.array(getattr(cells, name))
    columns.update({f"acc.{i}": acc for i, acc in enumerate(cells.acc)})
    columns.update({f"fact.{name}": pa.array(values) for name, values in cells.facts.items()})
    return pa.table(columns)


def _travelling(key: pa.Array) -> pa.Array:
    """A key column of cells in its smaller form: a dictionary only if its values repeat."""
    if pa.types.is_dictionary(key.type) and 2 * len(key.dictionary) > len(key):
        return normal_keys(key)
    return key


def parts_of(table: pa.Table, codes: np.ndarray, count: int) -> Iterator[tuple[int, pa.Table]]:
    """The cells of each code, each with the values of dictionaries that it has."""
    for code, part in split(table, codes, count):
        for i, kind in enumerate(part.schema.types):
            if pa.types.is_dictionary(kind):
                part = part.set_column(i, part.field(i).name, of_values_used(flat(part.column(i))))
        yield code, part


def cells_back(op: CompiledGrouping, parcels: Sequence[Parcel]) -> Cells:
    """The cells of one or more parcels, in sequence."""
    table = joined_tables([parcel.table for parcel in parcels])
    count = table.num_rows

    def numbers(name: str, otherwise: int = 1) -> np.ndarray:
        if name not in table.column_names:
            return np.full(count, otherwise)
        return int64_column(table[name])

    return Cells(
        keys=[flat(table[f"key.{i}"]) for i in range(len(op.grouping.by))],
        start=numbers("start"),
        end=numbers("end"),
        acc=tuple(flat(table[f"acc.{i}"]) for i in range(len(op.plan.fields))),
        count=numbers("count"),
        weight=numbers("weight"),
        earliest=numbers("earliest", MAX_TIME),
        latest=numbers("latest", MIN_TIME),
        facts={fact.name: numbers(f"fact.{fact.name}") for fact in op.facts},
        unassigned=sum(parcel.unassigned for parcel in parcels),
        bad=sum(parcel.bad for parcel in parcels),
    )


def together(op: CompiledGrouping, cells: Cells) -> Cells:
    """Merge cells of several tasks into one for each (key, window)."""
    window = op.grouping.window
    if len(cells) == 0:
        return cells
    if window.merging:
        merged = merge_in_order(window, cells.keys, RowWindows(None, cells.start, cells.end))
        one = cells.summed(op.plan, merged.groups)
        return replace(one, start=merged.start, end=merged.end)
    bounds = [cells.start] if window.end_follows_start else [cells.start, cells.end]
    groups, _ = keyed_groups([*map(pa.array, bounds), *cells.keys], len(cells))
    return cells if groups.count == len(cells) else cells.summed(op.plan, groups)


def whole_windows(op: CompiledGrouping, cells: Cells) -> Cells:
    """Cells of sliding windows, made from those of their slices; other cells unchanged."""
    window = op.grouping.window
    return windows_from_slices(window, op.plan, cells) if isinstance(window, Sliding) else cells


def joined(op: CompiledGrouping, rows: pa.Table, parcels: Sequence[Parcel], at: int) -> pa.Table | Cells:
    """The rows and cells of one processing time together: as rows if the shard needs rows, else as cells."""
    if needs_rows(op.grouping) or not parcels:
        return rows
    return received(op, parcels, rows, at)


def received(
    op: CompiledGrouping,
    parcels: Sequence[Parcel],
    rows: pa.Table | None = None,
    at: int = MIN_TIME,
    numbers: Sequence[str] = (),
) -> Cells:
    """The cells of all parcels, and of rows that came at one time, as one for each (key, window).

    `numbers` are the numbers of cells in the parcels, if they are not those for shards.
    """
    if rows is not None and rows.num_rows:
        cells, several = cells_of_rows(op, rows, at), bool(parcels)
        if several:
            made = Parcel(
                kind="cells",
                table=cells_table(cells, numbers or live_numbers(op)),
                at=at,
                bad=cells.bad,
                unassigned=cells.unassigned,
            )
            cells = cells_back(op, [*parcels, made])
    else:
        cells, several = cells_back(op, parcels), len(parcels) > 1
    whole = whole_windows(op, together(op, cells) if several else cells)
    return replace(whole, keys=[k.dictionary_decode() if pa.types.is_dictionary(k.type) else k for k in whole.keys])
