"""Chunks of dictionary columns become one array with the same values, whatever dictionaries they share."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncombine as uc
from uncombine.combiners.rows.columns import flat
from uncombine.combiners.rows.dictionaries import one_dictionary

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


def test_many_values_have_a_wider_index() -> None:
    one, other = (pa.array([f"{side}{i}" for i in range(100)]).dictionary_encode() for side in "ab")
    narrow = [chunk.cast(pa.dictionary(pa.int8(), pa.string())) for chunk in (one, other, one)]
    made = one_dictionary(narrow)
    assert made.type == pa.dictionary(pa.int32(), pa.string())
    assert made.to_pylist() == [value for chunk in narrow for value in chunk.to_pylist()]
    counted = uc.aggregate(pa.table({"k": pa.chunked_array(narrow)}), by="k", n=uc.Count())
    assert sorted(counted["n"].to_pylist()) == [1] * 100 + [2] * 100


def test_a_shared_dictionary_is_kept() -> None:
    coded = pa.array(["a", "b"] * 3).dictionary_encode()
    made = one_dictionary([coded, coded.slice(2, 3), coded])
    assert made.dictionary.buffers()[2].address == coded.dictionary.buffers()[2].address
