"""Equality of two columns, value by value: null equals null, NaN equals NaN, and -0.0 equals 0.0, at any depth.

Guarded by tests/tables/comparison/test_equal_values.py.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt


def equal_values(one: pa.Array, other: pa.Array, tolerance: float = 0.0) -> np.ndarray:
    """True for each place at which two arrays of one type have the same value.

    Two floats are also the same if they differ by at most `tolerance * max(1, |x|, |y|)`: the tolerance is absolute for
    numbers up to 1, and relative to the larger one above.

    >>> import pyarrow as pa
    >>> equal_values(pa.array([[1.0], None, []]), pa.array([[1.1], None, None], pa.list_(pa.float64())), 0.2)
    array([ True,  True, False])
    """
    kind = one.type
    if pt.is_null(kind):
        return np.ones(len(one), np.bool_)
    valid, others = np.asarray(one.is_valid()), np.asarray(other.is_valid())
    out = valid == others
    both = valid & others
    if pt.is_struct(kind):
        for part, its in zip(one.flatten(), other.flatten(), strict=True):
            out &= ~both | equal_values(part, its, tolerance)
        return out
    if pt.is_list(kind):
        return out & (~both | _equal_lists(one, other, both, tolerance))
    if pt.is_floating(kind):
        return out & (~both | _equal_floats(one, other, tolerance))
    same = pc.equal(one, other)
    return out & (~both | np.asarray(same.fill_null(True)))


def _equal_floats(one: pa.Array, other: pa.Array, tolerance: float) -> np.ndarray:
    x, y = (array.cast(pa.float64()).to_numpy(zero_copy_only=False) for array in (one, other))
    same: np.ndarray = (x == y) | (np.isnan(x) & np.isnan(y))
    if tolerance:
        with np.errstate(over="ignore", invalid="ignore"):
            near = np.abs(x - y) <= tolerance * np.maximum(1.0, np.maximum(np.abs(x), np.abs(y)))
        same |= near & np.isfinite(x) & np.isfinite(y)
    return same


def _equal_lists(one: pa.Array, other: pa.Array, both: np.ndarray, tolerance: float) -> np.ndarray:
    """True for lists that are as long as each other, and whose elements are equal."""
    sizes, others = (np.asarray(pc.list_value_length(array).fill_null(-1)) for array in (one, other))
    out = both & (sizes == others)
    chosen = pa.array(out)
    x, y = (array.filter(chosen).flatten() for array in (one, other))
    differ = np.append(0, np.cumsum(~equal_values(x, y, tolerance)))
    ends = np.cumsum(sizes[out], dtype=np.int64)
    out[out] = differ[ends] == differ[ends - sizes[out]]
    return out


__all__ = ["equal_values"]
