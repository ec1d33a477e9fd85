"""The stored windows of a grouping as another grouping keeps them, which has other combiners or another trigger.

Contents stay as they are, to the last bit; integers and decimals may become larger ones. A trigger that is another one
starts fresh: each window is in hand at the next step, and what was shown stays known. A new combiner of parts that are
stored has a result at once in the pane that is shown of a window, where no rows have come to it since: then that pane
is of the rows that are stored. Not promised: anything about windows of other keys, other bounds or another mode.

Guarded by tests/flows/evolution/test_evolution.py and tests/flows/evolution/test_added_combiners.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from ...combiners import Combiner, Plan
from ...combiners.rows.columns import flat
from ...errors import TypeMismatch
from ...panes.grouping.contents import contents, with_deposits
from ...panes.grouping.loaded_windows import OUTSTANDING, WAKE
from ...panes.grouping.operator import Operator
from ...panes.grouping.outstanding import OutstandingPanes
from ...panes.grouping.pane_columns import VALUE
from ...panes.grouping.pane_rows import pane_column, window_column
from ...panes.state.store import Store
from ...windows import timestamps
from ...windows.times import MIN_TIME

Wake = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Lacking:
    """The parts of a combiner that are stored, and whether it has others."""

    parts: tuple[tuple[str, ...], ...]
    """The combiners of before that have each of the stored parts."""
    partial: bool = False
    """True if it has parts that are not stored."""

    def since(self, before: Mapping[str, int], now: int) -> int:
        """The start of the first windows of which the combiner has all rows; `now` for what is not stored.

        >>> Lacking((("total", "mean"),)).since({"mean": 60}, now=120) == MIN_TIME
        True
        >>> Lacking((("mean",),)).since({"mean": 60}, now=120)
        60
        """
        stored = [min(before.get(name, MIN_TIME) for name in owners) for owners in self.parts]
        return max([*stored, now if self.partial else MIN_TIME])


@dataclass(frozen=True)
class Conversion:
    """The columns of stored windows that go on, under the names that they have now."""

    operator: Operator
    """The operator of the grouping as it is now."""
    contents: Mapping[int, int] = field(default_factory=dict)
    """The place that each column of contents had before."""
    values: Mapping[str, str] = field(default_factory=dict)
    """The name that each result had before."""
    fresh_trigger: bool = False
    lacking: Mapping[str, Lacking] = field(default_factory=dict)
    """The parts of each combiner that are stored, and whether it has others."""
    known_since: Mapping[str, int] = field(default_factory=dict)
    """For each combiner that lacks rows: the start of the first windows of which it has all."""

    @classmethod
    def of(
        cls, operator: Operator, before: Mapping[str, Combiner], names: Mapping[str, str], fresh_trigger: bool
    ) -> Conversion:
        """The conversion from these combiners; `names` has the name before of each combiner now that was there."""
        former = Plan(before, operator.schema, append_only=not operator.grouping.changelog)
        now = operator.plan
        contents: dict[int, int] = {}
        for name, was in names.items():
            contents |= zip(now.places_of(name), former.places_of(was), strict=True)
        owners = {part: [name for name, one in former.compiled.items() if part in one.parts] for part in former.parts}
        lacking: dict[str, Lacking] = {}
        for name, one in now.compiled.items():
            if name in names:
                lacking[name] = Lacking(parts=((names[name],),))
                continue
            for part in one.parts:
                if part in owners:
                    contents |= zip(now.places_of_part(part), former.places_of_part(part), strict=True)
            there = tuple(tuple(owners[part]) for part in one.parts if part in owners)
            lacking[name] = Lacking(there, partial=len(there) < len(one.parts))
        return cls(operator, contents, names, fresh_trigger, lacking)

    def since(self, before: Mapping[str, int], now: int) -> dict[str, int]:
        """The start of the first windows of which each combiner has all rows, by those of before and by this change."""
        since = {name: one.since(before, now) for name, one in self.lacking.items()}
        return {name: start for name, start in since.items() if start > MIN_TIME}

    @property
    def added(self) -> list[str]:
        """The new combiners of parts that are stored."""
        return [name for name, one in self.lacking.items() if name not in self.values and not one.partial]

    @property
    def fills(self) -> bool:
        """True if panes that are shown get results of new combiners."""
        return self.operator.grouping.retracting and bool(self.added)

    def filled(self, table: pa.Table, deposits: Store | None) -> pa.Table:
        """Windows as they are kept now, whose panes that are shown have the results of new combiners, where known."""
        compiled = replace(self.operator.compiled, since=self.known_since)
        windows = with_deposits(compiled, compiled.shape.read(table), deposits)
        panes = windows.outstanding
        assert panes is not None
        owner = panes.owner
        known = (panes.sizes == 1)[owner] & ~windows.num["fresh"][owner]
        for name in ("start", "end"):
            known &= panes.number(name) == windows.num[name][owner]
        places = owner[known]
        values = compiled.results(windows.num["start"][places], contents(compiled, windows, places))
        results = dict(zip(compiled.plan.compiled, values, strict=True))
        parts = dict(zip((one.name for one in panes.records.type), panes.records.flatten(), strict=True))
        take = np.where(known, len(known) + np.cumsum(known) - 1, np.arange(len(known)))
        for name in self.added:
            column = parts[VALUE + name]
            parts[VALUE + name] = pa.concat_arrays([column, results[name].cast(column.type)]).take(pa.array(take))
        records = pa.StructArray.from_arrays(list(parts.values()), fields=list(panes.records.type))
        lists = replace(panes, records=records).lists()
        return table.set_column(table.column_names.index(OUTSTANDING), table.schema.field(OUTSTANDING), lists)

    def __call__(self, store: str, table: pa.Table, wake: Wake) -> tuple[pa.Table, Wake] | None:
        """Rows of a store with their clocks, as they are kept now; None for a store that is kept no more."""
        kept = self.operator.initial().stores.get(store)
        if kept is None:
            return None
        columns = [self._column(field, table) for field in kept.schema]
        return pa.table(columns, schema=kept.schema), self._wake(store, wake, table.num_rows)

    def _column(self, field: pa.Field, table: pa.Table) -> pa.Array:
        kind, _, name = field.name.partition(".")
        if kind == "acc":
            if int(name) not in self.contents:
                return self.operator.plan.zero(table.num_rows)[int(name)]
            return flat(table[f"acc.{self.contents[int(name)]}"]).cast(field.type)
        if field.name == OUTSTANDING:
            return self._outstanding(flat(table[OUTSTANDING]), field.type)
        if kind == "num" and name in self.operator.shape.trigger and self.fresh_trigger:
            first = self.operator.shape.first_trigger(table.num_rows)[name]
            return pa.array(first, field.type) if first.dtype != np.object_ else pa.array(list(first), field.type)
        return flat(table[field.name]).cast(field.type)

    def _outstanding(self, lists: pa.ListArray, kind: pa.ListType) -> pa.ListArray:
        records = self._records(lists.flatten(), kind.value_type)
        offsets = np.asarray(lists.offsets) - lists.offsets[0].as_py()
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), records, type=kind)

    def _records(self, records: pa.StructArray, kind: pa.StructType) -> pa.StructArray:
        """Outstanding panes with the results that there are now; one that was not there is null."""
        parts = dict(zip((one.name for one in records.type), records.flatten(), strict=True))
        before = {VALUE + name: VALUE + was for name, was in self.values.items()}
        none = pa.nulls(len(records))
        columns = [parts.get(before.get(one.name, one.name), none).cast(one.type) for one in kind]
        return pa.StructArray.from_arrays(columns, fields=list(kind))

    def _wake(self, store: str, wake: Wake, rows: int) -> Wake:
        if store != "windows" or not self.fresh_trigger:
            return wake
        names = (*WAKE, *(["percentile"] if self.operator.percents else []))
        return {name: wake["hold"] if name == "hold" else np.full(rows, MIN_TIME) for name in names}


def shown_panes(
    table: pa.Table, keys: Sequence[str], schema: pa.Schema, diff: int, since: Mapping[str, int] | None = None
) -> pa.Table:
    """The outstanding panes of stored windows with this weight, in the columns of an output as it is now.

    `keys` are the names of the stored key columns. A column that a pane did not have when it was shown is null. `since`
    has the times from which on combiners had all rows when it was shown.
    """
    panes = OutstandingPanes.of(flat(table[OUTSTANDING]))
    records, owner = panes.records, pa.array(panes.owner)
    parts = dict(zip((one.name for one in records.type), records.flatten(), strict=True))
    columns = {name: flat(table[f"key.{i}"]).take(owner) for i, name in enumerate(keys)}
    columns |= {name.removeprefix(VALUE): column for name, column in parts.items() if name.startswith(VALUE)}
    columns |= {
        "window": window_column(parts["start"], parts["end"]),
        "event_time": timestamps(np.asarray(parts["event_time"])),
        "diff": pa.array(np.full(len(panes), diff)),
        "pane": pane_column(parts, since),
    }
    none = pa.nulls(len(panes))
    return pa.table([_cast(columns.get(one.name, none), one) for one in schema], schema=schema)


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise TypeMismatch(
            f"{field.name!r} was shown as {column.type} and is {field.type} now, so what was shown could not be "
            "retracted: give the new result another name"
        ) from None


__all__ = ["Conversion", "shown_panes"]
