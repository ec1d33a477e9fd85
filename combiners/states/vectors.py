"""Accumulators of the vector shape: a few numeric columns that are added, negated and scaled entry by entry."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import pyarrow as pa

from ..algebra import Accumulators, CombineFn
from ..rows.group_sums import sum_floats, sum_int64
from ..rows.groups import Groups


class VectorFn(CombineFn):
    """A `CombineFn` whose accumulator columns, int64 or float64, add up entry by entry; subclasses define `add`."""

    @property
    @abstractmethod
    def fields(self) -> tuple[pa.Field, ...]: ...

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        return tuple(
            pa.array(
                sum_floats(groups, floats(a)) if pa.types.is_floating(a.type) else self.sum_ints(groups, int64s(a))
            )
            for a in accumulators
        )

    def sum_ints(self, groups: Groups, values: np.ndarray) -> np.ndarray:
        """The sums of an int64 column, which wrap; counts override this with `sum_counts`."""
        return sum_int64(groups, values)

    def negate(self, accumulators: Accumulators) -> Accumulators:
        return tuple(pa.array(0 - np.asarray(a)) for a in accumulators)


def int64s(array: pa.Array) -> np.ndarray:
    """An int64 accumulator column as numpy, without a copy."""
    return np.asarray(array.to_numpy(zero_copy_only=False))


def floats(array: pa.Array) -> np.ndarray:
    """A float64 accumulator column as numpy, without a copy."""
    return np.asarray(array.to_numpy(zero_copy_only=False))


def null_if_empty(results: np.ndarray, counts: pa.Array, kind: pa.DataType | None = None) -> pa.Array:
    """Results with null for groups whose count of values is zero."""
    return pa.array(results, kind, mask=int64s(counts) == 0, from_pandas=False)
