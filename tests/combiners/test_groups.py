"""Group codes against dictionaries of Python values."""

from __future__ import annotations

import datetime
import decimal
import math
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncombine as uc
from uncombine.combiners.rows import key_codes as key_codes_module
from uncombine.combiners.rows.group_sums import extreme, sum_int64
from uncombine.combiners.rows.groups import Groups, group_rows, keyed_groups, stable_order, unordered_groups
from uncombine.combiners.rows.key_codes import group_keys, normal_keys, of_values_used
from uncombine.errors import TypeMismatch

FLOATS = st.sampled_from([0.0, -0.0, 1.5, -1.5, math.nan, math.inf, -math.inf, 5e-324])
KEYS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int64": (pa.int64(), st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1])),
    "int8": (pa.int8(), st.integers(-3, 3)),
    "uint64": (pa.uint64(), st.sampled_from([0, 1, 2**64 - 1])),
    "string": (pa.string(), st.sampled_from(["", "a", "b", "ab"])),
    "binary": (pa.binary(), st.sampled_from([b"", b"a", b"\x00"])),
    "bool": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.dates(datetime.date(1960, 1, 1), datetime.date(1960, 1, 4))),
    "timestamp": (pa.timestamp("us", "UTC"), st.integers(-2, 2).map(lambda n: n * 10**12)),
    "decimal": (pa.decimal128(20, 2), st.sampled_from([decimal.Decimal("1.00"), decimal.Decimal("-1.50")])),
    "float64": (pa.float64(), FLOATS),
    "float32": (pa.float32(), FLOATS.filter(lambda v: v != 5e-324)),
    "null": (pa.null(), st.none()),
}


