"""Row hashes against a slow second writing of their definition, on every type, and frozen values."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import struct
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncombine.combiners.rows.columns import Column
from uncombine.combiners.rows.hashing import hash_arrays, hash_rows, hash_rows_128
from uncombine.errors import InvalidArgument, TypeMismatch

M = 2**64
EPOCH = dt.datetime(1970, 1, 1)
GOLDEN = 0x9E3779B97F4A7C15
KINDS = ["null", "integer", "float", "boolean", "text", "binary", "decimal", "list", "struct", "date"]
KINDS += ["timestamp", "time", "duration"]


def split_mix(z: int) -> int:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % M
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % M
    return z ^ (z >> 31)


def murmur(z: int) -> int:
    z = (z ^ (z >> 33)) * 0xFF51AFD7ED558CCD % M
    z = (z ^ (z >> 33)) * 0xC4CEB9FE1A85EC53 % M
    return z ^ (z >> 33)


LANES = [(0x243F6A8885A308D3, split_mix), (0x13198A2E03707344, murmur)]


def reference(value: Any, kind: pa.DataType, seed: int, mix: Callable[[int], int]) -> int:
    """The hash of one Python value of an Arrow type, by the book."""

    def salt(name: str, variant: int = 0) -> int:
        return (seed + (KINDS.index(name) + 256 * variant) * GOLDEN) % M

    def words(parts: list[int], length: int) -> int:
        total = sum(mix((w + seed + k * GOLDEN) % M) for k, w in enumerate(parts))
        return total + length * 0xA0761D6478BD642F

    if value is None:
        return salt("null")
    if pa.types.is_boolean(kind):
        return mix((int(value) + salt("boolean")) % M)
    if pa.types.is_integer(kind):
        return mix((value + salt("integer")) % M)
    if pa.types.is_floating(kind):
        value = math.nan if math.isnan(value) else value + 0.0
        return mix((struct.unpack("<Q", struct.pack("<d", value))[0] + salt("float")) % M)
    if pa.types.is_date(kind):
        return mix(((value - dt.date(1970, 1, 1)).days + salt("date")) % M)
    if pa.types.is_timestamp(kind):
        return mix(((value - EPOCH) // dt.timedelta(microseconds=1) + salt("timestamp", 2)) % M)
    if pa.types.is_duration(kind):
        return mix((value // dt.timedelta(microseconds=1) + salt("duration", 2)) % M)
    if pa.types.is_decimal(kind):
        unscaled = int(value.scaleb(kind.scale, decimal.Context(prec=50))) % 2**128
        low = mix((unscaled % M + salt("decimal", kind.scale)) % M)
        return mix((low * 0xD6E8FEB86659FD93 + (unscaled >> 64)) % M)
    if pa.types.is_list(kind):
        parts = [reference(v, kind.value_type, seed, mix) for v in value]
        return mix((words(parts, len(parts)) + salt("list")) % M)
    if pa.types.is_struct(kind):
        state = salt("struct", kind.num_fields)
        for field in kind:
            state = mix((state * 0xD6E8FEB86659FD93 + reference(value[field.name], field.type, seed, mix)) % M)
        return state
    raw = value.encode() if isinstance(value, str) else value
    parts = [int.from_bytes(raw[i : i + 8], "little") for i in range(0, len(raw), 8)] or [0]
    return mix((words(parts, len(raw)) + salt("text" if isinstance(value, str) else "binary")) % M)


VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "int8": (pa.int8(), st.integers(-128, 127)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "float64": (pa.float64(), st.floats()),
    "float32": (pa.float32(), st.floats(width=32)),
    "bool": (pa.bool_(), st.booleans()),
    "string": (pa.string(), st.text(max_size=20)),
    "binary": (pa.binary(), st.binary(max_size=40)),
    "fixed binary": (pa.binary(9), st.binary(min_size=9, max_size=9)),
    "letters": (pa.string(), st.text("ab", min_size=3, max_size=3)),
    "ids": (pa.string(), st.text("ab", min_size=16, max_size=16)),
    "decimal": (pa.decimal128(30, 3), st.decimals(-(10**26), 10**26, places=3)),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us"), st.datetimes()),
    "duration": (pa.duration("us"), st.timedeltas(dt.timedelta(-99_999), dt.timedelta(99_999))),
    "list": (pa.list_(pa.int64()), st.lists(st.none() | st.integers(0, 3), max_size=4)),
    "struct": (
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
        st.fixed_dictionaries({"a": st.none() | st.integers(0, 3), "b": st.none() | st.text(max_size=9)}),
    ),
}


@pytest.mark.parametrize("name", VALUES)
@given(data=st.data())
def test_hashes_are_those_of_the_definition(name: str, data: st.DataObject) -> None:
    kind, values = VALUES[name]
    rows = data.draw(st.lists(st.none() | values, max_size=8))
    cut = data.draw(st.integers(0, len(rows)))
    column = Column(pa.array(rows, kind).slice(cut))
    for (seed, mix), hashes in zip(LANES, hash_rows_128([column]), strict=True):
        assert hashes.tolist() == [reference(value, kind, seed, mix) for value in rows[cut:]]


def test_frozen_values() -> None:
    """These may never change: sketches that were stored and shards that were written depend on them."""
    table = {
        "i": pa.array([0, -1, None], pa.int32()),
        "f": pa.array([-0.0, math.nan, None]),
        "s": pa.array(["", "a text of 25 bytes, fully", None]),
        "d": pa.array([decimal.Decimal("1.50"), decimal.Decimal("-1.50"), None], pa.decimal128(9, 2)),
    }
    columns = {name: Column(array) for name, array in table.items()}
    assert {name: [f"{h:016x}" for h in hash_rows([c])[:2]] for name, c in columns.items()} == {
        "i": ["2cb0f69f4abea221", "edcc99d7f7403620"],
        "f": ["9417034723148989", "d3e3a55d0ffff369"],
        "s": ["a7d176f2e29413c0", "29a2dc669bf72810"],
        "d": ["026fe0dd41cd331d", "284bc85b32087fc0"],
    }
    low, high = hash_rows_128(list(columns.values()))
    assert [f"{b:016x}{a:016x}" for a, b in zip(low, high, strict=True)] == [
        "7d80ef89cce0b9744911569e7670cb54",
        "b0001fca31cf1c4f850d809e11b86ba4",
        "a30f19e6ba6e7cce4d0b59818b034c2c",
    ]


def test_the_storage_of_equal_values_plays_no_part() -> None:
    def hashed(array: pa.Array) -> list[int]:
        return hash_rows([Column(array)]).tolist()

    texts = pa.array(["a", None, "twelve bytes", "a"])
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        assert hashed(texts.cast(kind)) == hashed(texts)
    assert hashed(pa.array([1, -2, None], pa.int8())) == hashed(pa.array([1, -2, None], pa.int64()))
    assert hashed(pa.array([0.5, 0.0], pa.float32())) == hashed(pa.array([0.5, -0.0], pa.float64()))
    payload = struct.pack("<Q", 0x7FF8_0000_0000_0001) + struct.pack("<Q", 0xFFF8_0000_0000_0000)
    assert len(set(hashed(pa.array(np.frombuffer(payload, np.float64), from_pandas=False)))) == 1


def test_kinds_and_orders_are_told_apart() -> None:
    when = dt.datetime(1970, 1, 1, 0, 0, 1)
    arrays = [pa.array([v]) for v in (1, 1.0, True, "1", b"1", "1\0", "", None, [1], [], {"a": 1}, when.date())]
    arrays += [pa.array([when], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")]
    arrays += [pa.array([decimal.Decimal(1)], pa.decimal128(9, scale)) for scale in (0, 1)]
    assert len({hash_rows([Column(a)])[0] for a in arrays}) == len(arrays)
    a, b = Column(pa.array([1, 2, 1])), Column(pa.array([2, 1, 1]))
    one, two, three = hash_rows([a, b])
    assert len({one, two, three}) == 3
    assert hash_rows([b, a]).tolist() == [two, one, three]


def test_long_and_short_rows_in_blocks_hash_as_alone() -> None:
    rows = ["x" * (k % 50) + str(k) for k in range(20_000)] + ["y" * 700_000, ""]
    column = Column(pa.array(rows))
    hashes = hash_rows([column])
    for at in (0, 49, 8_191, 16_384, 19_999, 20_000, 20_001):
        assert hashes[at] == hash_rows([Column(pa.array([rows[at]]))])[0]
    assert len(set(hashes.tolist())) == len(rows)


def test_bits_are_balanced_and_independent() -> None:
    """Every bit of the hashes of 0, 1, 2, ... is set in half of them, in both lanes and in their xor."""
    low, high = hash_rows_128([Column(pa.array(np.arange(100_000)))])
    for words in (low, high, low ^ high):
        bits = np.unpackbits(words.view(np.uint8)).reshape(-1, 64).mean(axis=0)
        assert np.abs(bits - 0.5).max() < 0.01


@pytest.mark.weekly
def test_another_process_hashes_alike() -> None:
    code = (
        "import pyarrow as pa; from uncombine.combiners.rows.columns import Column;"
        "from uncombine.combiners.rows.hashing import hash_rows; print(hash_rows([Column(pa.array(['key']))])[0])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"}
    )
    assert int(out.stdout) == hash_rows([Column(pa.array(["key"]))])[0]


def test_what_cannot_be_hashed_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="at least one column"):
        hash_rows([])
    with pytest.raises(TypeMismatch, match="month_day_nano_interval cannot be hashed"):
        hash_rows([Column(pa.array([(1, 2, 3)], pa.month_day_nano_interval()))])


@pytest.mark.parametrize("index", [pa.int8(), pa.uint8()])
def test_a_dictionary_that_fills_its_indices(index: pa.DataType) -> None:
    texts = pa.array([f"user {i}" for i in range(128 if index == pa.int8() else 256)])
    places = pa.array([*range(len(texts)), None], index)
    coded = pa.DictionaryArray.from_arrays(places, texts)
    assert (hash_arrays([coded]) == hash_arrays([coded.dictionary_decode()])).all()
