"""Readers of Avro's values: each takes the next value of many messages at once, as an Arrow column.

A reader is compiled for the type that was written and the type that is read (`avro_resolution.py`).

Guarded by tests/messages/test_avro.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from .spans.column_parts import assembled, gathered, list_of, map_of
from .spans.cursors import Cursors, Fault, binary_of
from .spans.decimals import decimals_of_spans


class Node(Protocol):
    """Takes the next value of each message."""

    def __call__(self, c: Cursors) -> pa.Array:
        """The values, one for each message; those of a faulty message have no meaning."""


@dataclass(frozen=True)
class Numbers:
    """Whole numbers, fractions and booleans, made into values of a type by `made`."""

    take: Callable[[Cursors], np.ndarray]
    made: Callable[[Cursors, np.ndarray], pa.Array]

    def __call__(self, c: Cursors) -> pa.Array:
        return self.made(c, self.take(c))


def booleans(c: Cursors) -> np.ndarray:
    """The next booleans."""
    octets = c.octets()
    c.fail(octets > 1, Fault.BOOLEAN)
    return octets == 1


def floats(c: Cursors) -> np.ndarray:
    """The next fractions of 32 bits."""
    return c.fixed(32).view(np.float32)


def doubles(c: Cursors) -> np.ndarray:
    """The next fractions of 64 bits."""
    return c.fixed(64).view(np.float64)


@dataclass(frozen=True)
class Span:
    """Texts, bytes, and what is made of them; `size` is that of a fixed type."""

    made: Callable[[Cursors, np.ndarray, np.ndarray], pa.Array]
    size: int | None = None

    def __call__(self, c: Cursors) -> pa.Array:
        lengths: Any = np.full(len(c), self.size) if self.size is not None else c.longs()
        return self.made(c, *c.spans(lengths))


def as_binary(c: Cursors, starts: np.ndarray, ends: np.ndarray) -> pa.Array:
    """The bytes of spans."""
    return binary_of(c.data, starts, ends)


def as_nothing(c: Cursors, starts: np.ndarray, ends: np.ndarray) -> pa.Array:
    """Nothing, for spans that are not needed."""
    return pa.nulls(len(starts))


@dataclass(frozen=True)
class AsDecimal:
    """Decimals from the bytes of their whole numbers."""

    kind: pa.Decimal128Type

    def __call__(self, c: Cursors, starts: np.ndarray, ends: np.ndarray) -> pa.Array:
        values, bad = decimals_of_spans(c.data, starts, ends, self.kind)
        c.fail(bad, Fault.DECIMAL)
        return values


_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)


def as_uuid(c: Cursors, starts: np.ndarray, ends: np.ndarray) -> pa.Array:
    """The texts of UUIDs of 16 bytes; those of faulty messages are empty."""
    there = ends - starts == 16
    places = np.where(there, starts, 0)[:, None] + np.arange(16)
    places = np.minimum(places, len(c.data) - 1)
    raw = c.data[places]
    digits = np.stack([_DIGITS[raw >> 4], _DIGITS[raw & 15]], 2).reshape(len(starts), 32)
    text = np.full((len(starts), 36), ord("-"), np.uint8)
    for first, last, to in ((0, 8, 0), (8, 12, 9), (12, 16, 14), (16, 20, 19), (20, 32, 24)):
        text[:, to : to + last - first] = digits[:, first:last]
    fixed = pa.Array.from_buffers(pa.binary(36), len(starts), [None, pa.py_buffer(text)])
    return fixed.cast(pa.binary()).cast(pa.string())


@dataclass(frozen=True)
class Symbols:
    """Enums: the text of each symbol, or None for one that the reader does not have."""

    symbols: tuple[str | None, ...]

    def __call__(self, c: Cursors) -> pa.Array:
        numbers = c.longs()
        out = (numbers < 0) | (numbers >= len(self.symbols))
        c.fail(out, Fault.SYMBOL)
        numbers = np.where(out, 0, numbers)
        if None in self.symbols:
            c.fail(np.array([one is None for one in self.symbols])[numbers], Fault.UNFIT)
        return pa.array(self.symbols, pa.string()).take(pa.array(numbers))


@dataclass(frozen=True)
class Record:
    """Records: the readers of the fields that were written, in their order, and the places of their columns.

    A field at place None is skipped, and a column that no field fills has a value for all.
    """

    fields: tuple[tuple[Node, int | None], ...]
    kind: pa.StructType
    defaults: tuple[pa.Scalar | None, ...]

    def columns(self, c: Cursors) -> list[pa.Array]:
        """The columns of the fields."""
        columns: list[Any] = [None] * len(self.defaults)
        for node, place in self.fields:
            values = node(c)
            if place is not None:
                columns[place] = values
        return [
            pa.array([default], kind).take(pa.array(np.zeros(len(c), np.int32))) if column is None else column
            for column, default, kind in zip(columns, self.defaults, [f.type for f in self.kind], strict=True)
        ]

    def __call__(self, c: Cursors) -> pa.Array:
        if not self.kind.num_fields:
            for node, _ in self.fields:
                node(c)
            return pa.array([{}], self.kind).take(pa.array(np.zeros(len(c), np.int32)))
        return pa.StructArray.from_arrays(self.columns(c), fields=list(self.kind))


@dataclass(frozen=True)
class Union:
    """Unions: the reader of each branch; all give values of one type."""

    branches: tuple[Node, ...]
    kind: pa.DataType

    def __call__(self, c: Cursors) -> pa.Array:
        numbers = c.longs()
        out = (numbers < 0) | (numbers >= len(self.branches))
        c.fail(out, Fault.BRANCH)
        numbers = np.where(out, -1, numbers)
        parts, places = list[pa.Array](), list[np.ndarray]()
        for branch, node in enumerate(self.branches):
            mask = numbers == branch
            count = np.count_nonzero(mask)
            if count == len(c):
                return node(c)
            if count == 0 or isinstance(node, Nulls):
                continue
            some = np.flatnonzero(mask)
            inner = c.part(some)
            parts.append(node(inner))
            places.append(some)
            c.put(some, inner)
        return assembled(parts, places, len(c), self.kind)


@dataclass(frozen=True)
class Nulls:
    """Values without bytes, which are null."""

    kind: pa.DataType

    def __call__(self, c: Cursors) -> pa.Array:
        return pa.nulls(len(c), self.kind)


@dataclass(frozen=True)
class Unfit:
    """Values of a type that the reader's type does not take: each is a fault."""

    kind: pa.DataType
    why: str

    def __call__(self, c: Cursors) -> pa.Array:
        c.fail(np.ones(len(c), np.bool_), Fault.UNFIT)
        return pa.nulls(len(c), self.kind)