def plain(value: Any) -> Any:
    """A Python value that is equal where keys are: NaN to NaN, -0.0 to 0.0."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


@pytest.mark.parametrize(
    "names", [(name,) for name in KEYS] + [("int64", "string", "float64"), ("bool", "date", "null")]
)
@given(data=st.data())
def test_rows_are_grouped_as_python_groups_them(names: tuple[str, ...], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(*(st.none() | KEYS[name][1] for name in names)), max_size=30))
    columns = [pa.array([row[i] for row in rows], KEYS[name][0], from_pandas=False) for i, name in enumerate(names)]
    groups, first = group_rows(columns, len(rows))
    expected: dict[Any, int] = {}
    codes = [expected.setdefault(tuple(map(plain, row)), len(expected)) for row in rows]
    assert groups.codes.tolist() == codes
    assert groups.count == len(expected)
    assert first.tolist() == [codes.index(code) for code in range(len(expected))]
    same, keys = keyed_groups(columns, len(rows))
    assert sorted(map(tuple, _members(same))) == sorted(map(tuple, _members(groups)))
    assert same.sizes.tolist() == np.bincount(same.codes, minlength=same.count).tolist()
    assert [key.type for key in keys] == [column.type for column in columns]
    told = list(zip(*(key.to_pylist() for key in keys), strict=True))
    came = zip(*(column.to_pylist() for column in columns), strict=True)
    for code, row in zip(same.codes.tolist(), came, strict=True):
        assert tuple(map(plain, told[code])) == tuple(map(plain, row))


def _members(groups: Groups) -> list[list[int]]:
    return [np.flatnonzero(groups.codes == code).tolist() for code in range(groups.count)]


def test_many_wide_keys_do_not_overflow_their_composite() -> None:
    rng = np.random.default_rng(1)
    columns = [rng.integers(0, 2**62, 200) // 2**61 * 2**61 + rng.integers(0, 3, 200) for _ in range(9)]
    groups, _ = group_rows([pa.array(c) for c in columns], 200)
    again, keys_again = keyed_groups([pa.array(c) for c in columns], 200)
    for column, found in zip(columns, keys_again, strict=True):
        assert np.asarray(found)[again.codes].tolist() == column.tolist()
    keys = list(zip(*(c.tolist() for c in columns), strict=True))
    assert groups.count == len(set(keys))
    assert all(
        (groups.codes[i] == groups.codes[j]) == (keys[i] == keys[j]) for i in range(0, 200, 7) for j in range(200)
    )


def test_struct_keys_are_their_fields_and_their_null() -> None:
    kind = pa.struct([("start", pa.int64()), ("end", pa.int64())])
    column = pa.array([{"start": 1, "end": 2}, None, {"start": 1, "end": 2}, {"start": None, "end": 2}, None], kind)
    assert group_rows([column], 5)[0].codes.tolist() == [0, 1, 0, 2, 1]
    groups, (key,) = keyed_groups([column], 5)
    assert key.take(pa.array(groups.codes)) == column
    assert keyed_groups([pa.array([{}, None], pa.struct([]))], 2)[1][0].to_pylist() in ([{}, None], [None, {}])


@pytest.mark.parametrize("first", [0.0, -0.0])
def test_zeros_inside_structs_are_one_key(first: float) -> None:
    column = pa.array([{"a": {"b": first}}, {"a": {"b": -first}}, {"a": None}, None])
    found = uc.aggregate(pa.table({"k": column}), by="k", n=uc.Count()).to_pylist()
    shown = [{"k": None, "n": 1}, {"k": {"a": None}, "n": 1}, {"k": {"a": {"b": 0.0}}, "n": 2}]
    assert repr(sorted(found, key=repr)) == repr(sorted(shown, key=repr))


def test_dictionaries_group_as_their_values() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["a", "b", "a"]))
    assert group_rows([normal_keys(column)], 3)[0].codes.tolist() == [0, 1, 0]


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
def test_floats_of_every_width_are_keys(kind: pa.DataType) -> None:
    column = pa.array(np.array([0.5, -0.0, 0.0, np.nan, np.nan], np.float16), pa.float16()).cast(kind)
    groups, (key,) = keyed_groups([normal_keys(column)], 5)
    assert groups.codes.tolist() == [0, 1, 1, 2, 2]
    assert key.type == kind
    assert str([float(value) for value in key.to_pylist()]) == "[0.5, 0.0, nan]"


def test_lists_are_no_keys() -> None:
    with pytest.raises(TypeMismatch, match="group by its parts"):
        group_rows([pa.array([[1], [2]])], 2)


@given(st.lists(st.integers(0, 200_000), max_size=50))
def test_stable_order_is_a_stable_argsort(codes: list[int]) -> None:
    array = np.array(codes, np.int64)
    assert stable_order(array, 200_001).tolist() == np.argsort(array, kind="stable").tolist()


def test_sizes_starts_and_order_belong_together() -> None:
    groups = Groups(np.array([2, 0, 2, 2]), 4)
    assert groups.sizes.tolist() == [1, 0, 3, 0]
    assert groups.starts.tolist() == [0, 1, 1, 4]
    assert groups.order.tolist() == [1, 0, 2, 3]


@given(st.lists(st.integers(0, 5), max_size=20), st.booleans())
def test_groups_of_runs_are_those_of_their_codes(given_codes: list[int], stable: bool) -> None:
    codes = np.unique(np.array(given_codes, np.int64), return_inverse=True)[1].astype(np.int64)
    plain_groups = Groups(codes, int(codes.max(initial=-1)) + 1)
    order = plain_groups.order if stable else np.lexsort((-np.arange(len(codes)), codes))
    values = np.arange(len(codes)) * 2**61
    for use in (lambda g: g.codes, lambda g: g.order, lambda g: sum_int64(g, values), lambda g: least(g, values)):
        runs = Groups.of_runs(order, plain_groups.sizes, stable)
        assert use(runs).tolist() == use(plain_groups).tolist()
        assert len(runs) == len(codes)


def least(groups: Groups, values: np.ndarray) -> np.ndarray:
    return extreme(groups, values, 2**63 - 1, np.minimum)


@pytest.mark.parametrize("name", ["string", "float64", "int8", "date"])
@given(data=st.data())
def test_dictionaries_are_grouped_as_their_values(name: str, data: st.DataObject) -> None:
    """Two values of a dictionary may be equal, and one may be null; a slice of the rows uses some of them."""
    kind, value = KEYS[name]
    values = pa.array(data.draw(st.lists(st.none() | value, max_size=6)), kind, from_pandas=False)
    places = st.integers(0, len(values) - 1) if len(values) else st.none()
    indices = pa.array(data.draw(st.lists(st.none() | places, max_size=20)), pa.int8())
    coded = pa.DictionaryArray.from_arrays(indices, values).slice(data.draw(st.integers(0, 3)))
    spread = values.take(coded.indices)
    for column in (coded, group_keys(coded)):
        groups, first = group_rows([column, pa.array(np.arange(len(coded)) % 2)], len(coded))
        expected, at = group_rows([spread, pa.array(np.arange(len(coded)) % 2)], len(coded))
        assert groups.codes.tolist() == expected.codes.tolist()
        assert first.tolist() == at.tolist()
        same, keys = keyed_groups([column], len(coded))
        decoded = keys[0].take(pa.array(same.codes))
        assert decoded.type == kind
        assert list(map(repr, decoded.to_pylist())) == list(map(repr, normal_keys(spread).to_pylist()))
        again, (key,) = keyed_groups([column], len(coded), coded=True)
        assert again.codes.tolist() == same.codes.tolist()
        assert pa.types.is_dictionary(key.type) == (name == "string")
        assert repr(normal_keys(key).to_pylist()) == repr(keys[0].to_pylist())
        if name == "string":
            assert key.dictionary.null_count == 0
            few = of_values_used(key.slice(0, 2))
            assert set(few.dictionary.to_pylist()) == set(few.to_pylist()) - {None}
            assert few.to_pylist() == key.slice(0, 2).to_pylist()


@pytest.mark.parametrize(
    ("rows", "spans", "way"),
    [
        (5000, (1000,), "all codes"),
        (5000, (1250,), "a table of sizes"),
        (5000, (1251,), "a table of flags"),
        (5000, (20_000,), "a table of flags"),
        (5000, (20_001,), "a sort"),
        (5000, (7, 30_000), "a sort"),
        (5000, (30_000,) * 3, "a sort"),
        (5000, (30_000,) * 4, "their dictionary"),
        (1, (1,), "a single row"),
        (0, (1,), "no rows"),
    ],
    ids=str,
)
def test_groups_of_codes_in_their_order(rows: int, spans: tuple[int, ...], way: str) -> None:
    """Few codes, many, and more than fit one number with the row, with and without codes that no row has."""
    for seed, dense in enumerate((1.0, 0.3, 0.01)):
        rng = np.random.default_rng(seed)
        drawn = [rng.integers(0, max(int(span * dense), 1), rows) for span in spans]
        for part, span in zip(drawn, spans, strict=True):
            part[:2] = [0, span - 1][:rows]  # so that there are as many codes as `span` says
        columns = [pa.array(part) for part in drawn]
        groups, keys = keyed_groups(columns, rows)
        found = list(zip(*(key.to_pylist() for key in keys), strict=True))
        given_rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
        assert [found[code] for code in groups.codes.tolist()] == given_rows, way
        assert len(set(found)) == len(found) == groups.count == len(set(given_rows))
        assert groups.sizes.tolist() == [len(list(rows)) for _, rows in groupby(sorted(groups.codes.tolist()))]
        assert groups.codes.dtype == np.int64
        if way != "their dictionary":
            assert found == sorted(found), "in the order of the codes"


@given(st.lists(st.none() | st.text("ab", max_size=3), min_size=1, max_size=60), st.integers(0, 5))
def test_many_texts_are_grouped_as_few(texts: list[str | None], skip: int) -> None:
    """Arrow's group_by finds the groups of texts of which many differ."""
    column = pa.array(texts).slice(skip)
    plain = group_rows([column], len(column))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_codes_module, "_MANY", 1)
        patch.setattr(key_codes_module, "_SAMPLE", 8)
        many = group_rows([column], len(column))
        pairs = keyed_groups([pa.array(np.arange(len(column)) % 2), column], len(column))
    assert [groups.codes.tolist() for groups, _ in (plain, many)] == [plain[0].codes.tolist()] * 2
    assert plain[1].tolist() == many[1].tolist()
    few = keyed_groups([pa.array(np.arange(len(column)) % 2), column], len(column))
    assert sorted(map(repr, _keys_of(pairs))) == sorted(map(repr, _keys_of(few)))


