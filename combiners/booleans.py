"""Booleans and bits: the and and the or of booleans, the exclusive or of integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from .algebra import Accumulators, Capability, CombineFn, Weights
from .combiner import Combiner
from .compiled import CompiledCombiner
from .counting import CountFn, count_of
from .input_types import Input, expression, input_type, refuse
from .parts import Part
from .rows.columns import Column
from .rows.groups import Groups
from .states.vectors import int64s


@dataclass(frozen=True, repr=False)
class _Bool(Combiner):
    input: Input

    @property
    def capability(self) -> Capability:
        return Capability.GROUP

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        kind = input_type(self.input, schema, self)
        if not pa.types.is_boolean(kind):
            raise refuse(self, self.input, kind, "a boolean column")
        parts = (count_of(self.input), Part(fn=CountFn(), inputs=(), where=expression(self.input)))

        def finish(parts: Sequence[Accumulators]) -> pa.Array:
            total, true = (int64s(part[0]) for part in parts)
            some_true, some_false = true > 0, total > true
            return pa.array(self._decide(some_true, some_false), mask=~(some_true | some_false))

        return CompiledCombiner(parts=parts, finish=finish, output=pa.bool_())

    def _decide(self, some_true: np.ndarray, some_false: np.ndarray) -> np.ndarray:
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class BoolAnd(_Bool):
    """True if all values are true.

    Law: `BoolAnd(a + b) = BoolAnd(a) and BoolAnd(b)`. The state is two counts, of the values and of the true values,
    and both add up; GROUP. Null is ignored, as in Spark's `bool_and`. No values give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"ok": [True, False, False], "w": [1, 1, -1]})
    >>> uc.aggregate(t, diff="w", all=uc.BoolAnd("ok")).to_pylist()
    [{'all': True}]
    """

    def _decide(self, some_true: np.ndarray, some_false: np.ndarray) -> np.ndarray:
        return ~some_false


@dataclass(frozen=True, repr=False)
class BoolOr(_Bool):
    """True if any value is true.

    Law: `BoolOr(a + b) = BoolOr(a) or BoolOr(b)`. The state is two counts, of the values and of the true values, and
    both add up; GROUP. Null is ignored, as in Spark's `bool_or`. No values give null.

    >>> import pyarrow as pa, uncombine as uc
    >>> uc.aggregate(pa.table({"ok": [None, False]}), any=uc.BoolOr("ok")).to_pylist()
    [{'any': False}]
    """

    def _decide(self, some_true: np.ndarray, some_false: np.ndarray) -> np.ndarray:
        return some_true


@dataclass(frozen=True)
class BitXorFn(CombineFn):
    """The exclusive or of the rows of odd weight; in this group each element is its own inverse."""

    label = "xor"

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return (pa.field("bits", pa.int64()),)

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        bits = columns[0].values
        bits = bits.view(np.int64) if bits.dtype == np.uint64 else bits.astype(np.int64, copy=False)
        return _xor(groups, bits if weights is None else np.where(weights & 1, bits, 0))

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        return _xor(groups, int64s(accumulators[0]))

    def negate(self, accumulators: Accumulators) -> Accumulators:
        return accumulators


def _xor(groups: Groups, bits: np.ndarray) -> Accumulators:
    total = np.zeros(groups.count, np.int64)
    np.bitwise_xor.at(total, groups.codes, bits)
    return (pa.array(total),)


@dataclass(frozen=True, repr=False)
class BitXor(Combiner):
    """The bitwise exclusive or of integers.

    Law: `BitXor(a + b) = BitXor(a) ^ BitXor(b)`; a value that comes twice, or is retracted, cancels itself.
    Capability GROUP. The result has the type of the column. Null is ignored, as in Spark's `bit_xor`. No values give
    null.

    >>> import pyarrow as pa, uncombine as uc
    >>> uc.aggregate(pa.table({"x": [6, 3, 3]}), bits=uc.BitXor("x")).to_pylist()
    [{'bits': 6}]
    """

    input: Input

    @property
    def capability(self) -> Capability:
        return Capability.GROUP

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        kind = input_type(self.input, schema, self)
        if not pa.types.is_integer(kind):
            raise refuse(self, self.input, kind, "integers")

        def finish(parts: Sequence[Accumulators]) -> pa.Array:
            bits = int64s(parts[0][0])
            missing = int64s(parts[1][0]) == 0
            return pa.array(bits.astype(kind.to_pandas_dtype()), kind, mask=missing)

        return CompiledCombiner(
            parts=(Part(BitXorFn(), (expression(self.input),)), count_of(self.input)), finish=finish, output=kind
        )