@dataclass(frozen=True)
class Member:
    """Values of one branch of a union that is a struct."""

    node: Node
    place: int
    kind: pa.StructType

    def __call__(self, c: Cursors) -> pa.Array:
        columns = [pa.nulls(len(c), f.type) for f in self.kind]
        columns[self.place] = self.node(c)
        return pa.StructArray.from_arrays(columns, fields=list(self.kind))


@dataclass(frozen=True)
class Items:
    """Arrays and maps, in blocks."""

    node: Node
    kind: pa.DataType | None
    """The type of the column; None for values that are not needed."""
    key: Node | None = None
    """The reader of the keys of a map."""

    def __call__(self, c: Cursors) -> pa.Array:
        left, open_ = np.zeros(len(c), np.int64), np.arange(len(c))
        owners, keys, values = list[np.ndarray](), list[pa.Array](), list[pa.Array]()
        while len(open_):
            open_ = self._blocks(c, left, open_)
            if not len(open_):
                break
            # One item of each message that has more: as many rounds as the longest has items.
            inner = c.part(open_)
            if self.key is not None:
                keys.append(self.key(inner))
            values.append(self.node(inner))
            c.put(open_, inner)
            owners.append(open_)
            left[open_] -= 1
        if self.kind is None:
            return pa.nulls(len(c))
        values_of = gathered(values, owners, self.kind.item_type if self.key is not None else self.kind.value_type)
        if self.key is None:
            return list_of(values_of, owners, len(c), self.kind)
        return map_of(gathered(keys, owners, pa.string()), values_of, owners, len(c), self.kind)

    def _blocks(self, c: Cursors, left: np.ndarray, some: np.ndarray) -> np.ndarray:
        """Begin the next block where one has ended; gives the messages that have an item."""
        ended = some[left[some] == 0]
        if not len(ended):
            return some
        inner = c.part(ended)
        counts = inner.longs()
        sized = np.flatnonzero(counts < 0)
        if len(sized):
            with_size = inner.part(sized)
            with_size.longs()
            inner.put(sized, with_size)
            counts[sized] = -counts[sized]
        inner.fail((counts < 0) | (counts > inner.end - inner.pos), Fault.LENGTH)
        c.put(ended, inner)
        left[ended] = np.where(inner.fault != 0, 0, counts)
        return some[left[some] > 0]


__all__ = [
    "AsDecimal",
    "Items",
    "Member",
    "Node",
    "Nulls",
    "Numbers",
    "Record",
    "Span",
    "Symbols",
    "Unfit",
    "Union",
    "as_binary",
    "as_nothing",
    "as_uuid",
    "booleans",
    "doubles",
    "floats",
]
