"""Many messages that are read at once, a value of each at a time: a column of numbers for the places in their bytes.

A message is a span of one memory. Each reader takes the next value of every message, and moves on. A message that has
no such value gets a fault, which stays; its later values have no meaning, and no reader leaves its span for good.

Guarded by tests/messages/spans/test_cursors.py.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa

PAD = 16
"""The zeros after the last message, so that a number can be looked at as a whole."""

_HIGH, _LOW = np.uint64(0x8080808080808080), np.uint64(0x7F7F7F7F7F7F7F7F)
_STEPS = (
    (np.uint64(0x007F007F007F007F), np.uint64(0x7F007F007F007F00), np.uint64(1)),
    (np.uint64(0x00003FFF00003FFF), np.uint64(0x3FFF00003FFF0000), np.uint64(2)),
    (np.uint64(0x000000000FFFFFFF), np.uint64(0x0FFFFFFF00000000), np.uint64(4)),
)
"""The halves of a number in seven bits of each byte, and the bits by which the upper half moves down."""

_ONE = np.uint64(1)


class Fault(IntEnum):
    """The fault of a message."""

    NONE = 0
    SHORT = 1
    LONG = 2
    VARINT = 3
    RANGE = 4
    LENGTH = 5
    BRANCH = 6
    SYMBOL = 7
    BOOLEAN = 8
    TEXT = 9
    DECIMAL = 10
    TIME = 11
    WIRE = 12
    GROUP = 13
    FIELD = 14
    UNFIT = 15
    ENTRY = 16


WORDS = {
    Fault.SHORT: "it ends too early",
    Fault.LONG: "it goes on after its last value",
    Fault.VARINT: "a number has more than 64 bits",
    Fault.RANGE: "a number is out of the range of its type",
    Fault.LENGTH: "a length is negative, or longer than the message",
    Fault.BRANCH: "a union has no such branch",
    Fault.SYMBOL: "an enum has no such symbol",
    Fault.BOOLEAN: "a boolean is neither 0 nor 1",
    Fault.TEXT: "a text is no UTF-8",
    Fault.DECIMAL: "a decimal has more digits than its type",
    Fault.TIME: "a time is out of the range of its type",
    Fault.WIRE: "a field has the wire type of another type",
    Fault.GROUP: "it has a group, which is not read",
    Fault.FIELD: "a field has the number 0, or one that is too large",
    Fault.ENTRY: "an entry of a map has more than a key and a value",
    Fault.UNFIT: "the value that it has does not fit the schema of the reader",
}


class Cursors:
    r"""The places in many messages.

    >>> cursors = Cursors.of(pa.array([b"\x02\x04ab", b"\x05"]))
    >>> cursors.longs().tolist(), cursors.longs().tolist(), cursors.fault.tolist()
    ([1, -3], [2, 0], [0, 1])
    """

    __slots__ = ("data", "end", "fault", "pos")

    def __init__(self, data: np.ndarray, pos: np.ndarray, end: np.ndarray, fault: np.ndarray | None = None) -> None:
        self.data, self.pos, self.end = data, pos, end
        self.fault = np.zeros(len(pos), np.int8) if fault is None else fault

    @classmethod
    def of(cls, values: pa.Array) -> Cursors:
        """The beginnings of messages."""
        offsets = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, values.offset * 4).astype(np.int64)
        inside = values.buffers()[2]
        data = np.zeros(int(offsets[-1] - offsets[0]) + PAD, np.uint8)
        if inside is not None and len(data) > PAD:
            data[:-PAD] = np.frombuffer(inside, np.uint8, len(data) - PAD, int(offsets[0]))
        offsets -= offsets[0]
        return cls(data, offsets[:-1].copy(), offsets[1:])

    def __len__(self) -> int:
        return len(self.pos)

    def part(self, places: np.ndarray) -> Cursors:
        """Some of the messages."""
        return Cursors(self.data, self.pos[places], self.end[places], self.fault[places])

    def slice(self, first: int, count: int) -> Cursors:
        """Some messages that follow each other."""
        some = slice(first, first + count)
        return Cursors(self.data, self.pos[some], self.end[some], self.fault[some].copy())

    def put(self, places: np.ndarray, part: Cursors) -> None:
        """Go on where a part of the messages is."""
        self.pos = self.pos.copy()  # spans that were given out keep their ends
        self.pos[places], self.fault[places] = part.pos, part.fault

    def fail(self, mask: np.ndarray, fault: Fault) -> None:
        """Give some messages a fault, if they have none. They are at their ends then."""
        if mask.any():
            self.fault[mask & (self.fault == 0)] = fault
            self.pos = np.where(mask, self.end, self.pos)

    def words(self, bits: int) -> np.ndarray:
        """The next bytes of each message as one number, without moving on."""
        size = len(self.data) - bits // 8 + 1
        all_words = np.ndarray((size,), f"<u{bits // 8}", self.data, strides=(1,))
        return all_words[self.pos]

    def varints(self) -> np.ndarray:
        """The next numbers, seven bits in a byte."""
        words = self.words(64)
        if not (words & np.uint64(0x80)).any():
            lengths: np.ndarray | int = 1
            words &= np.uint64(0x7F)
        else:
            stops = ~words & _HIGH
            within = stops ^ (stops - _ONE)
            lengths = (np.bitwise_count(within) >> 3).astype(np.int64)
            longer = np.flatnonzero(stops == 0)
            words &= within
            words &= _LOW
            for low, high, shift in _STEPS:
                words = (words & low) | ((words & high) >> shift)
            if len(longer):
                self._long_ends(words, lengths, longer)
        self.pos = self.pos + lengths
        short = self.pos > self.end
        if short.any():
            words[short] = 0
            self.fail(short, Fault.SHORT)
        return words

    def _long_ends(self, words: np.ndarray, lengths: np.ndarray, places: np.ndarray) -> None:
        """The bits of the ninth and the tenth byte."""
        ninth = self.data[self.pos[places] + 8]
        words[places] |= (ninth & np.uint8(0x7F)).astype(np.uint64) << np.uint64(56)
        lengths[places] = 9
        longest = places[ninth >= 0x80]
        tenth = self.data[self.pos[longest] + 9]
        words[longest] |= tenth.astype(np.uint64) << np.uint64(63)
        lengths[longest] = 10
        over = np.zeros(len(self), np.bool_)
        over[longest[tenth > 1]] = True
        # One that ends within ten bytes is cut off, and its fault is that.
        self.fail(over & (self.pos + 10 <= self.end), Fault.VARINT)
        lengths[over] = np.maximum(1, self.end[over] - self.pos[over] + 1)
        lengths[over & (self.fault != 0)] = 0

    def longs(self) -> np.ndarray:
        """The next numbers, of which the last bit is the sign."""
        words = self.varints()
        return ((words >> _ONE) ^ (np.uint64(0) - (words & _ONE))).view(np.int64)

    def ints(self) -> np.ndarray:
        """The next numbers of 32 bits, of which the last bit is the sign."""
        values = self.longs()
        narrow = values.astype(np.int32)
        self.fail(narrow != values, Fault.RANGE)
        return narrow

    def fixed(self, bits: int) -> np.ndarray:
        """The next words of 32 or 64 bits."""
        words = self.words(bits)
        self.spans(np.int64(bits // 8))
        return words

    def octets(self) -> np.ndarray:
        """The next bytes."""
        octets = self.data[self.pos]
        self.spans(np.int64(1))
        return octets

    def spans(self, lengths: np.ndarray | np.int64) -> tuple[np.ndarray, np.ndarray]:
        """The starts and the ends of spans of bytes, over which the messages go on; faulty ones are empty."""
        starts = self.pos
        over = (lengths < 0) | (lengths > self.end - starts)
        if over.any():
            negative = (lengths < 0) | (np.ndim(lengths) > 0 and lengths > len(self.data))
            self.fail(over & negative, Fault.LENGTH)
            self.fail(over, Fault.SHORT)
            lengths = np.where(over, 0, lengths)
            starts = self.pos
        self.pos = starts + lengths
        return starts, self.pos

    def finished(self) -> None:
        """Give those a fault that have more bytes."""
        self.fail(self.pos < self.end, Fault.LONG)


def binary_of(data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> pa.Array:
    r"""The bytes of spans.

    >>> binary_of(np.frombuffer(b"abcdef", np.uint8), np.array([1, 3, 3]), np.array([2, 3, 6])).to_pylist()
    [b'b', b'', b'def']
    """
    count = len(starts)
    if count == 0:
        return pa.array([], pa.binary())
    if (starts[1:] >= ends[:-1]).all() and len(data) < 1 << 31:
        # Each span, and after it the bytes up to the next one, are a value; every second one is taken.
        offsets = np.empty(2 * count, np.int32)
        offsets[0::2], offsets[1::2] = starts, ends
        both = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
        return both.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)))
    lengths = ends - starts
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    places: Any = np.arange(int(offsets[-1])) + np.repeat(starts - offsets[:-1], lengths)
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(data[places]))]
    return pa.Array.from_buffers(pa.binary(), count, buffers)


def texts_of_spans(
    cursors: Cursors, starts: np.ndarray, ends: np.ndarray, owners: np.ndarray | None = None
) -> pa.Array:
    """The texts in spans; a message with one that is no UTF-8 is faulty. `owners` has the message of each span."""
    raw = binary_of(cursors.data, starts, ends)
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        pass
    bad = not_utf8(raw)
    cursors.fail(bad, Fault.TEXT)
    return binary_of(cursors.data, starts, np.where(bad, starts, ends)).cast(pa.string())


def not_utf8(raw: pa.Array) -> np.ndarray:
    r"""A mask of bytes that are no text, found by halves.

    >>> not_utf8(pa.array([b"a", b"\xff"])).tolist()
    [False, True]
    """
    mask, waiting = np.zeros(len(raw), np.bool_), [(0, len(raw))]
    while waiting:
        start, count = waiting.pop()
        try:
            raw.slice(start, count).cast(pa.string())
        except pa.ArrowInvalid:
            if count == 1:
                mask[start] = True
            else:
                waiting += [(start + count // 2, count - count // 2), (start, count // 2)]
    return mask


__all__ = ["WORDS", "Cursors", "Fault", "binary_of", "not_utf8", "texts_of_spans"]