def test_a_great_many_texts_are_numbered_by_first_appearance() -> None:
    drawn = np.random.default_rng(1).integers(0, 300_000, 300_000)
    column = pa.array([None if i % 997 == 0 else f"user {i}" for i in drawn.tolist()])
    groups, first = group_rows([column], len(column))
    expected = column.dictionary_encode(null_encoding="encode")
    assert np.array_equal(groups.codes, np.asarray(expected.indices))
    assert column.take(pa.array(first)).equals(expected.dictionary)


@pytest.mark.parametrize("apart", [1, 2**40])
def test_a_key_that_comes_late_is_found(apart: int) -> None:
    keys = np.zeros(50_000, np.int64)
    keys[20_000:], keys[45_000] = apart, 2 * apart
    groups, first = group_rows([pa.array(keys)], len(keys))
    assert first.tolist() == [0, 20_000, 45_000]
    assert np.array_equal(groups.codes, keys // apart)


@pytest.mark.parametrize("keys", [[3, 1, 2], [3, 1, 3], ["b", "c", "a"], [None, 2, 1]])
def test_few_groups_in_any_order_are_those_by_first_appearance(keys: list[int | str | None]) -> None:
    column = pa.array(keys * 40)
    groups, first = unordered_groups([column], len(column))
    by_number = np.argsort(first)
    expected, places = group_rows([column], len(column))
    assert np.array_equal(first[by_number], places)
    assert np.array_equal(np.argsort(by_number)[groups.codes], expected.codes)
    assert np.array_equal(groups.sizes, np.bincount(groups.codes))


@pytest.mark.parametrize(("differ", "more", "many"), [(5000, 0, True), (500, 0, False), (5000, -1, False)])
def test_texts_of_which_many_differ_are_seen(differ: int, more: int, many: bool) -> None:
    column = pa.array([str(i % differ) for i in range(key_codes_module._MANY + more)])
    assert key_codes_module._are_many_texts(column) == many


def _keys_of(found: tuple[Groups, list[pa.Array]]) -> list[tuple[Any, ...]]:
    groups, keys = found
    return [tuple(key[int(code)].as_py() for key in keys) for code in groups.codes]
