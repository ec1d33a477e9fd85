"""Many messages that are read at once: numbers, spans, and the ends of messages."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from seeds import seeds

from uncombine.messages.spans.cursors import Cursors, Fault, binary_of, not_utf8


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


@pytest.mark.parametrize("seed", seeds(10))
def test_numbers_of_all_lengths(seed: int) -> None:
    r = random.Random(seed)
    numbers = [r.getrandbits(r.randrange(65)) for _ in range(500)] + [0, 127, 128, 2**56 - 1, 2**56, 2**63, 2**64 - 1]
    cursors = Cursors.of(pa.array([varint(number) for number in numbers]))
    assert cursors.varints().tolist() == numbers
    assert not cursors.fault.any()
    cursors.finished()
    assert not cursors.fault.any()


@pytest.mark.parametrize("length", range(12))
def test_numbers_without_an_end(length: int) -> None:
    """The bytes after a message are those of the next one, which are no part of it."""
    cursors = Cursors.of(pa.array([b"\xff" * length, b"\x05", b"\xff" * 9 + b"\x02", b"\x80" * 10 + b"\x01"]))
    numbers = cursors.varints()
    assert cursors.fault.tolist() == [Fault.VARINT if length >= 10 else Fault.SHORT, 0, Fault.VARINT, Fault.VARINT]
    assert numbers[1] == 5
    assert (cursors.pos <= cursors.end).all()


def test_the_first_fault_stays_and_nothing_is_read_after_it() -> None:
    cursors = Cursors.of(pa.array([b"\x02\x03", b"\x02"]))
    cursors.fail(np.array([True, False]), Fault.BRANCH)
    assert cursors.octets().tolist()[1] == 2
    cursors.finished()
    assert cursors.fault.tolist() == [Fault.BRANCH, 0]


def test_spans_stay_within_their_messages() -> None:
    cursors = Cursors.of(pa.array([b"abc", b"defg", b"hi", b""]))
    starts, ends = cursors.spans(np.array([2, 4, 3, -1]))
    assert binary_of(cursors.data, starts, ends).to_pylist() == [b"ab", b"defg", b"", b""]
    assert cursors.fault.tolist() == [0, 0, Fault.SHORT, Fault.LENGTH]
    cursors.finished()
    assert cursors.fault.tolist() == [Fault.LONG, 0, Fault.SHORT, Fault.LENGTH]


@pytest.mark.parametrize("seed", seeds(10))
def test_bytes_of_spans_in_any_order(seed: int) -> None:
    r = random.Random(seed)
    data = np.frombuffer(r.randbytes(100) + bytes(16), np.uint8)
    spans = [(start := r.randrange(100), start + r.randrange(100 - start + 1)) for _ in range(r.randrange(20))]
    spans = r.choice([spans, sorted(spans)])
    starts, ends = (np.array([span[i] for span in spans], np.int64) for i in (0, 1))
    assert binary_of(data, starts, ends).to_pylist() == [data[a:b].tobytes() for a, b in spans]


def test_slices_and_no_messages() -> None:
    values = pa.array([b"\x02", b"\x04", b"\x06"])
    assert Cursors.of(values.slice(1)).longs().tolist() == [2, 3]
    assert Cursors.of(values.slice(3)).longs().tolist() == []
    assert Cursors.of(pa.array([b"", b""])).longs().tolist() == [0, 0]


def test_bytes_that_are_no_text() -> None:
    values = [b"a" if i % 97 else b"\xff" for i in range(1000)]
    assert not_utf8(pa.array(values)).tolist() == [i % 97 == 0 for i in range(1000)]
    assert not_utf8(pa.array([], pa.binary())).tolist() == []
