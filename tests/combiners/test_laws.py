"""The law kit itself: what it takes, what it says when it is used wrongly, and laws that few combiners can break."""

from __future__ import annotations

import math
import statistics
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import strategies as st
from ids import without_address
from seeds import share

import uncombine as uc
from uncombine.combiners.laws import LawViolation, check_laws, subjects, typed, values_of
from uncombine.combiners.laws import kit as laws
from uncombine.combiners.laws.compare import near
from uncombine.combiners.laws.expected import orders
from uncombine.combiners.rows.group_sums import sum_int64


def types(combiner: uc.Combiner, **given: Any) -> list[dict[str, pa.DataType]]:
    return [subject.columns for subject, _ in subjects(combiner, **given)]


def test_each_type_that_a_combiner_takes_is_tried() -> None:
    assert types(uc.CountIf("x")) == [{"x": pa.bool_()}]
    assert {kind["x"] for kind in types(uc.Max("x"))} == set(laws.TYPES)
    assert types(uc.Count()) == [{}]


def test_several_columns_are_found_and_each_shows_each_type() -> None:
    chosen = types(uc.ArgMax("x", by="t").where(uc.col("z") > 0))
    assert all(set(columns) == {"x", "t", "z"} for columns in chosen)
    assert {columns["t"] for columns in chosen} == set(laws.TYPES)
    assert pa.string() not in {columns["z"] for columns in chosen}
    assert len(chosen) < 2 * len(laws.TYPES)


@pytest.mark.parametrize(
    ("given", "columns"),
    [
        ({"values": pa.int8(), "by": pa.date32()}, {"x": pa.int8(), "t": pa.date32()}),
        ({"values": {"t": pa.int8(), "x": pa.string()}}, {"x": pa.string(), "t": pa.int8()}),
        ({"values": (st.booleans(), st.floats())}, {"x": pa.bool_(), "t": pa.float64()}),
        ({"values": st.sampled_from([None, b"a"]), "by": pa.int8()}, {"x": pa.binary(), "t": pa.int8()}),
        ({"values": (st.just(Decimal("1.25")), pa.int8())}, {"x": pa.decimal128(38, 2), "t": pa.int8()}),
        ({"values": (typed(pa.int16(), st.just(1)), pa.int8())}, {"x": pa.int16(), "t": pa.int8()}),
    ],
    ids=str,
)
def test_what_may_be_said_of_values(given: dict[str, Any], columns: dict[str, pa.DataType]) -> None:
    (found,) = types(uc.ArgMax("x", by="t"), **given)
    assert found == columns


@pytest.mark.weekly
@pytest.mark.parametrize(
    ("check", "error", "says"),
    [
        (lambda: check_laws("x"), "InvalidArgument", "takes a combiner such as Sum"),
        (lambda: check_laws(uc.Max("x"), values=3), "InvalidArgument", "takes a hypothesis strategy, an Arrow type"),
        (lambda: check_laws(uc.Max("x"), values={"y": pa.int8()}), "InvalidArgument", "names column 'y', but Max"),
        (lambda: check_laws(uc.Max("x"), values=(pa.int8(), pa.int8())), "InvalidArgument", "has 2 entries"),
        (lambda: check_laws(uc.Max("x"), by=pa.int8()), "InvalidArgument", "by= is for a second column"),
        (lambda: check_laws(uc.Sum("x"), values=pa.string()), "TypeMismatch", "takes numbers"),
        (lambda: check_laws(uc.Max("x"), values=pa.int16()), "InvalidArgument", "no ready-made values of type int16"),
        (
            lambda: check_laws(uc.Max("x"), values=st.sampled_from(["a", 1])),
            "InvalidArgument",
            "no Arrow type holds the values",
        ),
        (
            lambda: check_laws(uc.Max("x"), values=typed(pa.int8(), st.just(300))),
            "InvalidArgument",
            "values= draws values that column 'x' of type int8 cannot hold",
        ),
        (lambda: typed(pa.int8(), [1]), "InvalidArgument", "typed.kind, strategy. takes an Arrow type and"),
    ],
)
def test_wrong_use(check: Any, error: str, says: str) -> None:
    with pytest.raises(getattr(uc.errors, error), match=says):
        check()


class Tight(uc.Sum):
    """A fast sum that promises more than it keeps."""

    def tolerance(self, magnitudes: Any, count: int) -> float:
        return 0.0


