"""A combiner as a state machine: right ones pass, faults in merges and retractions and of results are found."""

from __future__ import annotations

import statistics
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from ids import without_address
from planted import columnar, right, wrong_columns, wrong_scalars

import uncombine as uc
from uncombine.combiners.laws import LawViolation
from uncombine.combiners.laws import kit as laws

FEW = settings(settings.default, max_examples=20, stateful_step_count=15, phases=[Phase.generate])
SMALL = st.integers(-3, 3)


def run(combiner: Any, **named: Any) -> None:
    """The machine's test case, as unittest and pytest run it."""
    case = laws.machine(combiner, **named).TestCase
    case.settings = FEW
    case("runTest").runTest()


TestMax = laws.machine(uc.Max("x"), values=pa.int64(), expected=max).TestCase
TestMax.settings = FEW


@pytest.mark.weekly
@pytest.mark.parametrize(
    ("combiner", "named"),
    [
        (uc.Mean("x"), {"values": pa.float64()}),
        (uc.Sum("x") / uc.Count(), {"values": pa.float64()}),
        (uc.Max("x", retractable=False), {"values": pa.string()}),
        (uc.ArgMax("x", by="t"), {"values": SMALL, "by": pa.int64()}),
        (uc.Count(), {"expected": len}),
        (right.Mean("x"), {"values": SMALL, "expected": statistics.fmean}),
        (right.RIGHT["columnar lists"][0], {"values": SMALL, "expected": sorted}),
        (columnar.TotalFn(), {}),
    ],
    ids=without_address,
)
def test_right_ones_pass(combiner: Any, named: dict[str, Any]) -> None:
    run(combiner, **named)


@pytest.mark.full
@pytest.mark.parametrize(
    "name",
    ["mean of means", "counts of zero kept", "a bag that loses all copies", "nothing left where the other is greater",
     "a maximum that stays", "least, from zero", "the greatest of an empty list", "no retractions"],
)  # fmt: skip
def test_wrong_ones_are_found(name: str) -> None:
    combiner, named = (wrong_scalars.WRONG | wrong_columns.WRONG)[name]
    with pytest.raises(LawViolation) as caught:
        run(combiner, **{**named, "values": SMALL})
    assert str(caught.value).startswith(
        repr(combiner) if isinstance(combiner, uc.Combiner) else type(combiner).__name__
    )
    assert any("state.add(" in note or "states_0" in note for note in getattr(caught.value, "__notes__", ()))


def test_a_monoid_has_no_rules_that_retract() -> None:
    assert hasattr(laws.machine(uc.Max("x"), values=SMALL), "uncombine")
    assert not hasattr(laws.machine(uc.Max("x", retractable=False), values=SMALL), "uncombine")
