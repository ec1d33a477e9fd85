"""The law kit itself: what it takes, what it says when it is used wrongly, and laws that few combiners can break."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st

import uncombine as uc
from uncombine.combiners import laws
from uncombine.combiners.counting import CountFn
from uncombine.combiners.laws import LawViolation, check_laws, subjects, typed, values_of


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


@pytest.mark.parametrize(
    ("check", "error", "says"),
    [
        (lambda: check_laws("x"), "InvalidArgument", "takes a combiner such as Sum"),
        (lambda: check_laws(CountFn()), "InvalidArgument", "give values="),
        (lambda: check_laws(uc.Max("x"), values=3), "InvalidArgument", "takes a hypothesis strategy, an Arrow type"),
        (lambda: check_laws(uc.Max("x"), values={"y": pa.int8()}), "InvalidArgument", "names 'y', and Max"),
        (lambda: check_laws(uc.Max("x"), values=(pa.int8(), pa.int8())), "InvalidArgument", "has 2 entries"),
        (lambda: check_laws(uc.Max("x"), by=pa.int8()), "InvalidArgument", "speaks of a second column"),
        (lambda: check_laws(uc.Sum("x"), values=pa.string()), "TypeMismatch", "takes numbers"),
        (lambda: check_laws(uc.Max("x"), values=pa.int16()), "InvalidArgument", "no ready-made values of type int16"),
        (
            lambda: check_laws(uc.Max("x"), values=st.sampled_from(["a", 1])),
            "InvalidArgument",
            "no Arrow type holds what",
        ),
        (
            lambda: check_laws(uc.Max("x"), values=typed(pa.int8(), st.just(300))),
            "InvalidArgument",
            "values= draws what a column 'x' of int8 cannot hold",
        ),
        (lambda: typed(pa.int8(), [1]), "InvalidArgument", "typed.. takes an Arrow type and a hypothesis strategy"),
    ],
)
def test_wrong_use(check: Any, error: str, says: str) -> None:
    with pytest.raises(getattr(uc.errors, error), match=says):
        check()


class Tight(uc.Sum):
    """A fast sum that promises more than it keeps."""

    def tolerance(self, magnitudes: Any, count: int) -> float:
        return 0.0


def test_a_rounding_bound_must_be_kept() -> None:
    check_laws(uc.Sum("x"), values=pa.float64(), max_examples=50)
    with pytest.raises(LawViolation):
        check_laws(Tight("x"), values=pa.float64(), max_examples=50)


class Proud(uc.Sum):
    """A fast sum that calls itself a group."""

    @property
    def capability(self) -> uc.Capability:
        return uc.Capability.GROUP


def test_a_combiner_must_not_promise_more_than_its_parts() -> None:
    check_laws(Proud("x"), values=pa.int64(), max_examples=5)
    with pytest.raises(LawViolation, match="declares GROUP, and over x: double it is only CANCELLATIVE") as caught:
        check_laws(Proud("x"), values=pa.float64())
    assert caught.value.law == "capability"


@dataclass(frozen=True, repr=False)
class Cheap(uc.Max):
    """A maximum whose cheap form is another aggregation."""

    def append_only(self) -> uc.Combiner:
        return uc.Min(self.input, retractable=False)


def test_the_append_only_form_must_agree() -> None:
    with pytest.raises(LawViolation) as caught:
        check_laws(Cheap("x"), values=pa.int64(), max_examples=40)
    assert caught.value.law == "append-only form"


def test_an_error_in_an_operation_is_not_hidden() -> None:
    broken = uc.from_scalar(
        "Broken", create=lambda: 0, add=lambda s, x: s + 6 // x, merge=lambda s, t: s + t,
        extract=lambda s: s, accumulator=pa.int64(), output=pa.int64(),
    )  # fmt: skip
    with pytest.raises(ZeroDivisionError):
        check_laws(broken("x"), values=st.integers(0, 3))


def test_functions_of_ones_own_need_values() -> None:
    plain = uc.from_scalar(
        "Plain", create=lambda: 0, add=lambda s, x: s, merge=lambda s, t: s, extract=lambda s: s,
        accumulator=pa.int64(), output=pa.int64(),
    )  # fmt: skip
    with pytest.raises(uc.errors.InvalidArgument, match="give values="):
        check_laws(plain("x"))


@pytest.mark.parametrize("kind", laws.TYPES, ids=str)
def test_ready_made_values_meet_and_are_of_their_type(kind: pa.DataType) -> None:
    drawn = list(values_of(kind, extreme=True).strategy.elements)
    assert 2 <= len(set(map(repr, drawn))) <= 15
    assert pa.array(drawn, kind, from_pandas=False).null_count == 0


def test_it_is_loaded_at_first_use_and_says_what_it_needs(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['hypothesis'] = None; import uncombine as uc\n"
        "try:\n    uc.combiners.laws\nexcept ModuleNotFoundError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "install uncombine with its extra, uncombine[testing]" in done.stdout
