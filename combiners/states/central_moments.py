"""Moments about the mean, for rows that are never retracted: the smallest state, in one pass.

Powers are summed about a pivot close to the mean of each group, and moved to the mean. Two accumulators are merged by
the formulas of Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances"
(1979), and for the higher moments of Pébay, "Formulas for robust, one-pass parallel computation of covariances and
arbitrary-order statistical moments" (SAND2008-6212, 2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..algebra import Accumulators, Capability, CombineFn, Weights
from ..floats.double_double import Real, two_sum
from ..rows.columns import Column
from ..rows.group_sums import sum_floats, sum_weights
from ..rows.groups import Groups
from .compensated_sum import LARGEST, within
from .vectors import floats, int64s

_ROWS = 1 << 16

_CACHED = 1 << 13
"""The rows of one group whose powers stay in the cache, in memory that the next rows use again."""


@dataclass(frozen=True)
class CentralMomentsFn(CombineFn):
    """The count, the mean as a pair, and the sums of the second to the `order`-th powers about it."""

    order: int = 2
    capability = Capability.MONOID
    label = "central"

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        names = ["mean", "mean_low", *(f"m{power}" for power in range(2, self.order + 1))]
        return (pa.field("count", pa.int64()), *(pa.field(name, pa.float64()) for name in names))

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        x = within(columns[0], self.order)
        values = x.values if x.outside is None else np.where(x.outside, np.nan, x.values)
        counts = sum_weights(groups, weights)
        scale: np.ndarray | None = None
        if weights is not None:
            places = np.flatnonzero(weights)
            groups, values, scale = groups.take(places), values[places], weights[places].astype(np.float64)
        with np.errstate(all="ignore"):
            pivots = _pivots(groups, values)
            return self._packed(counts, pivots, _sum_powers(groups, values, pivots, scale, self.order))

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        counts, numbers = int64s(accumulators[0]), [floats(column) for column in accumulators[1:]]
        total = sum_weights(groups, counts)
        places = np.flatnonzero(counts)
        groups, n = groups.take(places), counts[places].astype(np.float64)
        means, low, *moments = (column[places] for column in numbers)
        with np.errstate(all="ignore"):
            pivots = _pivots(groups, means)
            moved = _moved(n, [np.zeros(len(n)), *moments], (pivots[groups.codes] - means) - low)
            return self._packed(total, pivots, [sum_floats(groups, term) for term in moved])

    def _packed(self, counts: np.ndarray, pivots: np.ndarray, about: Sequence[np.ndarray]) -> Accumulators:
        """Accumulators from the sums of the first and higher powers about the pivots."""
        n = counts.astype(np.float64)
        shift = np.where(n > 0, about[0] / n, 0.0)
        moments = _moved(n, about, shift)[1:]
        moments[0] = np.maximum(moments[0], 0.0)
        return (pa.array(counts), *(pa.array(column) for column in (*two_sum(pivots, shift), *moments)))


def central_moments(values: np.ndarray, order: int) -> tuple[float, ...] | None:
    """The mean of one group as a pair and its moments about the mean, by the steps of `CentralMomentsFn.add`.

    None if there is no value, or if one is NaN, infinite or too large for its powers to be summed.

    >>> import numpy as np
    >>> central_moments(np.array([1.0, 2.0, 6.0]), 2)
    (3.0, 0.0, 14.0)
    """
    if not len(values):
        return None
    limit = 2.0 ** (LARGEST // order)
    if not (np.maximum.reduce(values) <= limit and np.minimum.reduce(values) >= -limit):
        return None
    sample = values[:_ROWS]
    pivot = float(sample[-1])
    pivot += float(np.add.reduce(sample - pivot)) / len(sample)
    about = [0.0] * order
    for start in range(0, len(values), _CACHED):
        apart = values[start : start + _CACHED] - pivot
        power = apart
        for k in range(order):
            power = power * apart if k else apart
            about[k] = _added_in_turn(about[k], power)
    n = float(len(values))
    shift = about[0] / n
    moments = _moved(n, about, shift)[1:]
    return (*two_sum(pivot, shift), max(moments[0], 0.0), *moments[1:])


def _added_in_turn(total: float, terms: np.ndarray) -> float:
    """The total and all terms, each added to the sum of those before it, as `np.add.at` does."""
    if total:
        terms = np.concatenate(([total], terms))
    return float(np.add.accumulate(terms)[-1]) + 0.0


def _moved(n: Real, about: Sequence[Real], shift: Real) -> list[Real]:
    """Sums of powers about a point, from the first, moved to the point that lies `shift` higher."""
    first, second = about[0], about[1]
    out: list[Real] = [first - n * shift, second - shift * (2.0 * first - n * shift)]
    if len(about) > 2:
        third: Real = about[2] - shift * (3.0 * second - shift * (3.0 * first - n * shift))
        out.append(third)
    if len(about) > 3:
        inner: Real = 6.0 * second - shift * (4.0 * first - n * shift)
        fourth: Real = about[3] - shift * (4.0 * about[2] - shift * inner)
        out.append(fourth)
    return out


def _pivots(groups: Groups, values: np.ndarray) -> np.ndarray:
    """For each group a point among its values: the value itself if all are equal, else a point near the mean.

    The mean is that of the first rows. If groups have few rows, the pivot is one of the values.
    """
    pivots = np.zeros(groups.count)
    if groups.count * 8 > _ROWS:
        pivots[groups.codes] = values
        return pivots
    few, sample = Groups(groups.codes[:_ROWS], groups.count), values[:_ROWS]
    pivots[few.codes] = sample
    seen = few.sizes > 0
    pivots[seen] += sum_floats(few, sample - pivots[few.codes])[seen] / few.sizes[seen]
    if len(groups) > _ROWS and not seen.all():
        rows = np.flatnonzero(~seen[groups.codes])
        pivots[groups.codes[rows]] = values[rows]
    return pivots


def _sum_powers(
    groups: Groups, values: np.ndarray, pivots: np.ndarray, weights: np.ndarray | None, order: int
) -> list[np.ndarray]:
    """The sums of the powers, from the first, of the values about their groups' pivots; two powers in one pass."""
    sums = [np.zeros(groups.count, np.complex128) for _ in range((order + 1) // 2)]
    pairs = np.empty(min(_ROWS, len(values)), np.complex128)
    for start in range(0, len(values), _ROWS):
        part = slice(start, start + _ROWS)
        codes = groups.codes[part]
        terms = pairs[: len(codes)]
        apart = values[part] - pivots[codes]
        odd = apart if weights is None else apart * weights[part]
        square = np.square(apart) if order > 2 else apart
        for k, total in enumerate(sums):
            odd = odd * square if k else odd
            terms.real = odd
            np.multiply(odd, apart, out=terms.imag)
            np.add.at(total, codes, terms)
    return [part for total in sums for part in (total.real, total.imag)][:order]
