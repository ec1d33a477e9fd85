"""Approximate quantiles in a state that does not grow with the number of values: a sketch of logarithmic bins.

The sketch is DDSketch of Masson, Rim and Lee ("DDSketch: a fast and fully-mergeable quantile sketch with
relative-error guarantees", VLDB 2019). A value belongs to the bin between two neighbouring powers of gamma, and
differs from the middle of that bin by at most the relative error. The bins are a Z-set, so values can be retracted
exactly.

The ends of the bins must be the same on every machine: otherwise a retraction on another machine could change
another bin. So the logarithm is not that of the processor. Between two powers of 2 it is the cubic of the paper's
interpolated mappings, which needs additions and multiplications alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from ...errors import InvalidArgument
from ..algebra import Accumulators, Capability, CombineFn, Weights
from ..combiner import Combiner
from ..compiled import CompiledCombiner
from ..input_types import Input, expression, input_type, is_ordered, refuse
from ..parts import Part
from ..rows.columns import Column
from ..rows.groups import Groups
from ..states.zset import ZSet

_LEAST_ERROR = 1e-6
_LOWEST_EXPONENT = -1074
_INFINITY = np.int32(2**31 - 2)
_NAN = np.int32(2**31 - 1)
_ZSET = ZSet((pa.int32(),), ("bin",))


@dataclass(frozen=True)
class LogBinsFn(CombineFn):
    """Z-sets of the bins of numbers; bins are numbered in the order of their values, and zero has bin 0."""

    error: float
    label = "bins"

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return _ZSET.fields

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        column = columns[0]
        bins = column.memo(f"bins {self.error!r}", lambda: Column(pa.array(self.bins(_floats(column)))))
        return _ZSET.add(groups, bins, weights=weights)

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        return _ZSET.merge(groups, accumulators)

    def negate(self, accumulators: Accumulators) -> Accumulators:
        return _ZSET.negate(accumulators)

    @property
    def per_octave(self) -> int:
        """The number of bins for a factor of 2; the cubic climbs by at least 10/7 of the logarithm."""
        # A millionth is left for the rounding of the steps below.
        error = self.error * (1 - 1e-6)
        return math.ceil(0.7 / (math.log1p(error) - math.log1p(-error)))

    def bins(self, values: np.ndarray) -> np.ndarray:
        """The bin of each float64."""
        mantissa, exponent = np.frexp(np.abs(values))
        part = 2.0 * mantissa - 1.0
        cubic = ((6.0 / 35.0 * part - 0.6) * part + 10.0 / 7.0) * part
        octaves = (exponent - 1 - _LOWEST_EXPONENT) + cubic
        with np.errstate(invalid="ignore"):
            place = np.floor(octaves * self.per_octave) + 1.0
            signed = np.where(values == 0, 0.0, np.copysign(place, values))
        bins = np.where(np.isfinite(values), signed, 0.0).astype(np.int32)
        for special, chosen in (
            (_INFINITY, values == np.inf),
            (-_INFINITY, values == -np.inf),
            (_NAN, np.isnan(values)),
        ):
            bins[chosen] = special
        return bins

    def middles(self, bins: np.ndarray) -> np.ndarray:
        """For each bin the value whose relative distance to both ends is the same."""
        place = np.abs(bins.astype(np.int64))
        (low, octave), (high, above) = self._edge(place - 1), self._edge(place)
        ratio = np.ldexp(high / low, above - octave)
        with np.errstate(over="ignore"):
            size = np.ldexp(low * (2.0 * ratio / (1.0 + ratio)), octave)
        # The last bin ends above the greatest float.
        size = np.minimum(size, np.finfo(np.float64).max)
        values = np.where(bins == 0, 0.0, np.copysign(size, bins))
        values[bins == _INFINITY], values[bins == -_INFINITY], values[bins == _NAN] = np.inf, -np.inf, np.nan
        return values

    def _edge(self, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The upper end of the bin at each place, as a number from 1 to 2 and a power of 2."""
        octaves, rest = np.divmod(place, self.per_octave)
        wanted = rest / self.per_octave
        part = wanted.copy()
        for _ in range(6):
            climb = (18.0 / 35.0 * part - 1.2) * part + 10.0 / 7.0
            part -= (((6.0 / 35.0 * part - 0.6) * part + 10.0 / 7.0) * part - wanted) / climb
        return 1.0 + part, octaves + _LOWEST_EXPONENT


