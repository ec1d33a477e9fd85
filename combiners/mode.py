"""The most frequent value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from .algebra import Accumulators, Capability
from .combiner import Combiner
from .compiled import CompiledCombiner
from .input_types import Input, expression, input_type
from .parts import Part
from .rows.ordering import require_order
from .states.zset import Items, ZSet
from .whole.frequencies import mode_kernel


@dataclass(frozen=True, repr=False)
class Mode(Combiner):
    """The most frequent value; the least of them if several values are most frequent.

    Law: the counts of the values add up, and `Mode` is the least value of the greatest count. The state is a Z-set of
    the values; GROUP. Null is ignored. NaN is one value, above every number. No values give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": ["b", "a", "b", "a", "c"]})
    >>> uc.aggregate(t, usual=uc.Mode("x")).to_pylist()
    [{'usual': 'a'}]
    """

    input: Input

    @property
    def capability(self) -> Capability:
        return Capability.GROUP

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        kind = input_type(self.input, schema, self)
        require_order(kind, self, self.input)
        zset = ZSet((kind,))

        def finish(parts: Sequence[Accumulators]) -> pa.Array:
            items = zset.items(parts[0]).present()
            return items.take(_heaviest(items))

        return CompiledCombiner(
            parts=(Part(zset, (expression(self.input),)),), finish=finish, output=kind, whole=mode_kernel(kind)
        )


def _heaviest(items: Items) -> np.ndarray:
    """The place of the first item of the greatest weight in each group; -1 for a group without items."""
    places = np.full(items.count, -1)
    sizes = np.diff(items.offsets)
    some = sizes > 0
    if some.any():
        greatest = np.maximum.reduceat(items.weights, items.offsets[:-1][some])
        heaviest = np.flatnonzero(items.weights == np.repeat(greatest, sizes[some]))
        places[some] = heaviest[np.searchsorted(heaviest, items.offsets[:-1][some])]
    return places
