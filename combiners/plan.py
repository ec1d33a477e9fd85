"""`Plan`: many combiners over one input in one pass, with equal parts, inputs and filters computed once."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from ..advice import combiner_for
from ..errors import InvalidArgument, UncombineError
from .combiner import Combiner
from .compiled import CompiledCombiner, CompiledPlan
from .expressions.expr import Expr
from .rows.plain_types import plain_schema


class Plan(CompiledPlan):
    """Named combiners compiled on a schema, as one thing to add, merge, uncombine and extract.

    `fields` are the accumulator columns of all the different parts, in the order of the parts.

    >>> import pyarrow as pa, uncombine as uc
    >>> schema = pa.schema({"x": pa.int64()})
    >>> plan = Plan({"total": uc.Sum("x"), "n": uc.Count("x"), "mean": uc.Mean("x")}, schema)
    >>> [field.name for field in plan.fields]
    ['0.sum.lo', '0.sum.hi', '1.count.count']
    """

    def __init__(self, combiners: Mapping[str, Combiner], schema: pa.Schema, append_only: bool = False) -> None:
        plain = plain_schema(schema)
        compiled: dict[str, CompiledCombiner] = {}
        for name, combiner in combiners.items():
            if not isinstance(combiner, Combiner):
                called = isinstance(combiner, type) and issubclass(combiner, Combiner)
                text = f"the class {combiner.__name__}: write {combiner.__name__}(...)" if called else repr(combiner)
                if name in KEY_NAMES:
                    text += f": write keys as by={combiner!r}"
                elif isinstance(combiner, Expr):
                    text += f": write uc.Sum({combiner!r}), or another combiner of it"
                elif not called and (ours := combiner_for(combiner)) is not None:
                    text += f": write {ours}"
                raise InvalidArgument(f"{name}= takes a combiner such as Sum('x'), but was given {text}")
            compiled[name] = _append_only(combiner, plain) if append_only else combiner.compile(plain)
        super().__init__(compiled, schema)


KEY_NAMES = ("group_by", "groupby", "keys", "key")
"""The options of other libraries that name the key columns."""


def _append_only(combiner: Combiner, schema: pa.Schema) -> CompiledCombiner:
    """The combiner compiled in its smallest form; an error names the form that the user wrote."""
    try:
        return combiner.append_only().compile(schema)
    except UncombineError as error:
        refused = error
    combiner.compile(schema)
    raise refused
