"""Final panes: the only pane of each window of an input that ends. No trigger is evaluated.

The watermark runs from the beginning to the end of time, so every window gives one pane, on time, first and last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import flat, int64_column
from ...combiners.rows.key_codes import normal_keys
from ...windows import Global, result_times, timestamps
from ...windows.times import MAX_TIME, MIN_TIME
from ..parcels import Parcel
from ..row_lift import shard_of, split
from ..state.pane_type import PANE
from ..transforms import Transform
from .cells import Cells
from .grouping import DIFF, Grouping
from .lift import Lift, as_in, cells_table, parts_of, received
from .operator import Operator
from .rows import good_rows
from .rows_to_cells import assign, combined

FINAL_PANE = {
    "index": 0,
    "nonspeculative_index": 0,
    "timing": "ON_TIME",
    "is_first": True,
    "is_last": True,
    "watermark": None,
    "watermark_percentile": None,
    "processing_time": None,
    "trigger": "watermark",
    "since": None,
}
"""The pane info of every final pane. It has no clocks."""


PARCEL_CELLS = 1 << 18
"""The number of cells, roughly, above which the cells of a shard travel as several parcels, in order of place."""

PLACE_BITS = 16


def places(hashes: np.ndarray) -> np.ndarray:
    """The place of each window in the order of its shard's parcels, from 0 to 2 ** PLACE_BITS."""
    mixed = (hashes ^ (hashes >> np.uint64(31))) * np.uint64(0xD6E8FEB86659FD93)
    return (mixed >> np.uint64(64 - PLACE_BITS)).astype(np.int64)


class Final:
    """A grouping over an input that ends.

    >>> import pyarrow as pa, uncombine as uc
    >>> from uncombine.panes.grouping.final_panes import Final
    >>> rows = pa.table({"ts": pa.array([0, 1, 70_000_000], pa.timestamp("us", "UTC")), "x": [1, 2, 3]})
    >>> from uncombine.panes.grouping.grouping import Grouping
    >>> final = Final(Grouping({"total": uc.Sum("x")}, uc.Fixed("1 minute")), rows.schema)
    >>> final.panes(final.merged([parcel for _, parcel in final.lift(2)(rows)])).select(["total", "diff"]).to_pylist()
    [{'total': 3, 'diff': 1}, {'total': 3, 'diff': 1}]
    """

    def __init__(self, grouping: Grouping, schema: pa.Schema) -> None:
        self.operator = Operator(final_grouping(grouping), schema)
        self.grouping = self.operator.grouping
        names = ["start", "end"]
        if self.grouping.changelog:
            names.append("weight")
        names += self.grouping.extents
        self.numbers = tuple(names)

    @property
    def as_rows(self) -> bool:
        """True if rows must travel as rows: a retraction can split a session."""
        return self.operator.splits

    def lift(self, shards: int) -> FinalLift:
        """The lift that makes parcels of rows."""
        return FinalLift(self, shards)

    def merged(self, parcels: Sequence[Parcel]) -> Cells:
        """One cell for each (key, window)."""
        op = self.operator.compiled
        if self.as_rows:
            raise AssertionError("these rows stay together: call `panes_of_rows` for their panes")
        alone = [parcel.table for parcel in parcels if parcel.kind == "rows"]
        rows = pa.concat_tables(alone) if alone else None
        cells = received(op, [p for p in parcels if p.kind != "rows"], rows, numbers=self.numbers)
        if not self.grouping.changelog:
            return cells
        return cells.take(cells.weight != 0)

    def cut(self, parcels: Sequence[Parcel], place: int) -> tuple[list[Parcel], list[Parcel]]:
        """Split parcels in two: the cells before a place in the order of the shard, and the rest."""
        before: list[Parcel] = []
        after: list[Parcel] = []
        for parcel in parcels:
            if parcel.kind == "rows":
                rows = good_rows(self.grouping, parcel.table, MIN_TIME)
                keys, start = rows.keys, assign(self.grouping.window, rows).start
            else:
                keys = [flat(parcel.table[f"key.{i}"]) for i in range(len(self.grouping.by))]
                start = int64_column(parcel.table["start"])
            early = places(self.lift(1).hashes(keys, start)) < place
            for side, chosen in ((before, early), (after, ~early)):
                if chosen.any():
                    side.append(replace(parcel, table=parcel.table.filter(pa.array(chosen))))
        return before, after

    def lean(self, cells: Cells) -> pa.Table:
        """The keys, window, results and event time of cells. The other columns are the same for all final panes."""
        grouping, schema = self.grouping, self.operator.output_schema
        floor = MIN_TIME if grouping.window.may_be_endless else None
        event_time = result_times(
            grouping.policy, cells.start, cells.end, cells.earliest, cells.latest, MAX_TIME, floor
        )
        mask = cells.end == MAX_TIME
        window = pa.StructArray.from_arrays(
            [timestamps(cells.start), timestamps(cells.end)],
            fields=list(schema.field("window").type),
            mask=pa.array(mask) if mask.any() else None,
        )
        columns = [*cells.keys, window, *self.operator.plan.extract(cells.acc), timestamps(event_time)]
        fields = [field for field in schema if field.name not in ("diff", "pane")]
        columns = [c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, fields, strict=True)]
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))

    @property
    def always_one(self) -> bool:
        """True if the grouping gives a result even without rows: its window is all of time, and it has no keys."""
        return isinstance(self.grouping.window, Global) and not self.grouping.by

    def nothing(self) -> pa.Table:
        """The result of no rows, in the columns of `lean`: no window, no time, and the empty result of each combiner.

        >>> import pyarrow as pa, uncombine as uc
        >>> from uncombine.panes.grouping.final_panes import Final
        >>> schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int64()})
        >>> from uncombine.panes.grouping.grouping import Grouping
        >>> Final(Grouping({"n": uc.Count(), "total": uc.Sum("x")}, uc.Global()), schema).nothing().to_pylist()
        [{'window': None, 'n': 0, 'total': None, 'event_time': None}]
        """
        plan = self.operator.plan
        results = dict(zip(plan.compiled, plan.extract(plan.zero(1)), strict=True))
        fields = [field for field in self.operator.output_schema if field.name not in ("diff", "pane")]
        columns = [results[f.name].cast(f.type) if f.name in results else pa.nulls(1, f.type) for f in fields]
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))

    def panes(self, cells: Cells) -> pa.Table:
        """The panes of cells."""
        return self.whole(self.lean(cells))

    def whole(self, lean: pa.Table) -> pa.Table:
        """Panes of `lean` columns, with the columns that are the same for all final panes."""
        count = lean.num_rows
        fields = [pa.repeat(pa.scalar(FINAL_PANE[field.name], field.type), count) for field in PANE]
        pane = pa.StructArray.from_arrays(fields, fields=list(PANE))
        columns = [*lean.columns, pa.repeat(pa.scalar(1, pa.int64()), count), pane]
        return pa.Table.from_arrays(columns, schema=self.operator.output_schema)

    def panes_of_rows(self, parcels: Sequence[Parcel]) -> pa.Table:
        """The keys, window, results and event time of rows that travelled as rows."""
        op = self.operator
        rows = pa.concat_tables([parcel.table.select(op.schema.names) for parcel in parcels])
        return op.step(op.initial(), rows, MAX_TIME).panes.drop_columns(["diff", "pane"])