@dataclass(frozen=True, repr=False)
class ApproxQuantiles(Combiner):
    """Several quantiles, each with a bounded relative error, from a state of bounded size.

    Law: the result is a function of the counts of the bins, and those add up. The state is a Z-set of the bins of a
    DDSketch (the module names the source); GROUP. The exact value for q is the one at place floor(q (n - 1)) of the n
    sorted values, counted from 0, without interpolation. The result differs from it by at most `relative_error` times
    its size. (The result for a value below 2.3e-308, which is not a normal float, may differ by one more of its last
    digit.) By default there are at most 36 bins for each factor of two between the least and the greatest size, so
    some hundreds in practice. Numbers and decimals give float64. Null is ignored. An infinity is a value like
    another. NaN is above every number. No values give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"ms": [1.0, 2.0, 4.0, 1000.0, 9e9], "w": [1, 1, 1, 1, -1]})
    >>> out = uc.aggregate(t.slice(0, 4), about=uc.ApproxQuantiles("ms", [0, 0.5, 1]))
    >>> [round(value, 1) for value in out["about"][0].as_py()]
    [1.0, 2.0, 994.6]
    """

    input: Input
    q: Sequence[float]
    relative_error: float = field(default=0.01, kw_only=True)

    def __post_init__(self) -> None:
        parts = self.q
        if not is_ordered(parts) or not len(parts):
            raise InvalidArgument(
                f"ApproxQuantiles(q): q must be a list of parts such as [0.5, 0.99], but is {parts!r}"
            )
        for part in parts:
            if isinstance(part, bool) or not isinstance(part, int | float | np.number) or not 0 <= part <= 1:
                raise InvalidArgument(f"ApproxQuantiles(q): q must hold parts from 0 to 1, but holds {part!r}")
        object.__setattr__(self, "q", tuple(float(part) for part in parts))
        error = self.relative_error
        if isinstance(error, bool) or not isinstance(error, int | float) or not _LEAST_ERROR <= error < 1:
            raise InvalidArgument(
                f"ApproxQuantiles(relative_error): relative_error must be at least {_LEAST_ERROR} and below 1, "
                f"but is {error!r}"
            )

    @property
    def capability(self) -> Capability:
        return Capability.GROUP

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        kind = input_type(self.input, schema, self)
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            raise refuse(self, self.input, kind, "numbers")
        fn = LogBinsFn(float(self.relative_error))

        def finish(parts: Sequence[Accumulators]) -> pa.Array:
            items = _ZSET.items(parts[0]).present()
            ends = np.cumsum(items.weights)
            bounds = np.append(0, ends)[items.offsets]
            nonempty = np.diff(bounds) > 0
            places = np.empty((int(nonempty.sum()), len(self.q)), np.int64)
            for at, part in enumerate(self.q):
                last = np.diff(bounds)[nonempty] - 1
                # A float has 53 bits, so the product for a later rank can be after the last value.
                ranks = np.minimum(np.floor(last.astype(np.float64) * part).astype(np.int64), last)
                places[:, at] = np.searchsorted(ends, bounds[:-1][nonempty] + ranks, side="right")
            values = fn.middles(np.asarray(items.columns[0])[places.ravel()])
            lengths = np.append(0, np.cumsum(nonempty)) * len(self.q)
            offsets = pa.array(lengths, pa.int32(), mask=np.append(~nonempty, False))
            return pa.ListArray.from_arrays(offsets, pa.array(values, from_pandas=False))

        return CompiledCombiner(
            parts=(Part(fn, (expression(self.input),)),), finish=finish, output=pa.list_(pa.float64())
        )


def _floats(column: Column) -> np.ndarray:
    """A column of numbers as float64."""
    return np.asarray(column.array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
