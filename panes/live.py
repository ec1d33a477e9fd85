"""The windows that a step has in hand, as columns: keys, numbers, accumulators and what was emitted and is owed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..combiners.algebra import Accumulators
from ..combiners.groups import Groups
from ..windows.times import MAX_TIME, MIN_TIME

BASE: dict[str, tuple[type, object]] = {
    "start": (np.int64, 0),
    "end": (np.int64, 0),
    "weight": (np.int64, 0),
    "fresh": (np.bool_, False),
    "index": (np.int64, 0),
    "nonspeculative": (np.int64, 0),
    "born_late": (np.bool_, False),
    "on_time_given": (np.bool_, False),
}
"""Columns of every window beside those of its trigger: weight is the sum of the diffs of its rows, fresh is whether
something came since the last pane."""

EXTENT: dict[str, tuple[type, int]] = {"earliest": (np.int64, MAX_TIME), "latest": (np.int64, MIN_TIME)}
"""Columns of windows whose results carry one of the two: the bounds of the rows to be shown that were not behind."""


def extent(num: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Those two columns, or what stands for them where there are none."""
    nowhere = {name: np.broadcast_to(nothing, len(num["end"])) for name, (_, nothing) in EXTENT.items()}
    return num.get("earliest", nowhere["earliest"]), num.get("latest", nowhere["latest"])


def filled(count: int, kind: object, value: object) -> np.ndarray:
    """A column of one value; of zeros, which are not written before they are needed, for less."""
    nothing = isinstance(value, int) and not value
    return np.zeros(count, kind) if nothing else np.full(count, value, kind)  # type: ignore[call-overload]


@dataclass
class Live:
    """Windows in hand; the arrays are the step's own and may be changed in place."""

    keys: list[pa.Array]
    num: dict[str, np.ndarray]
    acc: Accumulators
    owed: pa.ListArray | None

    def __len__(self) -> int:
        return len(self.num["start"])

    def take(self, places: np.ndarray) -> Live:
        """Some of the windows, in this order."""
        at = pa.array(places)
        return Live(
            [key.take(at) for key in self.keys],
            {name: values[places] for name, values in self.num.items()},
            tuple(a.take(at) for a in self.acc),
            None if self.owed is None else self.owed.take(at),
        )

    def joined(self, other: Live) -> Live:
        """These windows and others after them."""
        owed = None
        if self.owed is not None and other.owed is not None:
            owed = pa.concat_arrays([self.owed, other.owed])
        return Live(
            [pa.concat_arrays([a, b]) for a, b in zip(self.keys, other.keys, strict=True)],
            {name: np.concatenate([values, other.num[name]]) for name, values in self.num.items()},
            tuple(pa.concat_arrays([a, b]) for a, b in zip(self.acc, other.acc, strict=True)),
            owed,
        )

    def table(self) -> pa.Table:
        """As one table, to be stored."""
        columns = {f"key.{i}": key for i, key in enumerate(self.keys)}
        columns.update({f"num.{name}": _stored(values) for name, values in self.num.items()})
        columns.update({f"acc.{i}": a for i, a in enumerate(self.acc)})
        if self.owed is not None:
            columns["owed"] = self.owed
        return pa.table(columns)


@dataclass(frozen=True)
class Shape:
    """The columns of live windows of one operator."""

    key_types: Sequence[pa.DataType]
    numbers: Mapping[str, tuple[object, object]]
    acc_fields: Sequence[pa.Field]
    owed_type: pa.DataType | None

    @property
    def schema(self) -> pa.Schema:
        """The schema of a stored table."""
        return self.fresh(0, [pa.array([], t) for t in self.key_types]).table().schema

    def fresh(
        self,
        count: int,
        keys: list[pa.Array],
        acc: Accumulators | None = None,
        given: Mapping[str, np.ndarray] | None = None,
    ) -> Live:
        """Windows that nothing has happened to, with some columns given; without `acc`, there must be none of them."""
        given = given or {}
        num = {
            name: given[name] if name in given else filled(count, kind, initial)
            for name, (kind, initial) in self.numbers.items()
        }
        if acc is None:
            acc = tuple(pa.array([], f.type) for f in self.acc_fields)
        return Live(keys, num, acc, self.owing_nothing(count))

    def owing_nothing(self, count: int) -> pa.ListArray | None:
        """Empty debts."""
        if self.owed_type is None:
            return None
        offsets = pa.array(np.zeros(count + 1, np.int32))
        return pa.ListArray.from_arrays(offsets, pa.array([], self.owed_type.value_type), type=self.owed_type)

    def read(self, table: pa.Table) -> Live:
        """Live windows back from a stored table."""

        def column(name: str) -> pa.Array:
            chunked = table[name]
            return chunked.chunk(0) if chunked.num_chunks == 1 else chunked.combine_chunks()

        num = {}
        for name in self.numbers:
            values = column(f"num.{name}").to_numpy(zero_copy_only=False)
            num[name] = values if values.flags.writeable else values.copy()
        return Live(
            [column(f"key.{i}") for i in range(len(self.key_types))],
            num,
            tuple(column(f"acc.{i}") for i in range(len(self.acc_fields))),
            None if self.owed_type is None else column("owed"),
        )


def _stored(values: np.ndarray) -> pa.Array:
    if values.dtype == np.bool_:
        packed = np.packbits(values, bitorder="little")  # many times as fast as Arrow, which goes bit by bit
        return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(packed)])
    return pa.array(values, pa.string()) if values.dtype == np.object_ else pa.array(values)


def regroup(lists: pa.ListArray, into: np.ndarray, count: int) -> pa.ListArray:
    """The lists of rows that go into the same place, joined, in the order of the rows."""
    offsets = np.asarray(lists.offsets).astype(np.int64)
    sizes = np.diff(offsets)
    items = lists.flatten()
    item_groups = Groups(np.repeat(into, sizes), count)
    if bool(np.all(into[1:] >= into[:-1])):
        return listed(items, item_groups.sizes, lists.type)
    return listed(items.take(pa.array(item_groups.order)), item_groups.sizes, lists.type)


def listed(items: pa.Array, sizes: np.ndarray, kind: pa.DataType) -> pa.ListArray:
    """Items cut into lists of these sizes."""
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), items, type=kind)


def list_sizes(lists: pa.ListArray) -> np.ndarray:
    """How many items each list has."""
    return np.diff(np.asarray(lists.offsets).astype(np.int64))


def owners(lists: pa.ListArray) -> np.ndarray:
    """For each item of the flattened lists, the row that has it."""
    sizes = list_sizes(lists)
    return np.repeat(np.arange(len(sizes)), sizes)
