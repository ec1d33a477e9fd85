"""A columnar `CombineFn` of the user's own: in `aggregate`, runs here and stored state, and what it must give."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from opened import run_script

import uncombine as uc
from uncombine.combiners.plan import Plan
from uncombine.combiners.rows.groups import Groups


class TotalFn(uc.CombineFn):
    """A sum of integers and how many there were."""

    fields = (pa.field("total", pa.int64()), pa.field("n", pa.int64()))

    def add(self, groups, *columns, weights=None):
        weights = np.ones(len(groups), np.int64) if weights is None else weights
        return self.merge(groups, (pa.array(columns[0].values * weights), pa.array(weights)))

    def merge(self, groups, accumulators):
        sums = np.zeros((2, groups.count), np.int64)
        for into, column in zip(sums, accumulators, strict=True):
            np.add.at(into, groups.codes, np.asarray(column))
        return pa.array(sums[0]), pa.array(sums[1])

    def negate(self, accumulators):
        return tuple(pa.array(-np.asarray(column)) for column in accumulators)

    def extract(self, accumulators):
        return pa.array(np.asarray(accumulators[0]), mask=np.asarray(accumulators[1]) == 0)


class LastSeenFn(TotalFn):
    """A MONOID, to be refused on retractions."""

    capability = uc.Capability.MONOID


Total = uc.from_columns("Total", TotalFn(), output=pa.int64())
S = 1_000_000
TABLE = pa.table({"k": ["a", "b", "a", "a", "b"], "x": [1, 5, 2, 2, None], "w": [3, 1, 1, -1, 1]})


def test_in_aggregate() -> None:
    expected = [{"k": "a", "t": 3, "u": 6}, {"k": "b", "t": 5, "u": 10}]
    out = uc.aggregate(TABLE, by="k", diff="w", t=Total("x"), u=Total(uc.col("x") * 2))
    assert out.to_pylist() == expected
    assert Total("x").of(uc.col("x") * 2) == Total(uc.col("x") * 2) != Total("x")
    assert repr(Total("x").where(uc.col("x") > 1)) == "Total('x').where(col('x') > 1)"


def test_equal_parts_are_held_once_and_told_by_their_names() -> None:
    plan = Plan({"a": Total("x"), "b": Total("x") / uc.Count()}, pa.schema({"x": pa.int64()}))
    assert [field.name for field in plan.fields] == ["0.columns.total", "0.columns.n", "1.count.count"]


def test_it_is_pickled() -> None:
    again = pickle.loads(pickle.dumps(Total("x")))
    assert repr(again) == "Total('x')"
    assert uc.aggregate(TABLE, by="k", t=again) == uc.aggregate(TABLE, by="k", t=Total("x"))


@pytest.mark.parametrize("diff", [None, "w"])
def test_in_a_local_run(diff: str | None) -> None:
    """Sliding windows over two bundles: what the library's own sum gives."""
    script = [
        uc.Elements([{"ts": second * S, "k": "ab"[second % 2], "x": second, "w": 1} for second in range(0, 50, 7)]),
        uc.Watermark(20 * S),
        uc.Elements(
            [{"ts": second * S, "k": "a", "x": -second, "w": -1 if second == 28 else 1} for second in (21, 28)]
        ),
        uc.Watermark(None),
    ]
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "x": pa.int64(), "w": pa.int64()})
    window = uc.Sliding("20 seconds", "5 seconds")
    options: dict[str, Any] = {"schema": schema, "window": window, "by": "k", "diff": diff, "mode": "retracting"}
    panes = run_script(script, **options, t=Total("x"), s=uc.Sum("x"))
    assert panes.num_rows > 10
    assert panes["t"].to_pylist() == panes["s"].to_pylist()


def test_discarding_differences_only_of_what_says_that_it_is_additive() -> None:
    class AdditiveTotal(TotalFn):
        additive = True

    options: dict[str, Any] = {
        "schema": pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int64(), "w": pa.int64()}),
        "window": uc.Fixed("1 minute"), "diff": "w", "mode": "discarding",
    }  # fmt: skip
    with pytest.raises(uc.errors.NotRetractable, match="t= cannot show its changes as differences"):
        run_script([], t=Total("x"), **options)
    run_script([], t=uc.from_columns("Total", AdditiveTotal(), output=pa.int64())("x"), **options)


