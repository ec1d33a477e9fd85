"""Right columnar combiners, to be used as they are and to be spoilt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import uncombine as uc

from . import GROUP, LONG, MONOID


class TotalFn(uc.CombineFn):
    """A right sum and count of whole numbers, to be spoilt."""

    capability = GROUP
    fields = (pa.field("total", LONG), pa.field("n", LONG))

    def weighed(self, columns: Any, weights: Any) -> Any:
        return columns[0].values * weights, weights

    def sums(self, codes: Any, values: Any, count: int) -> Any:
        out = np.zeros(count, np.int64)
        np.add.at(out, codes, values)
        return out

    def add(self, groups: Any, *columns: Any, weights: Any = None) -> Any:
        weights = np.ones(len(groups), np.int64) if weights is None else weights
        held = self.weighed(columns, weights)
        return tuple(pa.array(self.sums(groups.codes, values, groups.count)) for values in held)

    def merge(self, groups: Any, accumulators: Any) -> Any:
        return tuple(pa.array(self.sums(groups.codes, np.asarray(a), groups.count)) for a in accumulators)

    def negate(self, accumulators: Any) -> Any:
        return tuple(pa.array(-np.asarray(a)) for a in accumulators)

    def extract(self, accumulators: Any) -> Any:
        total, n = map(np.asarray, accumulators)
        return pa.array(total, mask=n == 0)


class MaxFn(uc.CombineFn):
    """A right maximum, to be spoilt."""

    capability = MONOID
    fields = (pa.field("max", LONG), pa.field("seen", pa.bool_()))
    least: Any = -(2**63)
    number: Any = np.int64

    def add(self, groups: Any, *columns: Any, weights: Any = None) -> Any:
        here = np.ones(len(groups), np.bool_) if weights is None else weights > 0
        return self.best(groups.codes[here], columns[0].values[here], groups.count)

    def best(self, codes: Any, values: Any, count: int) -> Any:
        out, seen = np.full(count, self.least, self.number), np.zeros(count, np.bool_)
        np.maximum.at(out, codes, values)
        seen[codes] = True
        return pa.array(np.where(seen, out, 0), self.fields[0].type), pa.array(seen)

    def merge(self, groups: Any, accumulators: Any) -> Any:
        values, seen = (np.asarray(a.to_numpy(zero_copy_only=False)) for a in accumulators)
        return self.best(groups.codes[seen], values[seen], groups.count)

    def extract(self, accumulators: Any) -> Any:
        return pc.if_else(accumulators[1], accumulators[0], None)
