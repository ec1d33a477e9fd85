"""Codes of texts of one length against numbers given one by one, and the texts that get none."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncombine as uc
from uncombine.combiners.rows import key_codes, text_codes
from uncombine.combiners.rows.groups import group_rows, keyed_groups
from uncombine.combiners.rows.text_codes import all_differ, codes_of_one_length

ALIKE = [bytes(16), bytes(7) + b"\x80" + bytes(7) + b"\x80"]
"""Texts of one hash: the factors of both words are odd, so 2**63 times their sum is 0 modulo 2**64."""


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
@given(data=st.data(), width=st.integers(8, 27), skip=st.integers(0, 3))
def test_texts_are_numbered_by_first_appearance(kind: pa.DataType, data: st.DataObject, width: int, skip: int) -> None:
    texts = data.draw(st.lists(st.text("ab\0", min_size=width, max_size=width), min_size=1, max_size=30))
    column = pa.array(["before"] * skip + texts + ["after"]).cast(kind).slice(skip, len(texts))
    numbers: dict[str, int] = {}
    expected = [numbers.setdefault(text, len(numbers)) for text in texts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_codes, "_BLOCK", data.draw(st.sampled_from([1, 64, 1 << 21])))
        patch.setattr(text_codes, "_ROWS", data.draw(st.sampled_from([1, 5, 1 << 12])))
        patch.setattr(text_codes, "_FEW", data.draw(st.sampled_from([1, 8])))
        found = codes_of_one_length(column)
        assert all_differ(column) == (len(numbers) == len(texts))
    assert found is not None
    codes, first = found
    assert codes.tolist() == expected
    assert first.tolist() == [texts.index(text) for text in numbers]


@pytest.mark.parametrize(
    "texts",
    [
        [],
        ["short", "texts"],
        ["of one length", "of other lengths"],
        ["of the length", "of", "of one and of some other"],
        ["of one length", None],
        [None, None],
        [""],
    ],
)
def test_texts_without_one_length_have_no_codes(texts: list[str | None]) -> None:
    assert codes_of_one_length(pa.array(texts, pa.string())) is None
    assert not all_differ(pa.array(texts, pa.string()))


def test_a_null_that_has_bytes_is_no_text() -> None:
    offsets, data = np.array([0, 8, 16], np.int32), b"the same" * 2
    column = pa.StringArray.from_buffers(2, pa.py_buffer(offsets), pa.py_buffer(data), pa.py_buffer(b"\x01"))
    assert column.to_pylist() == ["the same", None]
    assert codes_of_one_length(column) is None


@pytest.mark.parametrize("texts", [ALIKE, [*ALIKE, *ALIKE[::-1]], [b"x" * 16, *ALIKE]])
def test_texts_of_one_hash_are_told_apart(texts: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_codes, "_MANY", 1)
    monkeypatch.setattr(key_codes, "_SAMPLE", 8)
    column = pa.array(texts)
    hashes = text_codes._hashes(np.frombuffer(b"".join(ALIKE), np.uint8), 2, 16)
    assert hashes[0] == hashes[1]
    assert not all_differ(column)
    assert codes_of_one_length(column) is None
    groups, first = group_rows([column], len(column))
    assert groups.codes.tolist() == np.asarray(column.dictionary_encode().indices).tolist()
    assert column.take(pa.array(first)).equals(column.dictionary_encode().dictionary)


def test_many_ids_are_grouped_by_their_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = np.random.default_rng(1).integers(0, 50_000, key_codes._MANY)
    column = pa.array([f"id {number:09d}" for number in drawn.tolist()])
    monkeypatch.setattr(key_codes, "_grouped_texts", None)
    groups, first = group_rows([column], len(column))
    expected = column.dictionary_encode()
    assert np.array_equal(groups.codes, np.asarray(expected.indices))
    assert column.take(pa.array(first)).equals(expected.dictionary)


@given(
    values=st.lists(st.sampled_from(["user 0001", "user 0002", "user 0003"]), min_size=1, max_size=4),
    rows=st.lists(st.none() | st.integers(0, 3), min_size=4, max_size=12),
)
def test_dictionaries_of_ids_are_grouped_as_plain_ones(values: list[str], rows: list[int | None]) -> None:
    """Their indices are the codes if no two values are equal."""
    indices = pa.array([None if row is None else row % len(values) for row in rows], pa.int8())
    column = pa.DictionaryArray.from_arrays(indices, pa.array(values))
    found, wanted = (group_rows([given], len(rows)) for given in (column, column.cast(pa.string())))
    assert found[0].codes.tolist() == wanted[0].codes.tolist()
    assert found[1].tolist() == wanted[1].tolist()
    groups, [keys] = keyed_groups([column], len(rows))
    assert [keys[code].as_py() for code in groups.codes.tolist()] == column.to_pylist()


@pytest.mark.parametrize("values", [["user 0001", "user 0002", "user 0003"], ["a", "b", "c"]])
@pytest.mark.parametrize("rows", [[0, 2, 3, 3], [None, 0, 3, 3], [0, 2, -1, -1]])
def test_indices_of_no_value_are_refused(values: list[str], rows: list[int | None]) -> None:
    """Arrow does not look at them in a file, and they must not become the key of other rows."""
    column = pa.DictionaryArray.from_arrays(pa.array(rows, pa.int8()), pa.array(values), safe=False)
    with pytest.raises(pa.ArrowIndexError):
        uc.aggregate(pa.table({"k": column}), by="k", n=uc.Count())
