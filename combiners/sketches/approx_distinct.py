"""Approximate counts of different values, in a state of bounded size.

The sketch is HyperLogLog of Flajolet, Fusy, Gandouet and Meunier ("HyperLogLog: the analysis of a
near-optimal cardinality estimation algorithm", AofA 2007): some bits of a value's hash choose one of m
registers, the other bits give a rank that is k with probability 2**-k, and a register holds the greatest rank
of its values. A greatest rank cannot be retracted. So the retractable form counts how often each bucket (register
and rank) came, in at most 64 m buckets; the registers are the greatest ranks of positive count. The estimate from
the registers is that of Ertl ("New cardinality estimation algorithms for HyperLogLog sketches",
arXiv:1702.01284, algorithm 6), which needs neither tables nor thresholds.

Buckets count a small number of values better than registers do. Each bucket tells one, two and more values apart (see
`rank_buckets`), so only the fourth and further values of a bucket have to be estimated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from ...errors import InvalidArgument
from ..algebra import Accumulators
from ..combiner import Combiner
from ..compiled import CompiledCombiner
from ..distinct_counts import as_inputs, inputs_of
from ..input_types import Input, expression, input_type
from ..parts import Part
from ..retractable import Retractable
from ..rows.groups import Groups
from ..rows.hashing import require_hash, require_seed
from .rank_buckets import RANKS, BucketCounts, BucketWeightsFn, RegistersFn, greatest, most_told_apart

_LEAST_ERROR = 0.0021


@dataclass(frozen=True, repr=False)
class ApproxCountDistinct(Retractable):
    """The approximate number of different values of a column, or of different rows of several columns.

    Law: the result is a function of the counts of (register, rank), and those add up. The standard error of the
    result, relative to the exact number, is at most `error`: two results of three are that close, and 19 of 20
    are within twice that. The number of registers m is the least power of two that is at least 128 and at least
    (1.04 / error) squared, so 4,096 by default. Up to about m / 2 values the standard error is only a tenth of
    `error`. By default a thousand values are counted to within 1 %, and fewer than a hundred are counted exactly,
    except in one case of ten thousand.

    The error holds for data that nobody chose against the `seed`. If somebody may choose values that share registers,
    pass a secret seed, such as `secrets.randbits(62)`, and keep it: accumulators of different seeds do not merge.

    With `retractable=True` (the default) the state has 20 bytes for each used bucket; GROUP. Up to m / 4 values use one
    bucket each, and n values above that use about m log2(n / m) + m buckets: 20 kB for a thousand values, 0.8 MB for a
    million. With `retractable=False` the state has 8 bytes a value up to about m / 2 values, then 4 bytes a register,
    at most 18 kB; MONOID, with the same results. Null is ignored, and so is a row with a null in one of several
    columns. NaN is one value, and -0.0 equals 0.0. No values give 0. The module names the sources.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": list(range(1000)) * 2})
    >>> counts = {"n": uc.ApproxCountDistinct("x"), "rough": uc.ApproxCountDistinct("x", 0.09)}
    >>> uc.aggregate(t, **counts).to_pylist()
    [{'n': 1000, 'rough': 966}]
    """

    input: Input | Sequence[Input]
    error: float = 0.02
    seed: int = field(default=0, kw_only=True)
    retractable: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        require_seed(self.seed, "ApproxCountDistinct")
        object.__setattr__(self, "input", as_inputs(self.input, self))
        error = self.error
        if isinstance(error, bool) or not isinstance(error, int | float) or not _LEAST_ERROR <= error < 1:
            raise InvalidArgument(
                f"ApproxCountDistinct(error): error must be at least {_LEAST_ERROR} and below 1, but is {error!r}"
            )

    @property
    def bits(self) -> int:
        """The logarithm of the number of registers."""
        # With fewer than 128 registers the estimate is worse than its formula.
        return max(math.ceil(2 * math.log2(1.04 / self.error)), 7)

    def of(self, *inputs: Input) -> Combiner:
        return replace(self, input=inputs)

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        inputs = inputs_of(self.input)
        for one in inputs:
            require_hash(input_type(one, schema, self), self, one)
        bits = self.bits
        fn = BucketWeightsFn(bits, self.seed) if self.retractable else RegistersFn(bits, self.seed)

        def finish(parts: Sequence[Accumulators]) -> pa.Array:
            return pa.array(np.rint(counts_of(fn.bucket_counts(parts[0]), bits)).astype(np.int64))

        return CompiledCombiner(
            parts=(Part(fn, tuple(expression(one) for one in inputs)),), finish=finish, output=pa.int64()
        )


def counts_of(tally: BucketCounts, bits: int) -> np.ndarray:
    """The number of values of each group: from its buckets if they are few, else from its registers."""
    codes, count = tally.groups.codes, tally.groups.count
    unknown = np.bincount(codes[tally.values == 0], minlength=count)
    few = (unknown == 0) & (tally.groups.sizes <= most_told_apart(bits))
    counted = np.bincount(codes, tally.values, minlength=count)
    result = few_values(np.where(few, counted, 0.0), bits)
    if few.all():
        return result
    many = np.flatnonzero(~few)
    number = np.zeros(count, np.int64)
    number[many] = np.arange(len(many))
    rows = ~few[codes]
    result[many] = estimates(*greatest(Groups(number[codes[rows]], len(many)), tally.buckets[rows]), bits)
    return result


def few_values(counted: np.ndarray, bits: int) -> np.ndarray:
    """The number of values, given that `counted` values were told apart, up to three in each bucket."""
    # Of n values a bucket of rank k holds x of them, where x is Poisson of mean n / m / 2**k. The excess over 3
    # is added. The sum of all excesses is below n**4 / m**3 / 360, which rounds to nothing while it is below a half.
    some = np.flatnonzero(counted**4 > 90.0 * float(1 << bits) ** 3)
    shares = 0.5 ** np.arange(1, 31) / (1 << bits)
    total = counted[some]
    for _ in range(8):
        total = counted[some] + _left_out(total[:, None] * shares).sum(axis=1) * (1 << bits)
    result = counted.copy()
    result[some] = total
    return result


def _left_out(mean: np.ndarray) -> np.ndarray:
    """The average excess over 3 of a Poisson variable of this mean."""
    series = mean**4 * (1 / 24 - mean * (1 / 40 - mean / 120))
    return np.where(mean < 0.05, series, mean - 3.0 + (3.0 + mean * (2.0 + mean / 2)) * np.exp(-mean))


def estimates(groups: Groups, ranks: np.ndarray, bits: int) -> np.ndarray:
    """The estimated number of values of each group, from its registers that are not empty."""
    size, top = 1 << bits, 65 - bits
    buckets = np.bincount(groups.codes * (top + 1) + ranks % RANKS, minlength=groups.count * (top + 1))
    counts = buckets.reshape(groups.count, top + 1).astype(np.float64)
    unseen = size - counts.sum(axis=1)
    total = size * _tau(1.0 - counts[:, top] / size)
    for rank in range(top - 1, 0, -1):
        total = 0.5 * (total + counts[:, rank])
    total += size * _sigma(unseen / size)
    return size * (size / (2.0 * math.log(2.0))) / total


def _sigma(x: np.ndarray) -> np.ndarray:
    """The sum x + x**2 + 2 x**4 + 4 x**8 + ...; infinite at 1."""
    whole = x == 1.0
    power = np.where(whole, 0.0, x)
    total, factor = power.copy(), 1.0
    while True:
        power = power * power
        step = power * factor
        if not (total + step != total).any():
            return np.where(whole, np.inf, total)
        total += step
        factor *= 2.0


def _tau(x: np.ndarray) -> np.ndarray:
    """A third of 1 - x - (1 - x**(1/2))**2 / 2 - (1 - x**(1/4))**2 / 4 - ...; zero at 0 and 1."""
    root = np.where(x == 0.0, 1.0, x)
    total, factor = 1.0 - root, 1.0
    while True:
        root = np.sqrt(root)
        factor *= 0.5
        step = (1.0 - root) ** 2 * factor
        if not (total - step != total).any():
            return total / 3.0
        total -= step
