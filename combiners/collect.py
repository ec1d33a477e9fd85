"""All values as a list: with their multiplicity, or each once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from .algebra import Accumulators, Capability
from .combiner import Combiner
from .compiled import CompiledCombiner
from .distinct import SetFn
from .inputs import Input, expression, input_type
from .parts import Part
from .retractable import Retractable
from .rows.ordering import require_order
from .states.zset import ZSet


@dataclass(frozen=True, repr=False)
class CollectList(Combiner):
    """All values, in their order, each as often as it came.

    Law: `CollectList(a + b)` is `CollectList(a)` and `CollectList(b)` as one sorted list. The state is a Z-set of the
    values; GROUP. A multiset has no order of arrival, so the list is sorted, and the result does not depend on the
    order of the rows. Null is ignored, as in Spark's `collect_list`. NaN is above every number. No values give an
    empty list.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": [3, 1, 3, 2], "w": [1, 1, 1, -1]})
    >>> uc.aggregate(t, diff="w", values=uc.CollectList("x")).to_pylist()
    [{'values': [1, 3, 3]}]
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
            held = zset.items(parts[0]).present()
            if (held.weights == 1).all():
                return held.sublist()
            return held.copies(np.arange(len(held.weights)), self)

        return CompiledCombiner((Part(zset, (expression(self.input),)),), finish, pa.list_(kind))


@dataclass(frozen=True, repr=False)
class CollectSet(Retractable):
    """The different values, in their order.

    Law: `CollectSet(a + b)` is the union of `CollectSet(a)` and `CollectSet(b)`. With `retractable=True` (the default)
    the state is a Z-set of the values; GROUP. With `retractable=False` it is the set of the values; MONOID. Null is
    ignored, as in Spark's `collect_set`. NaN is one value, above every number. No values give an empty list.

    >>> import pyarrow as pa, uncombine as uc
    >>> uc.aggregate(pa.table({"x": ["b", "a", "b", None]}), values=uc.CollectSet("x")).to_pylist()
    [{'values': ['a', 'b']}]
    """

    input: Input
    retractable: bool = field(default=True, kw_only=True)

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        kind = input_type(self.input, schema, self)
        require_order(kind, self, self.input)
        fn = ZSet((kind,)) if self.retractable else SetFn((kind,))

        def finish(parts: Sequence[Accumulators]) -> pa.Array:
            return fn.items(parts[0]).present().sublist()

        return CompiledCombiner((Part(fn, (expression(self.input),)),), finish, pa.list_(kind))
