"""Counts: of rows, of non-null values, of rows for which a predicate holds."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from ..errors import UnknownColumn
from .algebra import Accumulators, Capability, CombineFn, Weights
from .combiner import Combiner
from .compiled import CompiledCombiner
from .input_types import Input, expression, input_type, refuse
from .parts import Part
from .rows.columns import Column
from .rows.group_sums import sum_counts, sum_weights
from .rows.groups import Groups
from .states.vectors import int64s
from .whole.sums import count_rows


@dataclass(frozen=True)
class CountFn(CombineFn):
    """The sum of the weights of the rows."""

    label = "count"

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return (pa.field("count", pa.int64()),)

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        return (pa.array(sum_weights(groups, weights)),)

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        return (pa.array(sum_counts(groups, int64s(accumulators[0]))),)

    def negate(self, accumulators: Accumulators) -> Accumulators:
        return (pa.array(-int64s(accumulators[0])),)


@dataclass(frozen=True, repr=False)
class Count(Combiner):
    """The number of rows, or of the rows in which a column is not null.

    Law: `Count(a + b) = Count(a) + Count(b)`. Capability GROUP. If a column is named, its nulls are not counted; NaN is
    a value and counts. No rows give 0.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": [1, None, 3]})
    >>> uc.aggregate(t, rows=uc.Count(), known=uc.Count("x")).to_pylist()
    [{'rows': 3, 'known': 2}]
    """

    input: Input | None = None

    @property
    def capability(self) -> Capability:
        return Capability.GROUP

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        if isinstance(self.input, str) and self.input == "*" and "*" not in schema.names:
            raise UnknownColumn("Count('*') names a column '*', which the input does not have: write Count()", "*")
        if self.input is not None:
            input_type(self.input, schema, self)
        part = count_of() if self.input is None else count_of(self.input)
        return CompiledCombiner(
            parts=(part,), finish=lambda parts: parts[0][0], output=pa.int64(), additive=True, whole=count_rows
        )


@dataclass(frozen=True, repr=False)
class CountIf(Combiner):
    """The number of rows in which a boolean column or expression is true.

    Law: `CountIf(a + b) = CountIf(a) + CountIf(b)`. Capability GROUP. Null counts as false. No rows give 0.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": [1, 7, 9]})
    >>> uc.aggregate(t, big=uc.CountIf(uc.col("x") > 5)).to_pylist()
    [{'big': 2}]
    """

    input: Input

    @property
    def capability(self) -> Capability:
        return Capability.GROUP

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        kind = input_type(self.input, schema, self)
        if not pa.types.is_boolean(kind):
            raise refuse(self, self.input, kind, "a boolean column")
        part = Part(fn=CountFn(), inputs=(), where=expression(self.input))
        return CompiledCombiner(
            parts=(part,), finish=lambda parts: parts[0][0], output=pa.int64(), additive=True, whole=count_rows
        )


def count_of(*inputs: Input) -> Part:
    """The part that counts rows in which no input is null."""
    return Part(CountFn(), tuple(expression(input) for input in inputs))
