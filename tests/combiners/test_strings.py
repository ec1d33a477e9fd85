"""Strings sorted by words against Python's sort of their bytes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncombine.combiners.rows.columns import text_bytes
from uncombine.combiners.rows.plain_types import is_text
from uncombine.combiners.rows.strings import sort_texts

# Letters that make long common beginnings, and zeros, which the filling of a last word must not be taken for.
TEXTS = st.text("a\0é", max_size=45) | st.text(max_size=9)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
@given(texts=st.sets(TEXTS, max_size=12))
def test_the_order_of_the_bytes(kind: pa.DataType, texts: set[str]) -> None:
    given_texts = list(texts)
    array = pa.array(["x", *given_texts, "y"]).cast(kind).slice(1, len(given_texts))
    order = sort_texts(array)
    assert [given_texts[i] for i in order] == sorted(given_texts, key=str.encode)
    assert is_text(kind)


def test_many_with_a_long_common_beginning() -> None:
    texts = ["https://example.org/a/long/path/of/forty/bytes?" + str((k * 7919) % 1_000) for k in range(1_000)]
    assert [texts[i] for i in sort_texts(pa.array(texts))] == sorted(texts)


def test_bytes_of_slices_and_of_nothing() -> None:
    offsets, data = text_bytes(pa.array(["ab", None, "c"]).slice(1))
    assert offsets.tolist() == [2, 2, 3]
    assert bytes(data[2:3]) == b"c"
    assert text_bytes(pa.array([], pa.string()))[0].tolist() == [0]
    assert not is_text(pa.binary(3))
