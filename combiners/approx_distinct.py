"""Approximately how many different values, in a state of bounded size.

The sketch is HyperLogLog of Flajolet, Fusy, Gandouet and Meunier ("HyperLogLog: the analysis of a
near-optimal cardinality estimation algorithm", AofA 2007): some bits of a value's hash choose one of m
registers, the others give a rank that is k with probability 2**-k, and a register is the greatest rank
seen. A greatest rank cannot be taken back, so the retractable form counts how often each cell (register and
rank) came, in at most 64 m cells, whose greatest present ranks are the registers. The estimate from the
registers, which needs neither tables nor thresholds, is that of Ertl ("New cardinality estimation
algorithms for HyperLogLog sketches", arXiv:1702.01284, algorithm 6).

Few values are counted better by the cells: each tells whether it saw one value, two or more (see `rank_cells`), so that
only the fourth and further values of a cell have to be estimated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument
from .algebra import Accumulators
from .combiner import Combiner
from .compiled import CompiledCombiner
from .distinct import as_inputs, inputs_of
from .groups import Groups
from .hashing import require_hash, require_seed
from .inputs import Input, expression, input_type
from .parts import Part
from .rank_cells import RANKS, CellWeightsFn, RegistersFn, Seen, greatest, most_told_apart
from .retractable import Retractable

_LEAST_ERROR = 0.0021


@dataclass(frozen=True, repr=False)
class ApproxCountDistinct(Retractable):
    """About how many different values a column has, or how many different rows some columns have.

    Law: it is a function of the counts of (register, rank), and those add up. The standard error of the
    result, relative to the exact number, is at most `error`: two results of three are that close, 19 of 20
    within twice that. The m registers are the least power of two that is at least (1.04 / error) squared and 128,
    so 4,096 for the default. Up to about m / 2 values the standard error is only a tenth of `error`: with the default
    a thousand values are counted to within 1 %, fewer than a hundred exactly, but for one case in ten thousand.

    This holds for data that were not chosen against the `seed`: where somebody may choose values so that they share
    registers, take a seed that he does not know, such as `secrets.randbits(62)`, and keep it: accumulators of different
    seeds do not merge.

    With `retractable=True` (the default) a state of 20 bytes for each cell that is in use: as many as values up to
    m / 4, about m log2(n / m) + m of n values more, so 20 kB for a thousand values and 0.8 MB for a million: GROUP.
    With `retractable=False` 8 bytes a value up to about m / 2 of them, then 4 bytes a register, so at most 18 kB:
    MONOID, with the same results. Null is ignored, and so is a row with a null in any of several columns; NaN is one
    value, -0.0 equals 0.0. No values give 0. See this module for the sources.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": list(range(1000)) * 2})
    >>> uc.aggregate(t, n=uc.ApproxCountDistinct("x"), rough=uc.ApproxCountDistinct("x", 0.09)).to_pylist()
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
            raise InvalidArgument(f"error is at least {_LEAST_ERROR} and below 1, and {error!r} is not")

    @property
    def bits(self) -> int:
        """The logarithm of the number of registers."""
        # With fewer than 128 registers the estimate is worse than its formula.
        return max(math.ceil(2 * math.log2(1.04 / self.error)), 7)

    def of(self, *inputs: Input) -> Combiner:
        return replace(self, input=inputs)

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        given = inputs_of(self.input)
        for one in given:
            require_hash(input_type(one, schema, self), self, one)
        bits = self.bits
        fn = CellWeightsFn(bits, self.seed) if self.retractable else RegistersFn(bits, self.seed)

        def finish(parts: Sequence[Accumulators]) -> pa.Array:
            return pa.array(np.rint(counts_of(fn.seen(parts[0]), bits)).astype(np.int64))

        return CompiledCombiner((Part(fn, tuple(expression(one) for one in given)),), finish, pa.int64())


def counts_of(seen: Seen, bits: int) -> np.ndarray:
    """How many values each group saw, from its cells where they are few, else from its registers."""
    codes, count = seen.groups.codes, seen.groups.count
    unknown = np.bincount(codes[seen.values == 0], minlength=count)
    few = (unknown == 0) & (seen.groups.sizes <= most_told_apart(bits))
    counted = np.bincount(codes, seen.values, minlength=count)
    found = few_values(np.where(few, counted, 0.0), bits)
    if few.all():
        return found
    many = np.flatnonzero(~few)
    number = np.zeros(count, np.int64)
    number[many] = np.arange(len(many))
    rows = ~few[codes]
    found[many] = estimates(*greatest(Groups(number[codes[rows]], len(many)), seen.cells[rows]), bits)
    return found


def few_values(counted: np.ndarray, bits: int) -> np.ndarray:
    """How many values those are of which `counted` are told apart, up to three of each cell."""
    # Of n values a cell of rank k holds x of them, x being Poisson of mean n / m / 2**k: what is above 3 is added. All
    # together that is below n**4 / m**3 / 360, which a whole number does not show where it is below a half.
    some = np.flatnonzero(counted**4 > 90.0 * float(1 << bits) ** 3)
    shares = 0.5 ** np.arange(1, 31) / (1 << bits)
    total = counted[some]
    for _ in range(8):
        total = counted[some] + _left_out(total[:, None] * shares).sum(axis=1) * (1 << bits)
    found = counted.copy()
    found[some] = total
    return found


def _left_out(mean: np.ndarray) -> np.ndarray:
    """By how much a Poisson variable of this mean is above 3 on average."""
    series = mean**4 * (1 / 24 - mean * (1 / 40 - mean / 120))
    return np.where(mean < 0.05, series, mean - 3.0 + (3.0 + mean * (2.0 + mean / 2)) * np.exp(-mean))


def estimates(groups: Groups, ranks: np.ndarray, bits: int) -> np.ndarray:
    """How many values filled the registers of each group, from the registers that saw one."""
    size, top = 1 << bits, 65 - bits
    cells = np.bincount(groups.codes * (top + 1) + ranks % RANKS, minlength=groups.count * (top + 1))
    counts = cells.reshape(groups.count, top + 1).astype(np.float64)
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
