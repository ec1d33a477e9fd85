"""All values as a list: with their multiplicity, or each once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument
from .algebra import Accumulators, Capability
from .combiner import Combiner
from .compiled import CompiledCombiner
from .distinct_counts import SetFn, as_inputs, inputs_of, item_names
from .input_types import Input, expression, input_type
from .parts import Part
from .retractable import Retractable
from .rows.ordering import require_order
from .states.zset import ZSet
from .whole.ranks import list_kernel


@dataclass(frozen=True, repr=False)
class CollectList(Combiner):
    """All values of a column, or all rows of several columns, in their order, each as often as it came.

    Law: `CollectList(a + b)` is `CollectList(a)` and `CollectList(b)` as one sorted list. The state is a Z-set of the
    values; GROUP. A multiset has no order of arrival, so the list is sorted, and the result does not depend on the
    order of the rows. Null is ignored, as in Spark's `collect_list`. Rows of several columns are structs, in the order
    of their first column, then the next, with null first; a row with nulls is kept, as in Spark's
    `collect_list(struct(a, b))`. A list of one column counts as that column. NaN is above every number. No values give
    an empty list.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": [3, 1, 3, 2], "y": ["a", "b", None, "c"], "w": [1, 1, 1, -1]})
    >>> uc.aggregate(t, diff="w", values=uc.CollectList("x")).to_pylist()
    [{'values': [1, 3, 3]}]
    >>> uc.aggregate(t.slice(0, 3), rows=uc.CollectList(["x", "y"]))["rows"][0].as_py()
    [{'x': 1, 'y': 'b'}, {'x': 3, 'y': None}, {'x': 3, 'y': 'a'}]
    """

    input: Input | Sequence[Input]

    def __post_init__(self) -> None:
        object.__setattr__(self, "input", as_inputs(self.input, self))
        if isinstance(self.input, tuple):
            names = [_field_name(one) for one in self.input]
            if twice := [name for name in names if names.count(name) > 1]:
                raise InvalidArgument(f"CollectList(input) names column {twice[0]!r} twice: leave one of them out")

    @property
    def capability(self) -> Capability:
        return Capability.GROUP

    def of(self, *inputs: Input) -> Combiner:
        return replace(self, input=inputs)

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        columns = inputs_of(self.input)
        kinds = tuple(input_type(one, schema, self) for one in columns)
        for one, kind in zip(columns, kinds, strict=True):
            require_order(kind, self, one)
        whole = len(columns) > 1
        zset = ZSet(kinds, item_names(len(kinds)), nullable=(whole,) * len(kinds))
        output = kinds[0]
        if whole:
            output = pa.struct([(_field_name(one), kind) for one, kind in zip(columns, kinds, strict=True)])

        def finish(parts: Sequence[Accumulators]) -> pa.Array:
            items = zset.items(parts[0]).present()
            if whole:
                rows = pa.StructArray.from_arrays(list(items.columns), fields=list(output))
                items = replace(items, columns=(rows,))
            if (items.weights == 1).all():
                return items.sublist()
            return items.copies(np.arange(len(items.weights)), self)

        part = Part(zset, tuple(expression(one) for one in columns))
        kernel = None if whole else list_kernel(output, once=False)
        return CompiledCombiner(parts=(part,), finish=finish, output=pa.list_(output), whole=kernel)


def _field_name(input: Input) -> str:
    """The field of a column in a struct."""
    expr = expression(input)
    if expr.op != "col":
        raise InvalidArgument(
            f"CollectList(input) names the fields of rows by their columns, but {input!r} is no column: make it one "
            "with with_columns()"
        )
    return str(expr.args[0])


@dataclass(frozen=True, repr=False)
class CollectSet(Retractable):
    """The different values, in their order.

    Law: `CollectSet(a + b)` is the union of `CollectSet(a)` and `CollectSet(b)`. With `retractable=True` (the default)
    the state is a Z-set of the values; GROUP. With `retractable=False` it is the set of the values; MONOID. Null is
    ignored, as in Spark's `collect_set`. NaN is one value, above every number. No values give an empty list.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": ["b", "a", "b", None]})
    >>> uc.aggregate(t, values=uc.CollectSet("x")).to_pylist()
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

        whole = list_kernel(kind, once=True)
        return CompiledCombiner(
            parts=(Part(fn, (expression(self.input),)),), finish=finish, output=pa.list_(kind), whole=whole
        )
