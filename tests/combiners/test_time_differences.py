"""The difference of two results that are times: a length of time, as the expression of two columns."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.combiners.laws import check_laws
from uncombine.errors import TypeMismatch

TIME = pa.timestamp("us", "UTC")


@pytest.mark.parametrize("kind", [TIME, pa.timestamp("ms"), pa.timestamp("s", "Europe/Berlin")])
def test_the_length_of_a_group(kind: Any) -> None:
    rows = pa.table({"ts": pa.array([0, 7, None, 3], kind), "k": ["a", "a", "b", "c"]})
    found = uc.aggregate(rows, by="k", length=uc.Max("ts") - uc.Min("ts"))
    unit = {"us": "microseconds", "ms": "milliseconds", "s": "seconds"}[kind.unit]
    lengths = {row["k"]: row["length"] for row in found.to_pylist()}
    assert lengths == {"a": timedelta(**{unit: 7}), "b": None, "c": timedelta(0)}


def test_the_laws_of_a_difference() -> None:
    check_laws(uc.Max("ts", retractable=True) - uc.Min("ts", retractable=True), values=TIME, max_examples=30)


@pytest.mark.parametrize("made", [uc.Max("ts") + uc.Min("ts"), uc.Max("ts") - 5, uc.Max("ts") * 2])
def test_other_arithmetic_of_times_is_refused(made: Any) -> None:
    with pytest.raises(TypeMismatch, match="needs numbers on both sides, but one side gives timestamp"):
        uc.aggregate(pa.table({"ts": pa.array([0], TIME)}), x=made)