def test_a_monoid_refuses_retractions_and_names_the_way_out() -> None:
    last = uc.from_columns("Last", LastSeenFn(), output=pa.int64())
    with pytest.raises(uc.errors.NotRetractable, match=r"m= is a MONOID combiner .*: give its CombineFn a negate\(\)"):
        uc.aggregate(TABLE, diff="w", m=last("x"))
    with pytest.raises(uc.errors.NotRetractable, match=r"give its CombineFn a negate\(\)"):
        uc.aggregate(TABLE, diff="w", m=uc.PerKey(last("x"), "k"))


def test_zero_is_what_it_says_it_is() -> None:
    """A GROUP whose numbers are zero where something was seen, and not where nothing was."""

    class FromTen(TotalFn):
        fields = (pa.field("total", pa.int64()),)

        def add(self, groups, *columns, weights=None):
            weights = 1 if weights is None else weights
            return self.merge(groups, (pa.array(columns[0].values * weights + 10),))

        def merge(self, groups, accumulators):
            sums = np.full(groups.count, 10)
            np.add.at(sums, groups.codes, np.asarray(accumulators[0]) - 10)
            return (pa.array(sums),)

        def negate(self, accumulators):
            return (pa.array(20 - np.asarray(accumulators[0])),)

        def extract(self, accumulators):
            return pa.array(np.asarray(accumulators[0]) - 10)

    ten = uc.from_columns("FromTen", FromTen(), output=pa.int64())
    plan = Plan({"t": ten("x")}, pa.schema({"x": pa.int64()}))
    state = plan.add(Groups(np.arange(3), 3), pa.table({"x": [-10, 0, 1]}))
    assert plan.is_zero(state).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("operation", "given", "says"),
    [
        ("add", lambda *_, **__: (pa.array([1]),), "add of T must give a tuple of 2 arrays, one for each field, but"),
        (
            "add",
            lambda *_, **__: (pa.array([1.0]), pa.array([1])),
            "add of T must give 1 values of int64 in an Arrow array for its field 'total', but gave 1 of double",
        ),
        ("merge", lambda *_: (np.zeros(1), pa.array([1])), "but gave a ndarray"),
        ("extract", lambda _: pa.array([1, 2]), "extract of T must give 1 values of int64 in an Arrow array, but gave"),
    ],
)
def test_what_it_gives_is_checked(operation: str, given: Any, says: str) -> None:
    spoilt = type("Spoilt", (TotalFn,), {operation: staticmethod(given)})
    one = uc.from_columns("T", spoilt(), output=pa.int64())
    with pytest.raises(uc.errors.TypeMismatch) as caught:
        uc.aggregate(pa.table({"x": [1]}), t=one("x"))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: uc.from_columns("T", TotalFn, output=pa.int64()), "takes an instance, TotalFn()"),
        (lambda: uc.from_columns("T", sum, output=pa.int64()), "takes a CombineFn, but was given"),
        (lambda: uc.from_columns("T", TotalFn(), output="int"), "output= of from_columns takes an Arrow type"),
        (lambda: uc.from_columns("T", TotalFn(), output=pa.int64(), tolerance=1), "tolerance= of from_columns takes"),
        (lambda: uc.from_columns("T", type("F", (TotalFn,), {"fields": ()})(), output=pa.int64()), "needs a tuple of"),
        (lambda: Total(3), "an input must be a column's name or an expression"),
        (lambda: Total("x").of("x", "y"), "takes 1 inputs"),
    ],
)
def test_wrong_use_is_said_when_it_is_made(make: Any, says: str) -> None:
    with pytest.raises(uc.errors.InvalidArgument) as caught:
        make()
    assert says in str(caught.value)


class SubtractFn(TotalFn):
    """A sum that says how accumulators are subtracted, and not what the inverse of one is."""

    def uncombine(self, accumulators, others):
        pairs = zip(accumulators, others, strict=True)
        return tuple(pa.array(np.asarray(a) - np.asarray(b)) for a, b in pairs)

    negate = uc.CombineFn.negate


class NeitherFn(TotalFn):
    """A sum that declares a GROUP and has no way to retract."""

    negate = uc.CombineFn.negate


def test_the_inverse_follows_from_uncombine() -> None:
    state = (pa.array([5, 0]), pa.array([2, 0]))
    assert [column.to_pylist() for column in SubtractFn().negate(state)] == [[-5, 0], [-2, 0]]
    with pytest.raises(
        uc.errors.NotRetractable, match=r"NeitherFn declares GROUP .* give it negate\(\) or uncombine\(\)"
    ):
        NeitherFn().negate(state)
