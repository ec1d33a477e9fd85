"""Decimals as floats against Python's own conversion."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncombine.combiners.floats.decimals import nearest_floats


@pytest.mark.parametrize(("precision", "scale"), [(9, 2), (15, 15), (18, 4), (38, 0), (38, 10), (38, 37), (9, -3)])
@given(data=st.data())
def test_each_is_the_nearest_float(precision: int, scale: int, data: st.DataObject) -> None:
    unscaled = st.integers(-(10**precision) + 1, 10**precision - 1)
    values = [Decimal(f"{n}e{-scale}") for n in data.draw(st.lists(unscaled, max_size=20))]
    array = pa.array([None, *values, None], pa.decimal128(precision, scale)).slice(1, len(values) + 1)
    assert nearest_floats(array)[:-1].tolist() == [float(v) for v in values]
    assert np.isnan(nearest_floats(array)[-1])


def test_other_numbers_are_cast() -> None:
    assert nearest_floats(pa.array([1, 2**63 - 1])).tolist() == [1.0, 2.0**63]
    assert nearest_floats(pa.array([], pa.decimal128(9, 2))).tolist() == []


def test_digits_that_a_division_would_round_twice() -> None:
    value = Decimal("17275721742606.2276")
    assert float(172757217426062276) / 1e4 != float(value)
    assert nearest_floats(pa.array([value], pa.decimal128(18, 4))).tolist() == [float(value)]
