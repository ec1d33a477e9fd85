"""Equality of columns against equality of their values in plain Python."""

from __future__ import annotations

import math
import random

import numpy as np
import pyarrow as pa
import pytest
from compared_tables import TYPES, VALUES, near
from seeds import seeds

from uncombine.tables.comparison.equal_values import equal_values

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("name", [name for name in TYPES if name != "text"])
@pytest.mark.parametrize("seed", seeds(8, 80))
def test_values_are_equal_as_in_plain_python(name: str, seed: int) -> None:
    draw = random.Random(seed)
    sides = [[VALUES[name](draw) for _ in range(60)] for _ in range(2)]
    arrays = [pa.array([None, *side], TYPES[name][0]).slice(1) for side in sides]
    if pa.types.is_nested(arrays[0].type):
        assert arrays[0].offset == 1
    for tolerance in (0.0, 1e-9):
        expected = [near(one, other, tolerance) for one, other in zip(*sides, strict=True)]
        assert equal_values(*arrays, tolerance).tolist() == expected


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1.0, 1.09, True),
        (1.0, 1.2, False),
        (0.0, 0.1, True),
        (0.0, 0.11, False),
        (100.0, 111.0, True),
        (100.0, 112.0, False),
        (-1.0, 1.0, False),
        (INF, INF, True),
        (INF, 1e308, False),
        (INF, -INF, False),
        (NAN, NAN, True),
        (NAN, 1.0, False),
        (1.7e308, -1.7e308, False),
    ],
)
def test_a_tolerance_is_that_of_math(one: float, other: float, same: bool) -> None:
    assert equal_values(pa.array([one]), pa.array([other]), 0.1).tolist() == [same]
    assert equal_values(pa.array([other]), pa.array([one]), 0.1).tolist() == [same]
    assert same == ((math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=0.1, abs_tol=0.1))


def test_a_tolerance_is_for_floats_alone() -> None:
    assert not equal_values(pa.array([100]), pa.array([101]), 0.5).any()


def test_no_values() -> None:
    for kinds in TYPES.values():
        assert equal_values(pa.array([], kinds[0]), pa.array([], kinds[0])).tolist() == []
    assert np.array_equal(equal_values(pa.nulls(2), pa.nulls(2)), [True, True])
