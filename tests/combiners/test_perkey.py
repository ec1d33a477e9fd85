"""A map of results for each key, against plain dictionaries."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seeds import share

import uncombine as uc
from uncombine.combiners.laws import check_laws
from uncombine.combiners.plan import Plan

ROWS = st.lists(
    st.tuples(
        st.sampled_from("gh"),
        st.sampled_from(["a", "b", "", None]),
        st.one_of(st.none(), st.integers(-3, 3)),
        st.sampled_from([-2, -1, 0, 1, 2]),
    ),
    max_size=12,
)


@given(ROWS)
def test_as_a_dictionary_of_rows(rows: list[tuple[str, str | None, int | None, int]]) -> None:
    g, k, x, w = zip(*rows, strict=True) if rows else ((), (), (), ())
    table = pa.table({"g": pa.array(g, pa.string()), "k": pa.array(k, pa.string()), "x": pa.array(x, pa.int64())})
    table = table.append_column("w", pa.array(w, pa.int64()))
    both = uc.Struct(total=uc.Sum("x"), held=uc.CollectList("x"))
    out = uc.aggregate(table, by="g", diff="w", r=uc.PerKey(both, by="k"))
    expected = {}
    for group in dict.fromkeys(g):
        mine = [row for row in rows if row[0] == group]
        if sum(row[3] for row in mine) == 0:
            continue
        entries = []
        for key in sorted({row[1] for row in mine if row[1] is not None}):
            here = [row for row in mine if row[1] == key]
            if sum(row[3] for row in here) == 0:
                continue
            weights = {v: sum(row[3] for row in here if row[2] == v) for v in {row[2] for row in here} - {None}}
            total = sum(v * n for v, n in weights.items())
            if not (total or sum(weights.values())):  # of values that were retracted but never came a sum stays
                total = None
            held = [v for v in sorted(weights) for _ in range(weights[v])]
            entries.append((key, {"total": total, "held": held}))
        expected[group] = entries
    assert {row["g"]: row["r"] for row in out.to_pylist()} == expected


def test_keys_are_sorted_normal_and_typed() -> None:
    table = pa.table({"k": [2.0, float("nan"), -0.0, 0.0, 2.0], "x": [1, 2, 3, 4, 5]})
    out = uc.aggregate(table, n=uc.PerKey(uc.Count(), by="k"))
    assert out.schema.field("n").type == pa.map_(pa.float64(), pa.int64())
    assert repr(out["n"][0].as_py()) == "[(0.0, 2), (2.0, 2), (nan, 1)]"


def test_an_expression_as_key_nesting_and_of() -> None:
    table = pa.table({"x": [1, 2, 3], "y": [10, 20, 30], "s": ["a", "b", "a"]})
    inner = uc.PerKey(uc.Sum("x"), by=uc.col("x") % 2)
    out = uc.aggregate(table, r=uc.PerKey(inner.of("y"), by="s"))
    assert out["r"][0].as_py() == [("a", [(1, 40)]), ("b", [(0, 20)])]


def test_where_and_map_apply_to_the_whole() -> None:
    table = pa.table({"x": [1, 2, 3], "s": ["a", "b", "a"]})
    out = uc.aggregate(table, r=uc.PerKey(uc.Sum("x"), by="s").where(uc.col("x") > 1))
    assert out["r"][0].as_py() == [("a", 3), ("b", 2)]


def test_a_key_with_more_retractions_than_rows_stays_in_the_state() -> None:
    fn = uc.PerKey(uc.Max("x"), by="k").bind(pa.schema({"x": pa.int64(), "k": pa.string()}))
    swapped = fn.accumulate({"x": [5, 3], "k": ["a", "a"]}, weights=[1, -1])
    assert fn.result(swapped) == []
    before = fn.accumulate({"x": [3], "k": ["a"]})
    together = tuple(pa.concat_arrays(pair) for pair in zip(before, swapped, strict=True))
    groups = uc.combiners.rows.groups.Groups.repeated(1, 2)
    assert fn.result(fn.merge(groups, together)) == [("a", 5)]


def test_equal_maps_share_their_state_and_read_back() -> None:
    made = uc.PerKey(uc.Sum("x"), by="k")
    assert made == eval(repr(made), {"PerKey": uc.PerKey, "Sum": uc.Sum})
    plan = Plan({"a": made, "b": uc.Struct(m=made)}, pa.schema({"x": pa.int64(), "k": pa.string()}))
    assert len(plan.fields) == 1


def test_it_promises_what_is_inside() -> None:
    assert uc.PerKey(uc.Max("x", retractable=False), by="k").capability is uc.Capability.MONOID
    assert uc.PerKey(uc.Max("x"), by="k").append_only() == uc.PerKey(uc.Max("x", retractable=False), by="k")


@pytest.mark.parametrize(
    ("combiner", "error", "says"),
    [
        (lambda: uc.PerKey("x", by="k"), uc.errors.InvalidArgument, "PerKey takes a combiner such as"),
        (lambda: uc.PerKey(uc.Sum("x"), by=3), uc.errors.InvalidArgument, "an input must be a column's name"),
        (lambda: uc.PerKey(uc.Sum("x"), by="nope"), uc.errors.UnknownColumn, "needs column 'nope'"),
        (lambda: uc.PerKey(uc.Sum("x"), by="l"), uc.errors.TypeMismatch, "values that can be sorted"),
    ],
)
def test_wrong_use(combiner, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        uc.aggregate(pa.table({"x": [1], "k": ["a"], "l": [[1]]}), r=combiner())


OF_LAWS = [
    uc.PerKey(uc.PerKey(uc.Max("x"), by="k"), by="x"),
    uc.PerKey(uc.Struct(n=uc.Count(), h=uc.Histogram("x", [0, 1, 2])), by="k"),
    uc.PerKey(uc.Sum("x"), by="k"),
]


@pytest.mark.weekly
@pytest.mark.parametrize("combiner", share(OF_LAWS))
def test_laws(combiner: uc.Combiner) -> None:
    check_laws(combiner, values={"x": pa.float64(), "k": pa.string()}, max_examples=30)
