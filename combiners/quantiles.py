"""Exact quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument
from .algebra import Accumulators, Capability
from .columns import numbers
from .combiner import Combiner, Input, Lowered, Part, expression, input_type, refuse
from .ordering import from_int64
from .zset import Items, ZSet


@dataclass(frozen=True, repr=False)
class Median(Combiner):
    """The value in the middle, or half way between the two there: `Quantile(0.5)`, by the same rules.

    Law: as `Quantile`. Capability GROUP: a Z-set of the values. Null is ignored, NaN is above every number;
    no values give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": [1, 2, 9, 9], "w": [1, 1, 1, -1]})
    >>> uc.aggregate(t, diff="w", middle=uc.Median("x")).to_pylist()
    [{'middle': 1.5}]
    """

    input: Input

    @property
    def capability(self) -> Capability:
        return Capability.GROUP

    def lower(self, schema: pa.Schema) -> Lowered:
        return _lower(self, self.input, schema, (0.5,), listed=False)


@dataclass(frozen=True, repr=False)
class Quantile(Combiner):
    """The value at the part `q` of the way through the values in their order: 0 the least, 1 the greatest.

    Law: it is a function of the multiset of the values, and those add up. Capability GROUP: a Z-set of the
    values. Exact, with the linear interpolation of Spark's `percentile` (number 7 of Hyndman and Fan,
    "Sample quantiles in statistical packages", The American Statistician 50, 1996): of n values the one at
    place q (n - 1), counted from 0, or between its neighbours in proportion. Numbers, decimals among them,
    give float64. Dates, times and durations keep their type; what falls between two is rounded down to the
    type's unit. Null is ignored, NaN is above every number; no values give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> uc.aggregate(pa.table({"x": [1, 2, 3, 10]}), high=uc.Quantile("x", 0.75)).to_pylist()
    [{'high': 4.75}]
    """

    input: Input
    q: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "q", _part(self.q, self))

    @property
    def capability(self) -> Capability:
        return Capability.GROUP

    def lower(self, schema: pa.Schema) -> Lowered:
        return _lower(self, self.input, schema, (self.q,), listed=False)


@dataclass(frozen=True, repr=False)
class Quantiles(Combiner):
    """Several quantiles at once, as a list in the order of `q`.

    Law: as `Quantile`. Capability GROUP: a Z-set of the values. Null is ignored, NaN is above every number;
    no values give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> uc.aggregate(pa.table({"x": [1, 2, 3, 10]}), some=uc.Quantiles("x", [0, 0.5, 1])).to_pylist()
    [{'some': [1.0, 2.5, 10.0]}]
    """

    input: Input
    q: Sequence[float]

    def __post_init__(self) -> None:
        if isinstance(self.q, str | int | float) or not len(self.q):
            raise InvalidArgument(f"Quantiles takes a list of parts such as [0.25, 0.5], not {self.q!r}")
        object.__setattr__(self, "q", tuple(_part(q, self) for q in self.q))

    @property
    def capability(self) -> Capability:
        return Capability.GROUP

    def lower(self, schema: pa.Schema) -> Lowered:
        return _lower(self, self.input, schema, tuple(self.q), listed=True)


def _part(q: object, who: object) -> float:
    try:
        value = float(q)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        value = np.nan
    if isinstance(q, str) or not 0.0 <= value <= 1.0:
        raise InvalidArgument(f"{type(who).__name__} takes parts from 0 to 1, and {q!r} is not one")
    return value


def _lower(who: Combiner, given: Input, schema: pa.Schema, parts: tuple[float, ...], listed: bool) -> Lowered:
    kind = input_type(given, schema, who)
    timed = bool(pa.types.is_temporal(kind)) and not pa.types.is_interval(kind)
    if not (timed or pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal128(kind)):
        raise refuse(who, given, kind, "numbers or times")
    zset = ZSet((kind,))

    def finish(accumulators: Sequence[Accumulators]) -> pa.Array:
        ranked = Ranked.of(zset.items(accumulators[0]).present())
        found = [ranked.quantile(q) for q in parts]
        if listed:
            count = len(found[0])
            turned = np.arange(count * len(parts)).reshape(len(parts), count).T.ravel()
            offsets = np.arange(0, len(turned) + 1, len(parts), dtype=np.int32)
            results = pa.ListArray.from_arrays(
                pa.array(offsets), pa.concat_arrays(found).take(pa.array(turned))
            )
        else:
            (results,) = found
        known = ranked.known
        return results if known.all() else results.take(pa.array(np.cumsum(known) - 1, mask=~known))

    output = kind if timed else pa.float64()
    return Lowered((Part(zset, (expression(given),)),), finish, pa.list_(output) if listed else output)


@dataclass(frozen=True)
class Ranked:
    """Z-sets as sorted lists of values that are never written out."""

    values: pa.Array
    ends: np.ndarray | None
    """How many values there are up to the end of each item; None where every item is one."""
    before: np.ndarray
    counts: np.ndarray
    known: np.ndarray

    @classmethod
    def of(cls, items: Items) -> Ranked:
        """The values of the groups that have some; `known` says which those are."""
        weights, bounds = items.weights, items.offsets
        if (weights == 1).all():
            ends = None
        else:
            # Sums past int64 are rare and must not wrap, so they are left to Python's integers.
            ends = np.cumsum(weights if weights.sum(dtype=np.float64) < 2.0**62 else weights.astype(object))
            bounds = np.append(0, ends)[bounds]
        counts = np.diff(bounds)
        known = counts > 0
        return cls(items.columns[0], ends, bounds[:-1][known], counts[known], known)

    def quantile(self, q: float) -> pa.Array:
        """The quantile of each group that has values."""
        place = (self.counts - 1).astype(np.float64) * q
        low = np.floor(place)
        part = place - low
        lower = self._places(low)
        upper = self._places(np.ceil(place))
        kind = self.values.type
        if pa.types.is_temporal(kind):
            return from_int64(
                _between_times(numbers(self._take(lower)), numbers(self._take(upper)), part), kind
            )
        a, b = self._floats(lower), self._floats(upper)
        with np.errstate(invalid="ignore", over="ignore"):
            return pa.array(np.where(a == b, a, (1.0 - part) * a + part * b), from_pandas=False)

    def _places(self, ranks: np.ndarray) -> np.ndarray:
        if self.ends is None:
            return self.before + ranks.astype(np.int64)
        wanted = ranks.astype(np.int64)
        return np.searchsorted(self.ends, self.before + wanted, side="right")

    def _take(self, places: np.ndarray) -> pa.Array:
        return self.values.take(pa.array(places))

    def _floats(self, places: np.ndarray) -> np.ndarray:
        return np.asarray(self._take(places).cast(pa.float64(), safe=False))


def _between_times(low: np.ndarray, high: np.ndarray, part: np.ndarray) -> np.ndarray:
    """`low + part * (high - low)` rounded down, where the difference may be more than an int64."""
    apart = high.astype(np.int64).view(np.uint64) - low.astype(np.int64).view(np.uint64)
    return low + np.floor(apart.astype(np.float64) * part).astype(np.uint64).view(np.int64)
