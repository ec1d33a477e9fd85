"""Codes of numbers against numbers given one by one, in both ways of finding them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncombine.combiners.rows import key_codes, numbering
from uncombine.combiners.rows.groups import group_rows, keyed_groups
from uncombine.combiners.rows.numbering import numbered

BACK = pow(int(numbering._SPREAD), -1, 2**64)
"""Times this, a number becomes the one that is sorted in its place."""

ALIKE = [(high * 2**62 + low) * BACK % 2**64 for high in range(3) for low in range(4)]
"""Numbers of which each four agree in all bits that are sorted, if there are at least two rows."""


@pytest.mark.parametrize("sample", [1, 1 << 12], ids=["sorted", "in a hash table"])
@given(values=st.lists(st.sampled_from(ALIKE) | st.integers(0, 2**64 - 1), min_size=1, max_size=40))
def test_numbers_get_codes_by_first_appearance(sample: int, values: list[int]) -> None:
    known: dict[int, int] = {}
    expected = [known.setdefault(value, len(known)) for value in values]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbering, "_SAMPLE", sample)
        patch.setattr(numbering, "_OFTEN", 1 << 30)
        codes, first = numbered(np.array(values, np.uint64))
    assert codes.tolist() == expected
    assert first.tolist() == [values.index(value) for value in known]


RNG = np.random.default_rng(1)
COLUMNS = {
    "all differ": (RNG.permutation(1 << 17) - 5, True),
    "four rows each": (RNG.integers(0, 1 << 15, 1 << 17), True),
    "pairs that follow each other": (np.repeat(RNG.permutation(1 << 16), 2), True),
    "32 rows each": (RNG.integers(0, 1 << 12, 1 << 17), False),
    "runs of 32 rows": (np.repeat(RNG.permutation(1 << 12), 32), False),
    "all equal": (np.zeros(1 << 17, np.int64), False),
    "three numbers in few rows": (RNG.integers(0, 3, 5_000), False),
    "fewer rows than are drawn": (np.arange(4_000), False),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_many_different_numbers_are_sorted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values, sorts = COLUMNS[name]
    expected = pa.array(values).dictionary_encode()
    monkeypatch.setattr(numbering, "first_rows" if sorts else "_by_sorting", None)
    codes, first = numbered(values)
    assert np.array_equal(codes, np.asarray(expected.indices))
    assert np.array_equal(values[first], np.asarray(expected.dictionary))


WIDE = [
    pa.array([2**63, 0, 2**64 - 1, 2**63], pa.uint64()),
    pa.array([-(2**63), 2**63 - 1, 0, -(2**63)]),
    pa.array([2**31 - 1, -(2**31), 2**31 - 1, 0], pa.int32()),
    pa.array([2**62, 1, 2**62, 1], pa.timestamp("us")),
    pa.array([0.1, 1e300, 0.1, -5.0]),
    pa.array([2**62, None, 0, 2**62 + 1]),
    pa.array([], pa.uint64()),
]


@pytest.mark.parametrize("column", WIDE, ids=lambda column: f"{len(column) - column.null_count} {column.type}")
@pytest.mark.parametrize("sample", [1, 1 << 12], ids=["sorted", "in a hash table"])
def test_keys_far_apart_are_grouped(column: pa.Array, sample: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbering, "_SAMPLE", sample)
    monkeypatch.setattr(numbering, "_OFTEN", 1 << 30)
    expected = column.dictionary_encode(null_encoding="encode")
    groups, first = group_rows([column], len(column))
    assert groups.codes.tolist() == expected.indices.to_pylist()
    assert column.take(pa.array(first)).equals(expected.dictionary)
    keyed, [keys] = keyed_groups([column], len(column))
    assert keys.take(pa.array(keyed.codes)).equals(column)


def test_integers_far_apart_get_codes_as_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(key_codes, "numbered", lambda values: calls.append(len(values)) or numbered(values))
    group_rows([WIDE[0]], 4)
    assert calls == [4]
