"""Exact quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidArgument
from .algebra import Accumulators
from .combiner import Combiner
from .compiled import ByRank, CompiledCombiner
from .floats.decimals import nearest_floats
from .input_types import Input, expression, input_type, is_ordered, refuse
from .parts import Part
from .retractable import Retractable
from .rows.columns import Column, numbers
from .rows.groups import Groups
from .rows.ordering import from_int64
from .states.bags import BagFn, Neighbours, RankedValues, neighbours
from .states.zset import Items, ZSet, consolidate
from .whole.ranks import quantile_kernel

_DAY = 86_400_000
_EXACT = np.uint64(1 << 53)
"""Integers up to this are exact as float64."""


@dataclass(frozen=True, repr=False)
class Median(Retractable):
    """The middle value, or the mean of the two middle values: `Quantile(0.5)`, by the same rules.

    Law and capability are those of `Quantile`. Null is ignored. NaN is above every number. No values give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": [1, 2, 9, 9], "w": [1, 1, 1, -1]})
    >>> uc.aggregate(t, diff="w", middle=uc.Median("x")).to_pylist()
    [{'middle': 1.5}]
    """

    input: Input
    retractable: bool = field(default=True, kw_only=True)

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        return _compile(self, self.input, schema, (0.5,), self.retractable)


@dataclass(frozen=True, repr=False)
class Quantile(Retractable):
    """The value at the part `q` of the sorted values: 0 gives the least value, 1 the greatest.

    Law: the result is a function of the multiset of the values, and multisets add up. With `retractable=True` (the
    default) the state is a Z-set of the values; GROUP. With `retractable=False` it is the values as they came, if that
    takes no more memory; MONOID. The result is exact, with the linear interpolation of Spark's `percentile` (number 7
    of Hyndman and Fan, "Sample quantiles in statistical packages", The American Statistician 50, 1996). Of n values it
    is the one at place q (n - 1), counted from 0; between two places it is `low + (high - low) * part`, as Spark 4.3
    computes it. Numbers and decimals give float64. Dates, times and durations keep their type, and an interpolated
    one is rounded down to the unit of the type, from a float64 if the two values are at most 2**53 units apart. Null is
    ignored. NaN is above every number. No values give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": [1, 2, 3, 10]})
    >>> uc.aggregate(t, high=uc.Quantile("x", 0.75)).to_pylist()
    [{'high': 4.75}]
    """

    input: Input
    q: float
    retractable: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "q", _part(self.q, self))

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        return _compile(self, self.input, schema, (self.q,), self.retractable)


@dataclass(frozen=True, repr=False)
class Quantiles(Retractable):
    """Several quantiles at once, as a list in the order of `q`.

    Law and capability are those of `Quantile`. Null is ignored. NaN is above every number. No values give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": [1, 2, 3, 10]})
    >>> uc.aggregate(t, some=uc.Quantiles("x", [0, 0.5, 1])).to_pylist()
    [{'some': [1.0, 2.5, 10.0]}]
    """

    input: Input
    q: Sequence[float]
    retractable: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        if not is_ordered(self.q) or not len(self.q):
            raise InvalidArgument(f"Quantiles(q): q must be a list of parts such as [0.25, 0.5], but is {self.q!r}")
        object.__setattr__(self, "q", tuple(_part(q, self) for q in self.q))

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        return _compile(self, self.input, schema, tuple(self.q), self.retractable)


def _part(q: object, who: object) -> float:
    try:
        value = float(q)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        value = np.nan
    if isinstance(q, str) or not 0.0 <= value <= 1.0:
        raise InvalidArgument(f"{type(who).__name__}(q): a part must be a number from 0 to 1, but is {q!r}")
    return value


def _compile(
    who: Combiner, input: Input, schema: pa.Schema, parts: tuple[float, ...], retractable: bool
) -> CompiledCombiner:
    kind = input_type(input, schema, who)
    timed = bool(pa.types.is_temporal(kind)) and not pa.types.is_interval(kind)
    if not (timed or pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal128(kind)):
        raise refuse(who, input, kind, "numbers or times")
    zset = ZSet((kind,))
    bag = BagFn(zset)
    listed = isinstance(who, Quantiles)

    def finish(accumulators: Sequence[Accumulators]) -> pa.Array:
        if retractable:
            return ranked(zset.items(accumulators[0]))
        return results(neighbours(bag, accumulators[0], parts))

    def at_once(groups: Groups, columns: Sequence[Column], weights: np.ndarray) -> pa.Array:
        return ranked(consolidate(groups, columns, weights, present=True))

    def ranked(items: Items) -> pa.Array:
        values = RankedValues.of(items)
        return results([values.neighbours(q) for q in parts])

    def results(pairs: list[Neighbours]) -> pa.Array:
        arrays = [_between(pair) for pair in pairs]
        if not listed:
            return arrays[0]
        count = len(arrays[0])
        turned = np.arange(count * len(parts)).reshape(len(parts), count).T.ravel()
        offsets = pa.array(np.arange(0, len(turned) + 1, len(parts)), pa.int32())
        missing = arrays[0].is_null()
        return pa.ListArray.from_arrays(offsets, pa.concat_arrays(arrays).take(pa.array(turned)), mask=missing)

    output = kind if timed else pa.float64()
    output = pa.list_(output) if listed else output
    part = Part(zset if retractable else bag, (expression(input),))
    whole = quantile_kernel(kind, output, parts, listed)
    by_rank = ByRank(quantiles=parts, finish=lambda found: results([Neighbours(*values) for values in found]))
    return CompiledCombiner(
        parts=(part,),
        finish=finish,
        output=output,
        at_once=at_once if retractable else None,
        whole=whole,
        by_rank=by_rank,
    )


def _between(pair: Neighbours) -> pa.Array:
    """The linear interpolation between two neighbours."""
    kind, missing = pair.lower.type, np.asarray(pair.lower.is_null())
    if pa.types.is_temporal(kind):
        # The difference may be more than an int64 holds, and never more than a uint64.
        low, high = (numbers(side).astype(np.int64) for side in (pair.lower, pair.upper))
        apart = high.view(np.uint64) - low.view(np.uint64)
        steps = np.floor(apart.astype(np.float64) * pair.part).astype(np.uint64)
        wide = apart > _EXACT
        if wide.any():
            steps[wide] = _scaled(apart[wide], np.broadcast_to(pair.part, wide.shape)[wide])
        between = low + steps.view(np.int64)
        # A date in milliseconds must still be a whole day.
        quantiles = from_int64(between - between % _DAY if pa.types.is_date64(kind) else between, kind)
        return pc.if_else(pa.array(missing), pa.scalar(None, kind), quantiles) if missing.any() else quantiles
    a, b = (nearest_floats(side) for side in (pair.lower, pair.upper))
    with np.errstate(invalid="ignore", over="ignore"):
        quantiles = np.where(a == b, a, a + (b - a) * pair.part)
    return pa.array(quantiles, mask=missing if missing.any() else None, from_pandas=False)


def _scaled(whole: np.ndarray, part: np.ndarray) -> np.ndarray:
    """The products of uint64 and floats from 0 to 1, rounded down, without rounding before."""
    mantissa, exponent = np.frexp(part)
    scaled = np.ldexp(mantissa, 53).astype(np.uint64)
    # The product of 117 bits, from halves of 32 bits, in two words.
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a, b, c, d = whole >> half, whole & low, scaled >> half, scaled & low
    middle = a * d + (b * d >> half)
    rest = b * c + (middle & low)
    upper = a * c + (middle >> half) + (rest >> half)
    lower = (rest << half) | (b * d & low)
    shift = 53 - exponent.astype(np.int64)
    near = np.minimum(shift, 63).astype(np.uint64)
    far = np.clip(shift - 64, 0, 63).astype(np.uint64)
    return np.where(shift < 64, (upper << (np.uint64(64) - near)) | (lower >> near), upper >> far)
