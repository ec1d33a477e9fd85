"""Chunks of dictionary columns become one array with the same values, whatever dictionaries they share."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncombine as uc
from uncombine.combiners.rows.columns import flat
from uncombine.combiners.rows.dictionaries import one_dictionary
from uncombine.combiners.rows.plain_types import plain_type

TEXTS = st.lists(st.none() | st.text("abé", max_size=2), max_size=6)


@st.composite
def chunks(draw: st.DrawFn) -> list[pa.DictionaryArray]:
    """Chunks over few dictionaries, some of which have a value twice, nulls, or are slices of others."""
    index, value = draw(st.sampled_from([pa.int8(), pa.int32()])), draw(st.sampled_from([pa.string(), pa.binary()]))
    base = pa.array([*draw(TEXTS), "a", "b"], pa.string()).cast(value)
    # Two of them share their memory and differ in their place in it.
    known = [base.slice(0, len(base) - 1), base.slice(1), pa.array(draw(TEXTS) or ["a"], pa.string()).cast(value)]
    out = []
    for _ in range(draw(st.integers(1, 6))):
        some = known[draw(st.integers(0, 2))]
        rows = draw(st.lists(st.none() | st.integers(0, len(some) - 1), max_size=5))
        out.append(pa.DictionaryArray.from_arrays(pa.array(rows, index), some))
    return out


@given(chunks())
def test_the_values_are_those_of_the_chunks(given: list[pa.DictionaryArray]) -> None:
    made = one_dictionary(given)
    made.validate(full=True)
    assert made.type == given[0].type
    assert made.to_pylist() == [value for chunk in given for value in chunk.to_pylist()]


@pytest.mark.parametrize("value", [pa.int64(), pa.large_string(), pa.decimal128(30, 2), pa.list_(pa.int64())])
def test_values_of_any_type(value: pa.DataType) -> None:
    made = {pa.list_(pa.int64()): [[1], None]}.get(value, [1, None, 3] if value != pa.large_string() else ["a", None])
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int32()), pa.array(made).cast(value))
    column = pa.chunked_array([array, array.slice(1), array])
    assert flat(column).to_pylist() == column.to_pylist()


UNJOINED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "struct": (pa.struct({"a": pa.float64(), "b": pa.string()}), [{"a": -0.0, "b": "x"}, None, {"a": 0.0, "b": "y"}]),
    "list": (pa.list_(pa.string()), [["x", None], None, []]),
    "list of views": (pa.list_(pa.string_view()), [["x", None], None, []]),
    "map": (pa.map_(pa.string(), pa.int8()), [[("x", 1)], None, []]),
    "uuid": (pa.uuid(), [bytes(16), None, b"a number of 16 b"]),
}


@pytest.mark.parametrize("name", UNJOINED)
def test_values_that_arrow_cannot_join_are_read_as_plain_ones(name: str) -> None:
    """Arrow has no dictionary of those of several, and casts some of them to no plain type."""
    kind, values = UNJOINED[name]

    def coded(*rows: int | None) -> pa.Array:
        some = pa.array([values[row] for row in rows if row is not None], kind)
        places = iter(range(len(some)))
        indices = [None if row is None else next(places) for row in rows]
        return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), some)

    column = pa.chunked_array([coded(0, 1, None), coded(2, 0, None)])
    plain = pa.array([values[row] for row in (0, 1, 1, 2, 0, 1)], plain_type(kind))
    assert repr(flat(column).to_pylist()) == repr(plain.to_pylist())
    times = pa.array(range(6), pa.timestamp("us", "UTC"))
    rows = uc.flow(pa.table({"ts": times, "v": column})).in_order().run()
    assert repr(rows.panes["v"].to_pylist()) == repr(plain.to_pylist())
    for some in (column, plain, column.slice(0, 0), pa.chunked_array([], column.type)):
        given, same = pa.table({"v": some}), pa.table({"v": plain[: len(some)]})
        assert uc.aggregate(given, n=uc.Count("v")) == uc.aggregate(same, n=uc.Count("v"))
        if name in ("struct", "uuid"):
            found, want = (uc.aggregate(table, by="v", n=uc.Count()) for table in (given, same))
            assert repr(found.to_pylist()) == repr(want.to_pylist())


def test_many_values_have_a_wider_index() -> None:
    one, other = (pa.array([f"{side}{i}" for i in range(100)]).dictionary_encode() for side in "ab")
    narrow = [chunk.cast(pa.dictionary(pa.int8(), pa.string())) for chunk in (one, other, one)]
    made = one_dictionary(narrow)
    assert made.type == pa.dictionary(pa.int32(), pa.string())
    assert made.to_pylist() == [value for chunk in narrow for value in chunk.to_pylist()]
    counted = uc.aggregate(pa.table({"k": pa.chunked_array(narrow)}), by="k", n=uc.Count())
    assert sorted(counted["n"].to_pylist()) == [1] * 100 + [2] * 100


@pytest.mark.parametrize("value", [pa.float16(), pa.string()])
def test_dictionaries_inside_structs_keep_their_values(value: pa.DataType) -> None:
    """Arrow joins those of half floats as their bits, and not those whose values do not fit into the index together."""
    chunks = []
    for start in (0, 100):
        values = pa.array(range(start, start + 100), pa.int64()).cast(pa.float32() if value == pa.float16() else value)
        coded = pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), values.cast(value))
        chunks.append(pa.StructArray.from_arrays([coded], ["a"]))
    column = pa.chunked_array(chunks)
    want = [row for chunk in chunks for row in chunk.to_pylist()]
    assert flat(column).to_pylist() == want
    counted = uc.aggregate(pa.table({"k": column}), by="k", n=uc.Count())
    assert counted["k"].to_pylist() == want


def test_a_shared_dictionary_is_kept() -> None:
    coded = pa.array(["a", "b"] * 3).dictionary_encode()
    made = one_dictionary([coded, coded.slice(2, 3), coded])
    assert made.dictionary.buffers()[2].address == coded.dictionary.buffers()[2].address
