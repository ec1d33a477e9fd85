"""The scalars of Protobuf: from the numbers on the wire to Arrow columns.

Guarded by tests/messages/test_protobuf.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from .spans.cursors import Cursors, Fault

VARINT, FIXED64, SPAN, FIXED32 = 0, 1, 2, 5
"""The wire types that are read."""

_ONE = np.uint64(1)


class Scalars(NamedTuple):
    """Values of one type, and those that are no such values."""

    values: pa.Array
    bad: np.ndarray | None = None
    fault: Fault = Fault.NONE


def wire_type(kind: str) -> int:
    """The wire type of a scalar, an enum or a message."""
    if kind in ("double", "fixed64", "sfixed64"):
        return FIXED64
    if kind in ("float", "fixed32", "sfixed32"):
        return FIXED32
    return SPAN if kind in ("string", "bytes", "message") else VARINT


def taken(c: Cursors, wire: int) -> np.ndarray:
    """The next numbers of a wire type."""
    return c.varints() if wire == VARINT else c.fixed(64) if wire == FIXED64 else c.fixed(32).astype(np.uint64)


def scalars(kind: str, words: np.ndarray, symbols: Mapping[int, str] | None = None) -> Scalars:
    """Numbers of the wire as values of a type; `symbols` are those of an enum."""
    if symbols is not None:
        return _symbols(words.view(np.int64), symbols)
    return _MADE[kind](words)


def _int32(words: np.ndarray) -> Scalars:
    return _narrow(words.view(np.int64))


def _narrow(values: np.ndarray) -> Scalars:
    narrow = values.astype(np.int32)
    bad = narrow != values
    return Scalars(pa.array(narrow), bad, Fault.RANGE)


def _zigzag(words: np.ndarray) -> np.ndarray:
    return ((words >> _ONE) ^ (np.uint64(0) - (words & _ONE))).view(np.int64)


def _uint32(words: np.ndarray) -> Scalars:
    bad = words >= np.uint64(1 << 32)
    return Scalars(pa.array(np.where(bad, 0, words).astype(np.int64)), bad, Fault.RANGE)


def _uint64(words: np.ndarray) -> Scalars:
    both = np.zeros((len(words), 2), np.uint64)
    both[:, 0] = words
    return Scalars(pa.Array.from_buffers(pa.decimal128(20, 0), len(words), [None, pa.py_buffer(both)]))


def _bool(words: np.ndarray) -> Scalars:
    return Scalars(pa.array(words != 0), words > 1, Fault.BOOLEAN)


def _symbols(numbers: np.ndarray, symbols: Mapping[int, str]) -> Scalars:
    """The names of enums; a number without a name is written as it is."""
    narrow = numbers.astype(np.int32)
    distinct, places = np.unique(narrow, return_inverse=True)
    names = pa.array([symbols.get(int(one), str(one)) for one in distinct], pa.string())
    return Scalars(names.take(pa.array(places)), narrow != numbers, Fault.RANGE)


_MADE: dict[str, Callable[[np.ndarray], Scalars]] = {
    "int32": _int32,
    "int64": lambda words: Scalars(pa.array(words.view(np.int64))),
    "sint32": lambda words: _narrow(_zigzag(words)),
    "sint64": lambda words: Scalars(pa.array(_zigzag(words))),
    "uint32": _uint32,
    "uint64": _uint64,
    "bool": _bool,
    "double": lambda words: Scalars(pa.array(words.view(np.float64))),
    "float": lambda words: Scalars(pa.array(words.astype(np.uint32).view(np.float32))),
    "fixed32": _uint32,
    "fixed64": _uint64,
    "sfixed32": lambda words: Scalars(pa.array(words.astype(np.uint32).view(np.int32))),
    "sfixed64": lambda words: Scalars(pa.array(words.view(np.int64))),
}


def packed(c: Cursors, kind: str, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers in spans that are full of them, one after the other, and the number of the span of each.

    `c` has a message for each span, and a fault where the last number of a span is cut off.
    """
    wire = wire_type(kind)
    if wire != VARINT:
        size = 8 if wire == FIXED64 else 4
        c.fail((ends - starts) % size != 0, Fault.SHORT)
        counts = np.where(c.fault == 0, (ends - starts) // size, 0)
        spans, firsts = _each(counts)
        own = np.repeat(starts, counts) + firsts * size
        return taken(Cursors(c.data, own, own + size), wire), spans
    first = int(starts.min()) if len(starts) else 0
    stops = np.flatnonzero(c.data[first : int(ends.max()) if len(ends) else 0] < 0x80) + first
    low, high = np.searchsorted(stops, starts), np.searchsorted(stops, ends)
    c.fail((ends > starts) & (c.data[np.maximum(ends, 1) - 1] >= 0x80), Fault.SHORT)
    counts = np.where(c.fault == 0, high - low, 0)
    spans, firsts = _each(counts)
    place = np.repeat(low, counts) + firsts
    begins = np.where(firsts == 0, np.repeat(starts, counts), stops[place - 1] + 1)
    inner = Cursors(c.data, begins, stops[place] + 1)
    words = inner.varints()
    too_long = np.zeros(len(c), np.bool_)
    too_long[spans[inner.fault != 0]] = True
    c.fail(too_long, Fault.VARINT)
    return words, spans


def _each(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The number of its group, and its place in it, for each of so many things in groups."""
    groups = np.repeat(np.arange(len(counts)), counts)
    return groups, np.arange(len(groups)) - np.repeat(np.cumsum(counts) - counts, counts)


__all__ = ["FIXED32", "FIXED64", "SPAN", "VARINT", "Scalars", "packed", "scalars", "taken", "wire_type"]
