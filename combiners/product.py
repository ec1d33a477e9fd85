"""Products, kept as sums of logarithms, with counts of zeros and signs so that values can be retracted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from .algebra import Accumulators, Capability, CombineFn, Weights
from .combiner import Combiner
from .compiled import CompiledCombiner
from .counting import count_of
from .floats.double_double import Doubles
from .floats.log2 import exp2, log2
from .input_types import Input
from .numeric import number_input
from .parts import Part
from .rows.columns import Column
from .rows.group_sums import sum_counts, sum_weights
from .rows.groups import Groups
from .states.compensated_sum import error_bound, sum_pairs
from .states.vectors import floats, int64s
from .summing import SpecialsFn

_ROWS = 1 << 14


@dataclass(frozen=True)
class LogSumFn(CombineFn):
    """The counts of zero and of negative finite values, and the sum of the logarithms of the sizes of the others.

    The logarithms are to base two. The sum of their whole parts is an integer, and the sum of the rest is a pair of
    floats; each logarithm has an error of at most 2**-85.
    """

    capability = Capability.CANCELLATIVE
    label = "logs"

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        counts = (pa.field(name, pa.int64()) for name in ("zeros", "negatives", "exponent"))
        return (*counts, pa.field("log_high", pa.float64()), pa.field("log_low", pa.float64()))

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        values, special = columns[0].split_finite()
        zero = values == 0
        counted = zero if special is None else zero & ~special
        counts = [_count(groups, chosen, weights) for chosen in (counted, values < 0)]
        mantissas, exponents = np.frexp(np.where(zero, 1.0, np.abs(values)))
        logs = Doubles(np.empty(len(values)), np.empty(len(values)))
        for start in range(0, len(values), _ROWS):
            part = slice(start, start + _ROWS)
            some = log2(mantissas[part] * 2.0)
            logs.high[part], logs.low[part] = some.high, some.low
        whole = exponents.astype(np.int64) - 1
        exponent = sum_counts(groups, whole, weights)
        return _packed([*counts, exponent], sum_pairs(groups, logs, weights))

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        counts = [sum_counts(groups, int64s(column)) for column in accumulators[:3]]
        return _packed(counts, sum_pairs(groups, _pair(accumulators)))

    def negate(self, accumulators: Accumulators) -> Accumulators:
        return tuple(pa.array(0 - int64s(column)) for column in accumulators)


@dataclass(frozen=True, repr=False)
class Product(Combiner):
    """The product of the values, as a float.

    Law: `Product(a + b) = Product(a) * Product(b)`. The state is the number of zeros, the number of negative values and
    the sum of the logarithms of the sizes of the others, each of which adds up. CANCELLATIVE: the logarithm is within
    `n * 2**-70` for up to a thousand values, so the result is nearly always correctly rounded. If a zero is
    retracted, the result is the product of the others. A zero gives zero, and a product outside the range of floats is
    infinite or zero. Null is ignored. NaN, and an infinity together with a zero, give NaN and can be retracted. No
    values give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": [2.0, 0.0, -3.5, 0.0], "w": [1, 1, 1, -1]})
    >>> uc.aggregate(t, product=uc.Product("x")).to_pylist()
    [{'product': 0.0}]
    >>> uc.aggregate(t, diff="w", product=uc.Product("x")).to_pylist()
    [{'product': -7.0}]
    """

    input: Input

    @property
    def capability(self) -> Capability:
        return Capability.CANCELLATIVE

    def tolerance(self, magnitudes: Sequence[float], count: int) -> float:
        with np.errstate(over="ignore"):
            largest = float(np.prod([max(m, 1.0) for m in magnitudes]))
        return largest * log_bound(count)

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        return CompiledCombiner(parts=log_parts(self, self.input, schema), finish=_finish_product, output=pa.float64())


def log_parts(who: Combiner, input: Input, schema: pa.Schema) -> tuple[Part, ...]:
    """The parts of combiners that multiply: the count, the logarithms, and the counts of NaN and infinities."""
    expr = number_input(who, input, schema)
    return count_of(expr), Part(LogSumFn(), (expr,)), Part(SpecialsFn(), (expr,))


def log_bound(count: int) -> float:
    """The greatest relative error of a result that is made of a sum of `count` logarithms."""
    return error_bound(count, 1.0) + count * 2.0**-85 + 2.0**-52


def log_mean(logs: Accumulators, counts: np.ndarray) -> np.ndarray:
    """Two to the power of the mean of the logarithms."""
    n = np.where(counts == 0, 1, counts)
    whole, rest = np.divmod(int64s(logs[2]), n)
    return exp2(whole, (_pair(logs) + rest.astype(np.float64)) / n.astype(np.float64))


def _finish_product(parts: Sequence[Accumulators]) -> pa.Array:
    (counts,), logs, specials = parts
    zeros, negatives, exponent = (int64s(column) for column in logs[:3])
    nan, inf, minus_inf = (int64s(column) for column in specials)
    result = np.where(zeros > 0, 0.0, exp2(exponent, _pair(logs)))
    infinite = (inf > 0) | (minus_inf > 0)
    result[infinite] = np.inf
    result = np.where((negatives + minus_inf) & 1, -result, result) + 0.0
    result[(nan > 0) | (infinite & (zeros > 0))] = np.nan
    return pa.array(result, mask=int64s(counts) == 0, from_pandas=False)


def _count(groups: Groups, chosen: np.ndarray, weights: Weights) -> np.ndarray:
    rows = np.flatnonzero(chosen)
    return sum_weights(groups.take(rows), None if weights is None else weights[rows])


def _pair(accumulators: Accumulators) -> Doubles:
    return Doubles(floats(accumulators[3]), floats(accumulators[4]))


def _packed(counts: Sequence[np.ndarray], logs: Doubles) -> Accumulators:
    return tuple(pa.array(column) for column in (*counts, logs.high, logs.low))
