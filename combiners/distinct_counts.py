"""Counts of different values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument
from .algebra import Accumulators, Capability, CombineFn, Weights
from .combiner import Combiner
from .compiled import CompiledCombiner
from .expressions.expr import Expr
from .input_types import Input, expression, input_type
from .parts import Part
from .retractable import Retractable
from .rows.columns import Column
from .rows.groups import Groups
from .rows.ordering import require_order
from .states.zset import Items, ZSet, alone, consolidate, flat_lists
from .whole.frequencies import distinct_kernel


@dataclass(frozen=True)
class SetFn(CombineFn):
    """The different items, in their order, without weights, so that nothing can be retracted."""

    types: tuple[pa.DataType, ...]
    names: tuple[str, ...] = ("item",)
    capability = Capability.MONOID
    divisible = True
    label = "set"

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        parts = [pa.field(n, t) for n, t in zip(self.names, self.types, strict=True)]
        return (pa.field("items", pa.list_(pa.struct(parts))),)

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        if weights is not None and not weights.all():
            mask = weights != 0
            groups, columns = groups.take(mask), tuple(c.take(mask) for c in columns)
        return self._pack(consolidate(groups, columns))

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        if not (groups.sizes > 1).any():
            return (alone(groups, accumulators[0]),)
        items = self.items(accumulators)
        item_groups = Groups(np.repeat(groups.codes, np.diff(items.offsets)), groups.count)
        return self._pack(consolidate(item_groups, [Column(c) for c in items.columns]))

    def items(self, accumulators: Accumulators) -> Items:
        """The flat items of an accumulator column, each of weight 1."""
        offsets, struct = flat_lists(accumulators[0])
        return Items(offsets=offsets, columns=tuple(struct.flatten()), weights=np.ones(len(struct), np.int64))

    def _pack(self, items: Items) -> Accumulators:
        kind = self.fields[0].type
        struct = pa.StructArray.from_arrays(list(items.columns), fields=list(kind.value_type))
        return (pa.ListArray.from_arrays(pa.array(items.offsets, pa.int32()), struct, type=kind),)


@dataclass(frozen=True, repr=False)
class CountDistinct(Retractable):
    """The number of different values of a column, or of different rows of several columns.

    Law: `CountDistinct` counts the values of positive weight, and weights add up. With `retractable=True` (the
    default) the state is a Z-set of the values; GROUP. With `retractable=False` it is the set of the values; MONOID.
    Null is ignored, and so is a row with a null in one of several columns, as in Spark's `count(DISTINCT a, b)`. NaN
    is one value, and -0.0 equals 0.0. No values give 0.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"a": [1, 1, 2, None], "b": ["x", "y", "x", "x"]})
    >>> pairs = uc.CountDistinct(["a", "b"])
    >>> uc.aggregate(t, a=uc.CountDistinct("a"), pairs=pairs).to_pylist()
    [{'a': 2, 'pairs': 3}]
    """

    input: Input | Sequence[Input]
    retractable: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "input", as_inputs(self.input, self))

    def of(self, *inputs: Input) -> Combiner:
        return replace(self, input=inputs)

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        inputs = inputs_of(self.input)
        kinds = tuple(input_type(one, schema, self) for one in inputs)
        for one, kind in zip(inputs, kinds, strict=True):
            require_order(kind, self, one)
        names = item_names(len(kinds))
        fn = ZSet(kinds, names) if self.retractable else SetFn(kinds, names)

        def finish(parts: Sequence[Accumulators]) -> pa.Array:
            return pa.array(np.diff(fn.items(parts[0]).present().offsets))

        whole = distinct_kernel(kinds[0]) if len(kinds) == 1 else None
        return CompiledCombiner(
            parts=(Part(fn, tuple(expression(one) for one in inputs)),),
            finish=finish,
            output=pa.int64(),
            whole=whole,
            counts_different=True,
        )


def as_inputs(inputs: Input | Sequence[Input], who: object) -> Input | tuple[Input, ...]:
    """A single input as it is, several inputs as a tuple, and a list of one as that one."""
    if isinstance(inputs, str | Expr):
        return inputs
    if not isinstance(inputs, list | tuple) or not inputs:
        raise InvalidArgument(f"{type(who).__name__} takes a column or a list of columns, but was given {inputs!r}")
    return inputs[0] if len(inputs) == 1 else tuple(inputs)


def inputs_of(inputs: Input | Sequence[Input]) -> tuple[Input, ...]:
    """The inputs that `as_inputs` made, as a tuple."""
    return inputs if isinstance(inputs, tuple) else (inputs,)


def item_names(count: int) -> tuple[str, ...]:
    """The names of an item's columns in an accumulator."""
    return ("item",) if count == 1 else tuple(f"item{i}" for i in range(count))
