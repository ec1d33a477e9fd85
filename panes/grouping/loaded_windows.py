"""Windows in hand: the windows that a step reads from the store, as columns with one entry for each window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...combiners.algebra import Accumulators
from ...triggers.program import State
from ...windows.times import MAX_TIME, MIN_TIME
from .deposits import Deposits
from .outstanding import OutstandingPanes

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
"""The numbers of every window: type and first value.

`weight` is the sum of the diffs of its rows. `fresh` is true where rows came since the last pane, `born_late` where the
window had passed when it came to be, and `on_time_given` where its on-time pane has been emitted. `index` and
`nonspeculative` count its panes.
"""

EXTENT: dict[str, tuple[type, int]] = {"earliest": (np.int64, MAX_TIME), "latest": (np.int64, MIN_TIME)}
"""Numbers of windows whose panes have the time of a row: the least and the greatest time of the rows to be shown that
were not before the output watermark."""

OUTSTANDING = "outstanding"
"""The stored column of outstanding panes."""

WAKE = ("event", "processing", "hold")
"""The clocks of stored windows; one of percentiles comes to them where the trigger waits for some."""


def extent(num: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """`earliest` and `latest` of each window. Where they are not kept, those of a window without rows."""
    empty = {name: np.broadcast_to(value, len(num["end"])) for name, (_, value) in EXTENT.items()}
    return num.get("earliest", empty["earliest"]), num.get("latest", empty["latest"])


@dataclass(frozen=True)
class LoadedWindows:
    """Windows in hand: a value. A change gives new windows, which may use up the trigger's columns of the old ones."""

    keys: list[pa.Array]
    num: dict[str, np.ndarray]
    """The columns of `BASE`, and those of `EXTENT` that the grouping keeps."""
    trigger: State
    """The columns of the compiled trigger, which an evaluation changes in place."""
    acc: Accumulators
    """The contents; of a window with deposits only what is not in these."""
    outstanding: OutstandingPanes | None
    """The outstanding panes of each window; None where the grouping neither retracts nor compares them."""
    deposits: Deposits | None = None
    """Large contents that stay in their store; None where there are none."""

    def __len__(self) -> int:
        return len(self.num["start"])

    def take(self, places: np.ndarray) -> LoadedWindows:
        """The windows at these places, in this order."""
        at = pa.array(places)
        return LoadedWindows(
            keys=[key.take(at) for key in self.keys],
            num={name: values[places] for name, values in self.num.items()},
            trigger={name: values[places] for name, values in self.trigger.items()},
            acc=tuple(a.take(at) for a in self.acc),
            outstanding=None if self.outstanding is None else self.outstanding.take(places),
            deposits=None if self.deposits is None else self.deposits.take(places),
        )

    def joined(self, other: LoadedWindows) -> LoadedWindows:
        """These windows and others after them, which have no deposits."""
        outstanding = None
        if self.outstanding is not None and other.outstanding is not None:
            outstanding = self.outstanding.joined(other.outstanding)
        return LoadedWindows(
            keys=[pa.concat_arrays([a, b]) for a, b in zip(self.keys, other.keys, strict=True)],
            num={name: np.concatenate([values, other.num[name]]) for name, values in self.num.items()},
            trigger={name: np.concatenate([values, other.trigger[name]]) for name, values in self.trigger.items()},
            acc=tuple(pa.concat_arrays([a, b]) for a, b in zip(self.acc, other.acc, strict=True)),
            outstanding=outstanding,
            deposits=self.deposits,
        )

    def table(self) -> pa.Table:
        """The windows as a table, to be stored."""
        columns = {f"key.{i}": key for i, key in enumerate(self.keys)}
        columns.update({f"num.{name}": _stored(values) for name, values in {**self.num, **self.trigger}.items()})
        columns.update({f"acc.{i}": a for i, a in enumerate(self.acc)})
        if self.outstanding is not None:
            columns[OUTSTANDING] = self.outstanding.lists()
        return pa.table(columns)


@dataclass(frozen=True)
class Shape:
    """The columns of the windows of one grouping: their types and their first values."""

    key_types: Sequence[pa.DataType]
    numbers: Mapping[str, tuple[object, object]]
    trigger: Mapping[str, tuple[object, object]]
    acc_fields: Sequence[pa.Field]
    record: pa.StructType | None
    """The type of outstanding panes, if they are kept."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of the stored table."""
        keys = [pa.array([], kind) for kind in self.key_types]
        return self.new(keys, 0, {}, tuple(pa.array([], field.type) for field in self.acc_fields)).table().schema

    def new(
        self, keys: list[pa.Array], count: int, numbers: Mapping[str, np.ndarray], acc: Accumulators
    ) -> LoadedWindows:
        """Windows that have emitted nothing and whose trigger is at its start, with these numbers and contents."""
        num = self.first_numbers(count, numbers)
        return LoadedWindows(
            keys=keys, num=num, trigger=self.first_trigger(count), acc=acc, outstanding=self.none_outstanding(count)
        )

    def first_numbers(self, count: int, numbers: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers of new windows: those given, and first values for the others."""
        return {
            name: numbers[name] if name in numbers else _filled(count, kind, value)
            for name, (kind, value) in self.numbers.items()
        }

    def first_trigger(self, count: int) -> State:
        """The trigger's columns of new windows."""
        return {name: _filled(count, kind, value) for name, (kind, value) in self.trigger.items()}

    def none_outstanding(self, count: int) -> OutstandingPanes | None:
        """The outstanding panes of new windows."""
        return None if self.record is None else OutstandingPanes.none(self.record, count)

    def read(self, table: pa.Table) -> LoadedWindows:
        """The windows of a stored table."""

        def column(name: str) -> pa.Array:
            chunked = table[name]
            return chunked.chunk(0) if chunked.num_chunks == 1 else chunked.combine_chunks()

        def numbers(names: Mapping[str, object]) -> dict[str, np.ndarray]:
            return {name: column(f"num.{name}").to_numpy(zero_copy_only=False) for name in names}

        return LoadedWindows(
            keys=[column(f"key.{i}") for i in range(len(self.key_types))],
            num=numbers(self.numbers),
            trigger={name: v if v.flags.writeable else v.copy() for name, v in numbers(self.trigger).items()},
            acc=tuple(column(f"acc.{i}") for i in range(len(self.acc_fields))),
            outstanding=None if self.record is None else OutstandingPanes.of(column(OUTSTANDING)),
        )


def _filled(count: int, kind: object, value: object) -> np.ndarray:
    """A column of one value. Zeros take no time before they are used."""
    zero = isinstance(value, int) and not value
    return np.zeros(count, kind) if zero else np.full(count, value, kind)  # type: ignore[call-overload]


def _stored(values: np.ndarray) -> pa.Array:
    if values.dtype == np.bool_:
        packed = np.packbits(values, bitorder="little")  # many times as fast as Arrow, which goes bit by bit
        return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(packed)])
    return pa.array(values, pa.string()) if values.dtype == np.object_ else pa.array(values)
