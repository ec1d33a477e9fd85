"""The vocabulary of the algebra: the promises of every combiner, and the capability to retract.

Write ``a + b`` for ``merge(a, b)``, ``0`` for the accumulator of no rows and ``-b`` for ``negate(b)``. Rows carry
integer weights; a retraction is a row of weight -1. Every `CombineFn` keeps

    0 + a = a                       (identity)
    (a + b) + c = a + (b + c)       (associativity)
    a + b = b + a                   (commutativity)
    add(rows) + add(more) = add(rows and more)            (add is a homomorphism)

and, by its `Capability`, also

    (a + b) - b = a                 GROUP: bit for bit; CANCELLATIVE: within its stated rounding bound
    add(rows, weight w) = w * add(rows)                   (linearity in the weight)
    add(rows) + add(rows, weight -1) = 0                  (retracted equals never seen)

A capability is a promise about every input that the combiner accepts, made before any data flows.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ..errors import NotRetractable
from .rows.alike import zeros
from .rows.columns import Column
from .rows.groups import Groups

Accumulators: TypeAlias = tuple[pa.Array, ...]
"""One Arrow array for each accumulator field; row i of all of them together is the accumulator of group i."""

Weights: TypeAlias = np.ndarray | None
"""int64 weights, one a row; None means that every row weighs 1."""


class Capability(enum.IntEnum):
    """The capability of a combiner to retract rows: not at all, within a bound, or exactly.

    >>> import uncombine as uc
    >>> uc.Count().capability is uc.Capability.GROUP
    True
    >>> uc.Capability.MONOID < uc.Capability.CANCELLATIVE < uc.Capability.GROUP
    True
    """

    MONOID = 1
    """Retracts nothing and has the smallest state; refused on an input that can carry retractions."""
    CANCELLATIVE = 2
    """Retracts rows that were added, up to a stated rounding bound."""
    GROUP = 3
    """Retracts rows exactly, in any order and also before they come; retracted equals never seen, bit for bit."""

    @property
    def words(self) -> str:
        """The rows that it retracts, in a few words.

        >>> import uncombine as uc
        >>> uc.Capability.GROUP.words
        'exactly'
        """
        return ("never", "rows that were added, within a tolerance", "exactly")[self - 1]


class CombineFn(ABC):
    """A combiner bound to its input types: four operations, each over all groups at once.

    `add` makes accumulators of rows, `merge` adds accumulators up, `uncombine` subtracts accumulators, and `extract`
    gives the results. No operation changes its arguments. Accumulators are plain Arrow columns: they may be stored,
    sliced, concatenated and read by anyone.

    A row whose input is null does not reach `add`, unless `nullable` names that input.

    >>> import numpy as np, pyarrow as pa, uncombine as uc
    >>> from uncombine.combiners.rows.groups import Groups
    >>> fn = uc.Sum("x").bind(pa.schema({"x": pa.int64()}))
    >>> state = fn.add(Groups(np.array([0, 1, 0]), 2), pa.array([1, 2, 4]))
    >>> fn.extract(state).to_pylist(), fn.extract(fn.uncombine(state, state)).to_pylist()
    ([5, 2], [None, None])
    """

    capability: Capability = Capability.GROUP
    additive: bool = False
    """True if results add up: the result of rows is the sum of the results of parts of them, as it is for a sum."""
    divisible: bool = False
    """True if an accumulator may grow with its rows, and a sum of accumulators is the same to the last bit in every
    order and however it is bracketed. A large one may then be kept in several parts that are added up when they are
    read."""
    remedy: str = "use its retractable form (retractable=True)"
    """The advice in the error when a MONOID is asked for a retraction."""

    @property
    @abstractmethod
    def fields(self) -> tuple[pa.Field, ...]:
        """The accumulator's columns."""

    @abstractmethod
    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        """The accumulators of the rows of each group, `weights[i]` copies of row i (negative: retracted)."""

    @abstractmethod
    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        """The sum of the accumulators in each group."""

    def negate(self, accumulators: Accumulators) -> Accumulators:
        """The inverse of each accumulator: `a + negate(a) = 0`; what `uncombine` takes from no rows, if it is given."""
        if self.capability is not Capability.MONOID:
            if type(self).uncombine is CombineFn.uncombine:
                raise NotRetractable(
                    f"{type(self).__name__} declares {self.capability.name} and cannot retract rows: give it negate() "
                    "or uncombine(), or declare MONOID"
                )
            return self.uncombine(self.zero(len(accumulators[0])), accumulators)
        raise NotRetractable(f"{type(self).__name__} is a MONOID combiner and cannot retract rows: {self.remedy}")

    def uncombine(self, accumulators: Accumulators, others: Accumulators) -> Accumulators:
        """`accumulators - others`, row by row."""
        negatives = self.negate(others)
        both = tuple(pa.concat_arrays([a, b]) for a, b in zip(accumulators, negatives, strict=True))
        return self.merge(Groups.repeated(len(accumulators[0]), 2), both)

    def extract(self, accumulators: Accumulators) -> pa.Array:
        """The result of each accumulator; null for most combiners where no rows are in it."""
        raise NotImplementedError(f"{type(self).__name__} is a part of other combiners and has no result of its own")

    def is_zero(self, accumulators: Accumulators) -> np.ndarray:
        """True for each accumulator of a GROUP that equals that of no rows: zero numbers and empty lists."""
        return np.logical_and.reduce([zeros(column) for column in accumulators])

    @property
    def nullable(self) -> tuple[bool, ...]:
        """True for each input whose nulls reach `add`; inputs after the last entry count as False."""
        return ()

    def zero(self, count: int) -> Accumulators:
        """`count` accumulators of no rows."""
        empty = tuple(pa.array([], field.type) for field in self.fields)
        return self.merge(Groups(np.empty(0, np.int64), count), empty)


def weakest(capabilities: Sequence[Capability]) -> Capability:
    """The capability of a whole with parts of these capabilities."""
    return Capability(min(capabilities, default=Capability.GROUP))