@pytest.mark.full
def test_a_rounding_bound_must_be_kept() -> None:
    check_laws(uc.Sum("x"), values=pa.float64(), max_examples=20)
    with pytest.raises(LawViolation):
        check_laws(Tight("x"), values=pa.float64(), max_examples=50)


class Proud(uc.Sum):
    """A fast sum that calls itself a group."""

    @property
    def capability(self) -> uc.Capability:
        return uc.Capability.GROUP


def test_a_combiner_must_not_promise_more_than_its_parts() -> None:
    check_laws(Proud("x"), values=pa.int64(), max_examples=5)
    with pytest.raises(LawViolation, match="declares GROUP, but over x: double it is only CANCELLATIVE") as caught:
        check_laws(Proud("x"), values=pa.float64())
    assert caught.value.law == "capability"


@dataclass(frozen=True, repr=False)
class Cheap(uc.Max):
    """A maximum whose cheap form is another aggregation."""

    def append_only(self) -> uc.Combiner:
        return uc.Min(self.input, retractable=False)


@pytest.mark.full
def test_the_append_only_form_must_agree() -> None:
    with pytest.raises(LawViolation) as caught:
        check_laws(Cheap("x"), values=pa.int64(), max_examples=40)
    assert caught.value.law == "append-only form"


def broken(**changes: Any) -> Any:
    given: dict[str, Any] = {
        "create": lambda: 0, "add": lambda s, x: s + x, "merge": lambda s, t: s + t, "extract": lambda s: s,
        "uncombine": lambda s, t: s - t, "accumulator": pa.int64(), "output": pa.int64(),
    }  # fmt: skip
    return uc.from_scalar("Broken", **{**given, **changes})


SMALL = st.integers(0, 3)