def final_grouping(grouping: Grouping) -> Grouping:
    """The grouping with one pane for each window, when it expires."""
    return replace(
        grouping,
        trigger=None,
        mode="retracting",
        late="drop",
        granularity="bundle",
        closing="never",
        allowed_lateness="0 seconds",
        only_updated=False,
    )


def over_final_panes(grouping: Grouping, transforms: Sequence[Transform]) -> Grouping:
    """A grouping after another with final panes, which are never retracted.

    Their weights are all 1, unless a step between the two may give them others.
    """
    counted = any(transform.may_set(DIFF) for transform in transforms)
    return grouping if counted or grouping.diff != DIFF else replace(grouping, diff=None)


def nothing() -> bytes:
    """The packed parcel that asks for the result of no rows."""
    return Parcel("nothing", pa.table({})).pack()


class FinalLift(Lift):
    """Makes parcels of rows for final panes only."""

    def __init__(self, final: Final, shards: int) -> None:
        super().__init__(final.operator.compiled, shards)
        self.final = final
        self.as_rows = final.as_rows

    @property
    def only_shard(self) -> int:
        """The shard of the only window, for a grouping over all time without keys."""
        return int(self.shard_of([], Global().assign(np.zeros(1, np.int64)).start)[0])

    def __call__(self, rows: pa.Table, at: int | np.ndarray = MIN_TIME) -> list[tuple[int, Parcel]]:
        if rows.num_rows == 0:
            return []
        if self.as_rows:
            keys = [normal_keys(flat(rows[name])) for name in self.final.grouping.by]
            shards = self.shard_of(keys, None, rows.num_rows)
            return [(shard, Parcel("rows", part)) for shard, part in split(rows, shards, self.shards)]
        op = self.compiled
        good = good_rows(op.grouping, rows, MIN_TIME)
        assigned = assign(op.grouping.window, good)
        if self.combines(good, assigned):
            cells = combined(op, good, assigned, MIN_TIME, coded=True)
            kind, table = "cells", cells_table(cells, self.final.numbers)
            hashes = self.hashes(cells.keys, cells.start)
        else:
            kind, table = "rows", as_in(good.table.select(op.schema.names), op.schema)
            hashes = self.hashes(good.keys, assigned.start)
        bits = max(-(-len(hashes) // (self.shards * PARCEL_CELLS)) - 1, 0).bit_length()
        if bits == 0:
            shards = shard_of(hashes, self.shards)
            return [(shard, Parcel(kind, part)) for shard, part in parts_of(table, shards, self.shards)]
        codes = (shard_of(hashes, self.shards) << bits) | (places(hashes) >> (PLACE_BITS - bits))
        out = []
        for code, part in parts_of(table, codes, self.shards << bits):
            lo = (code & ((1 << bits) - 1)) << (PLACE_BITS - bits)
            out.append((code >> bits, Parcel(kind, part, lo=lo)))
        return out