@pytest.mark.weekly
@pytest.mark.parametrize(
    ("role", "function", "law"),
    [
        ("add", lambda s, x: s + 6 // x, "declared types"),
        ("merge", lambda s, t: s + t + (1 // 0 if s == t == 1 else 0), "group maps"),
        ("uncombine", lambda s, t: s - t + 0 // (t - 2), "uncombine"),
        ("extract", lambda s: 6 // (s - 3), "unchanged accumulators"),
    ],
)
def test_an_error_in_the_users_code_is_a_violation(role: str, function: Any, law: str) -> None:
    """It names the operation, the law, the line and the smallest rows, and has no frame of the library behind it."""
    with pytest.raises(LawViolation) as caught:
        check_laws(broken(**{role: function})("x"), values=SMALL, seed=1, max_examples=80)
    told = str(caught.value)
    assert f"{role} raised ZeroDivisionError at test_laws.py:{function.__code__.co_firstlineno} (" in told
    assert law in {known.name for known in laws.LAWS}
    assert caught.value.law in told
    assert told.count("group 0") <= 3
    cause = caught.value.__cause__
    assert isinstance(cause, ZeroDivisionError)
    assert [frame.name for frame in traceback.extract_tb(cause.__traceback__)] == ["<lambda>"]
    files = [Path(frame.filename) for frame in traceback.extract_tb(caught.tb)]
    assert [file.name for file in files] == ["test_laws.py", "kit.py"]


def test_an_error_in_a_columnar_operation_is_a_violation() -> None:
    class EmptyFn(PlainFn):
        def merge(self, groups, accumulators):
            return (pa.array([np.asarray(accumulators[0]).max()] * groups.count),)

    with pytest.raises(LawViolation, match=r"(add|merge) raised ValueError at test_laws.py") as caught:
        check_laws(EmptyFn(), values=SMALL)
    assert caught.value.law == "declared types"


def test_a_map_of_results_that_raises_is_a_violation() -> None:
    with pytest.raises(LawViolation, match=r"extract raised ValueError at test_laws\.py.*: no results here"):
        check_laws(uc.Sum("x").map(refuse, pa.int64()), values=pa.int64())


def refuse(results: pa.Array) -> pa.Array:
    if len(results) == 3:
        raise ValueError("no results here")
    return results


@pytest.mark.weekly
def test_a_number_too_large_for_its_type_may_be_refused() -> None:
    check_laws(broken(capability=uc.Capability.GROUP)("x"), values=pa.int64(), max_examples=20)
    with pytest.raises(LawViolation, match=r"(add|merge) raised DoesNotFit: (add|merge) of Broken gave"):
        check_laws(broken(accumulator=pa.int8())("x"), values=st.integers(-100, 100))


class PlainFn(uc.CombineFn):
    """A right sum."""

    capability = uc.Capability.MONOID
    fields = (pa.field("sum", pa.int64()),)

    def add(self, groups, *columns, weights=None):
        return self.merge(groups, (pa.array(columns[0].values * (1 if weights is None else weights)),))

    def merge(self, groups, accumulators):
        sums = np.zeros(groups.count, np.int64)
        np.add.at(sums, groups.codes, np.asarray(accumulators[0]))
        return (pa.array(sums),)

    def extract(self, accumulators):
        return accumulators[0]


def test_functions_of_ones_own_are_tried_on_the_first_type_that_they_take() -> None:
    assert types(broken()("x")) == [{"x": pa.int64()}]
    assert types(broken()("x").where(uc.col("x") > 0)) == [{"x": pa.int64()}]
    assert types(PlainFn()) == [{"input 0": pa.int64()}]
    assert types(broken(create=str, add=lambda s, x: s + x, accumulator=pa.string(), output=pa.string())("x")) == [
        {"x": pa.string()}
    ]


@pytest.mark.parametrize(
    ("changes", "kind", "reason"),
    [
        ({"add": lambda s, x: s + x["a"]}, "int64", "add raised TypeError at test_laws.py:"),
        ({"add": lambda s, x: s + len(x.strip().letters)}, "string", "'str' object has no attribute 'letters'"),
        ({"add": lambda s, x: "five"}, "int64", "add of Broken gave 'five', which does not fit its declared"),
    ],
)
def test_a_refusal_of_all_types_has_the_reason_of_the_one_that_came_furthest(
    changes: dict[str, Any], kind: str, reason: str
) -> None:
    with pytest.raises(uc.errors.InvalidArgument) as refused:
        types(broken(**changes)("x"))
    assert f"takes none of the ready-made values, since over {kind} " in str(refused.value)
    assert reason in str(refused.value)


@pytest.mark.weekly
@pytest.mark.parametrize(
    "made", [broken(), broken()("x"), PlainFn, PlainFn(), uc.from_columns("P", PlainFn(), output=pa.int64())]
)
def test_what_may_be_given(made: Any) -> None:
    check_laws(made, expected=sum, max_examples=10)
    with pytest.raises(LawViolation, match="expected results"):
        check_laws(made, expected=len, max_examples=10)


def test_columns_of_a_factory_are_as_many_as_add_takes() -> None:
    assert types(broken(add=lambda s, x, y: s + x * y)) == [{"x": pa.int64(), "y": pa.int64()}]
    named = types(broken(add=lambda s, x, y: s + x * y), values={"p": pa.int8(), "q": pa.int64()})
    assert named == [{"p": pa.int8(), "q": pa.int64()}]


@pytest.mark.weekly
@pytest.mark.parametrize(
    ("combiner", "values", "expected"),
    [
        (uc.Mean("x"), pa.float64(), statistics.fmean),
        (uc.Mean("x"), pa.decimal128(10, 2), statistics.fmean),
        (uc.Count(), None, len),
        (uc.Count("x"), pa.string(), len),
        (uc.Sum("x").where(uc.col("y") > 0), pa.int8(), lambda xs, ys: sum(xs) if min(ys) > 0 else 1 / 0),
        (
            uc.Sum("x") / uc.Count(),
            pa.int64(),
            lambda xs: sum(v for v in xs if v is not None) / len(xs) if any(xs) else 1 / 0,
        ),
        (uc.ArgMax("x", by="t"), pa.int64(), lambda xs, ts: max(zip(ts, xs, strict=True))[1]),
        (uc.CollectSet("x"), pa.string(), set),
        (uc.Quantiles("x", [0, 1]), pa.int64(), lambda xs: [min(xs), max(xs)]),
        (uc.Variance("x", exact=True), pa.int8(), statistics.variance),
        (uc.Correlation("x", "y"), pa.int8(), statistics.correlation),
        (uc.Sum(uc.col("x").str.len_chars()), pa.string(), lambda xs: sum(map(len, xs))),
        (uc.Max(uc.col("x").dt.hour()), pa.timestamp("us", "UTC"), lambda xs: max(x.hour for x in xs)),
        (uc.Max(uc.col("x") * 2), pa.duration("us"), lambda xs: max(xs) * 2),
        (uc.CollectSet(uc.concat(uc.col("x"), "é")), pa.string(), lambda xs: {x + "é" for x in xs}),
        (uc.Struct(a=uc.Max("x")), pa.int64(), lambda xs: {"a": max(xs)}),
    ],
    ids=without_address,
)
@pytest.mark.filterwarnings("ignore:.*has no bound")
def test_expected_results(combiner: uc.Combiner, values: Any, expected: Any) -> None:
    columns = len(next(subjects(combiner))[0].columns)
    check_laws(combiner, values=values and (values,) * columns, expected=expected, max_examples=9)


@pytest.mark.full
@pytest.mark.parametrize(
    ("combiner", "expected", "kind"),
    share([pytest.param(uc.Min, min, pa.float64(), id="Min"), pytest.param(uc.Max, max, pa.float32(), id="Max")]),
)
def test_functions_that_depend_on_the_order_are_not_compared(combiner: Any, expected: Any, kind: pa.DataType) -> None:
    check_laws(combiner("x"), values=kind, expected=expected, max_examples=150)


def test_what_reads_the_same_backwards_is_compared_in_further_orders() -> None:
    nan = math.nan
    for rows in ([0.0, nan, 0.0], [nan, 0.0, nan], [0.0, nan, 1.0], [1, 2, 1], [None, 3, None]):
        first = {repr(order[0][0]) for order in [[rows], *orders([rows])]}
        assert len(first) >= 2, rows
        assert all(sorted(map(repr, order[0])) == sorted(map(repr, rows)) for order in orders([rows]))


@pytest.mark.weekly
@pytest.mark.parametrize(
    ("expected", "error", "says"),
    [
        (3, "InvalidArgument", "expected= must be a function of plain lists, not 3"),
        (lambda xs: xs["a"], "InvalidArgument", "it raised TypeError on"),
        (lambda xs: 1 / 0, "InvalidArgument", "gave no usable result"),
        (lambda xs: xs[0] + len(set(xs)) - 1, "LawViolation", "expected results"),
        (lambda xs: float(sum(xs)) + 0.25, "LawViolation", "expected results"),
        (lambda xs: None, "LawViolation", "expected results"),
    ],
)
def test_expectations_that_do_not_hold(expected: Any, error: str, says: str) -> None:
    with pytest.raises(getattr(uc.errors, error), match=says):
        check_laws(uc.Sum("x"), values=SMALL, expected=expected, max_examples=20)


@pytest.mark.weekly
def test_an_infinite_tolerance_is_reported() -> None:
    lax = broken(
        add=lambda s, x: s + float(x), accumulator=pa.float64(), output=pa.float64(), tolerance=lambda m, n: math.inf
    )
    with pytest.raises(LawViolation, match=r"tolerance.* is infinite, or larger") as caught:
        check_laws(lax("x"), values=SMALL, max_examples=30)
    assert caught.value.law == "tolerance"
    with pytest.raises(LawViolation, match="is infinite, or larger"):
        check_laws(lax("x") / uc.Count(), values=SMALL, max_examples=30)


@pytest.mark.weekly
def test_no_bound_of_the_librarys_own_is_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"Correlation\('x', 'y'\) has no bound"):
        check_laws(uc.Correlation("x", "y"), values=(pa.int64(), pa.int64()), max_examples=10)


FLOATS: dict[str, Any] = {"create": lambda: 0.0, "accumulator": pa.float64(), "output": pa.float64()}


class FloatsFn(PlainFn):
    """A sum of floats that says its tolerance as a number."""

    fields = (pa.field("total", pa.float64()),)
    tolerance = 1e-9

    def merge(self, groups, accumulators):
        sums = np.zeros(groups.count)
        np.add.at(sums, groups.codes, np.asarray(accumulators[0]))
        return (pa.array(sums),)


@pytest.mark.weekly
def test_a_tolerance_may_be_a_part_of_the_numbers() -> None:
    values = pa.array([0.1, 0.2, 0.3, 1e7, None])
    check_laws(broken(**FLOATS, tolerance=1e-9)("x"), values=values, max_examples=20)
    product = broken(**FLOATS, add=lambda s, x: s + math.log(x), extract=math.exp, uncombine=None, tolerance=1e-9)
    large = pa.array([1.1e9, 3.3e8])  # their products are much larger than their sum
    check_laws(product("x"), values=large, max_examples=20)
    far = broken(**FLOATS, merge=lambda s, t: s + t * (1 + 1e-6), tolerance=1e-9)
    with pytest.raises(LawViolation, match="breaks the law of"):
        check_laws(far("x"), values=values, max_examples=20)
    for fn in (FloatsFn(), uc.from_columns("Floats", FloatsFn(), output=pa.float64())("x")):
        check_laws(fn, values=values, max_examples=20)
    vague = broken(**FLOATS, tolerance=0.9)
    with pytest.raises(LawViolation, match="the law of tolerance"):
        check_laws(vague("x"), values=values, max_examples=20)


@pytest.mark.weekly
def test_a_tolerance_is_for_floats_alone() -> None:
    """The numbers are so large that a count that is wrong by one would be within their tolerance."""
    counted = pa.struct([("n", pa.int64()), ("total", pa.float64())])

    def checked(wrong: int) -> None:
        def merge(s: dict[str, Any], t: dict[str, Any]) -> dict[str, Any]:
            n = s["n"] + t["n"] + wrong * (s["n"] > 0) * (t["n"] > 1)
            return {"n": n, "total": s["total"] + t["total"] * (1 + 1e-13)}

        combiner = broken(
            create=lambda: {"n": 0, "total": 0.0},
            add=lambda s, x: {"n": s["n"] + 1, "total": s["total"] + x},
            merge=merge, uncombine=None, accumulator=counted, output=counted, tolerance=1e-9,
        )  # fmt: skip
        check_laws(combiner("x"), values=pa.array([1e11, 1e12, 3e12]), max_examples=10)

    checked(0)
    with pytest.raises(LawViolation):
        checked(1)


@pytest.mark.parametrize("inside", [lambda x: x, lambda x: [x], lambda x: {"n": x}, lambda x: [{"n": x, "t": 0.5}]])
def test_numbers_that_are_no_floats_are_equal_or_not(inside: Any) -> None:
    def alike(one: Any, other: Any, slack: float = 10.0) -> bool:
        return near(inside(one), inside(other), slack)

    assert [alike(7.0, 8.0), alike(7, 8.0), alike(7, 7), alike(Decimal(7), Decimal(7))] == [True] * 4
    assert [alike(7, 8), alike(7, 8, math.inf), alike(Decimal(7), Decimal(8)), alike(True, 1)] == [False] * 4


@pytest.mark.parametrize("bad", [1, -1e-9, True, float("nan"), "1e-9"])
def test_a_tolerance_is_less_than_the_numbers(bad: Any) -> None:
    with pytest.raises(uc.errors.InvalidArgument, match="takes a number from 0 to 1 such as 1e-9"):
        broken(**FLOATS, tolerance=bad)


@pytest.mark.weekly
def test_values_may_be_an_array() -> None:
    odd = broken(add=lambda s, x: s + x // (x % 2))
    check_laws(odd("x"), values=pa.array([1, 3, None]), max_examples=10)
    with pytest.raises(LawViolation, match="ZeroDivisionError"):
        check_laws(odd("x"), values=pa.chunked_array([[1], [2]]), max_examples=10)
    with pytest.raises(uc.errors.InvalidArgument, match="has an Arrow array without a value"):
        check_laws(odd("x"), values=pa.array([None], pa.int64()))


@pytest.mark.full
def test_rounding_without_a_tolerance_is_told() -> None:
    floats = broken(**FLOATS)
    with pytest.raises(LawViolation, match=r"rounding may cause this: .* give tolerance=1e-9"):
        check_laws(floats("x"), values=st.sampled_from([0.1, 0.2, 0.3]), max_examples=40)


@pytest.mark.weekly
@pytest.mark.parametrize(
    ("combiner", "values"),
    [
        (uc.Sum("x").where(uc.col("x") > 1), None),
        (uc.Sum("x") / uc.Count(), (pa.float64(),)),
        (uc.Sum("x").of(uc.col("x") * uc.col("y")), (pa.int64(), pa.int64())),
        (uc.Mean("x").map(pc.negate), (pa.float64(),)),
        (1 - uc.Sum("x") * 2, (pa.int64(),)),
        (uc.Struct(a=uc.Sum("x") / uc.Count()), (pa.float64(),)),
    ],
    ids=without_address,
)
def test_expressions_are_held_to_the_laws(combiner: uc.Combiner, values: Any) -> None:
    check_laws(combiner, values=values, max_examples=6)


@pytest.mark.weekly
@pytest.mark.parametrize(
    "wrap", [lambda c: c / uc.Count(), lambda c: c.map(pc.negate), lambda c: c.where(uc.col("x") > 0)]
)
def test_a_fault_in_an_expression_is_found(wrap: Any) -> None:
    """Its tolerance is infinite, and yet its parts are compared."""
    wrong = broken(
        create=lambda: 0.0, merge=lambda s, t: (s + t) / 2, accumulator=pa.float64(), output=pa.float64(),
        tolerance=lambda m, n: 1e-9 * sum(m), uncombine=None,
    )  # fmt: skip
    with pytest.raises(LawViolation):
        check_laws(wrap(wrong("x")), values=SMALL, max_examples=50)


@pytest.mark.weekly
def test_a_seed_draws_the_same() -> None:
    def found(seed: int) -> str:
        with pytest.raises(LawViolation) as caught:
            check_laws(broken(merge=lambda s, t: s + t + 1)("x"), values=st.integers(-9, 9), seed=seed)
        return str(caught.value)

    assert found(3) == found(3)


@pytest.mark.parametrize("kind", laws.TYPES, ids=str)
def test_ready_made_values_meet_and_are_of_their_type(kind: pa.DataType) -> None:
    drawn = list(values_of(kind, extreme=True).strategy.elements)
    assert 2 <= len(set(map(repr, drawn))) <= 15
    assert pa.array(drawn, kind, from_pandas=False).null_count == 0


@pytest.mark.weekly
def test_it_is_loaded_at_first_use_and_says_what_it_needs(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['hypothesis'] = None; import uncombine as uc\n"
        "try:\n    uc.combiners.laws\nexcept ModuleNotFoundError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "needs hypothesis: install uncombine[testing]" in done.stdout


class Total(uc.CombineFn):
    """A sum whose results are right, to be spoilt."""

    capability = uc.Capability.GROUP
    fields = (pa.field("total", pa.int64()),)

    def add(self, groups, *columns, weights=None):
        return self.merge(groups, (pa.array(columns[0].values * (1 if weights is None else weights)),))

    def merge(self, groups, accumulators):
        return (pa.array(sum_int64(groups, np.asarray(accumulators[0]))),)

    def negate(self, accumulators):
        return (pc.negate(accumulators[0]),)

    def extract(self, accumulators):
        return accumulators[0]


@pytest.mark.weekly
@pytest.mark.parametrize(
    ("extract", "found"),
    [
        (lambda total: None, "NoneType"),
        (lambda total: pa.chunked_array([total]), "ChunkedArray"),
        (np.asarray, "ndarray"),
        (lambda total: total.to_pylist(), "list"),
        (lambda total: total.slice(0, max(len(total) - 1, 0)), "2 int64"),
        (lambda total: pa.concat_arrays([total, pa.array([0])]), "4 int64"),
    ],
)
def test_extract_of_a_bare_function_gives_one_array(extract: Callable[[pa.Array], Any], found: str) -> None:
    spoilt = type("Spoilt", (Total,), {"extract": lambda self, accumulators: extract(accumulators[0])})
    check_laws(Total(), values=st.integers(-9, 9), max_examples=10)
    with pytest.raises(LawViolation, match=rf"extract\(a\)  gives  {found}\n") as caught:
        check_laws(spoilt(), values=st.integers(-9, 9), max_examples=10)
    assert caught.value.law == "declared types"


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (lambda arrays: tuple(array.cast(pa.int32()) for array in arrays), "3 int32"),
        (lambda arrays: tuple(array.slice(0, max(len(array) - 1, 0)) for array in arrays), "2 int64"),
        (lambda arrays: list(arrays), r"\[<pyarrow"),
    ],
)
def test_accumulators_have_the_declared_fields(spoil: Callable[[Any], Any], found: str) -> None:
    spoilt = type("Spoilt", (Total,), {"merge": lambda self, groups, some: spoil(Total.merge(self, groups, some))})
    with pytest.raises(LawViolation, match=found) as caught:
        check_laws(spoilt(), values=st.integers(-9, 9), max_examples=10)
    assert caught.value.law == "declared types"


@pytest.mark.parametrize("kind", [pa.decimal128(12, 2), pa.decimal128(38, 38), pa.decimal256(60, 20)], ids=str)
def test_all_decimals_have_ready_made_values(kind: pa.DataType) -> None:
    assert check_laws(uc.Max("x"), values=kind, max_examples=10) is None
