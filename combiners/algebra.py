"""The vocabulary of the algebra: what every combiner promises, and how much of it can be taken back.

Write ``a + b`` for ``merge(a, b)``, ``0`` for the accumulator of no rows and ``-b`` for ``negate(b)``. Rows carry
integer weights; a retraction is a row of weight -1. Every `CombineFn` keeps

    0 + a = a                       (identity)
    (a + b) + c = a + (b + c)       (associativity)
    a + b = b + a                   (commutativity)
    add(rows) + add(more) = add(rows and more)            (add is a homomorphism)

and, by its `Capability`, also

    (a + b) - b = a                 GROUP: bit for bit; CANCELLATIVE: within its stated rounding bound
    add(rows, weight w) = w * add(rows)                   (linearity in the weight)
    add(rows) + add(rows, weight -1) = 0                  (taken back equals never seen)

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
from .alike import nothing
from .columns import Column
from .groups import Groups

Accumulators: TypeAlias = tuple[pa.Array, ...]
"""One Arrow array for each accumulator field; row i of all of them together is the accumulator of group i."""

Weights: TypeAlias = np.ndarray | None
"""int64 weights, one a row; None means that every row weighs 1."""


class Capability(enum.IntEnum):
    """How much of what went in can be taken out again.

    >>> import uncombine as uc
    >>> uc.Count().capability is uc.Capability.GROUP
    True
    >>> uc.Capability.MONOID < uc.Capability.CANCELLATIVE < uc.Capability.GROUP
    True
    """

    MONOID = 1
    """No way back, smallest state; refused on an input that can carry retractions."""
    CANCELLATIVE = 2
    """What was put in can be taken out, up to a stated rounding bound."""
    GROUP = 3
    """Exact in any order; negative multiplicities are legal; taken back equals never seen, bit for bit."""


class CombineFn(ABC):
    """A combiner bound to its input types: four operations, each over all groups at once.

    The life cycle is `add` on each batch of rows, `merge` of what the batches gave, `uncombine` of what is taken
    back, `extract` of the results. No operation changes its arguments; accumulators are plain Arrow columns that
    may be stored, sliced, concatenated and read by anyone.

    Null never reaches `add` in an input that `nullable` does not name: such rows are left out before.

    >>> import numpy as np, pyarrow as pa, uncombine as uc
    >>> from uncombine.combiners.groups import Groups
    >>> fn = uc.Sum("x").bind(pa.schema({"x": pa.int64()}))
    >>> state = fn.add(Groups(np.array([0, 1, 0]), 2), pa.array([1, 2, 4]))
    >>> fn.extract(state).to_pylist(), fn.extract(fn.uncombine(state, state)).to_pylist()
    ([5, 2], [None, None])
    """

    capability: Capability = Capability.GROUP
    vector: bool = True
    """Whether accumulators are numbers that add up entry by entry, so that a difference of two is a result too."""
    remedy: str = "use its retractable form (retractable=True)"
    """What to do where a MONOID is asked for a retraction."""

    @property
    @abstractmethod
    def fields(self) -> tuple[pa.Field, ...]:
        """The accumulator's columns."""

    @abstractmethod
    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        """The accumulators of the rows of each group, `weights[i]` copies of row i (negative: taken back)."""

    @abstractmethod
    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        """The sum of the accumulators in each group."""

    def negate(self, accumulators: Accumulators) -> Accumulators:
        """The inverse of each accumulator: `a + negate(a) = 0`."""
        raise NotRetractable(f"{type(self).__name__} is a MONOID combiner and has no retraction: {self.remedy}")

    def uncombine(self, accumulators: Accumulators, others: Accumulators) -> Accumulators:
        """`accumulators - others`, row by row."""
        taken = self.negate(others)
        both = tuple(pa.concat_arrays([a, b]) for a, b in zip(accumulators, taken, strict=True))
        return self.merge(Groups.repeated(len(accumulators[0]), 2), both)

    def extract(self, accumulators: Accumulators) -> pa.Array:
        """The result of each accumulator, null where it holds nothing to tell."""
        raise NotImplementedError(f"{type(self).__name__} is a part of other combiners and has no result of its own")

    def is_zero(self, accumulators: Accumulators) -> np.ndarray:
        """Which accumulators of a GROUP are those of no rows: whose numbers are zero and whose lists are empty."""
        return np.logical_and.reduce([nothing(column) for column in accumulators])

    @property
    def nullable(self) -> tuple[bool, ...]:
        """For each input, whether its nulls reach `add`; shorter than the inputs means False for the rest."""
        return ()

    def zero(self, count: int) -> Accumulators:
        """`count` accumulators that have seen nothing."""
        nothing = tuple(pa.array([], field.type) for field in self.fields)
        return self.merge(Groups(np.empty(0, np.int64), count), nothing)


def weakest(capabilities: Sequence[Capability]) -> Capability:
    """What a whole can promise whose parts promise these."""
    return Capability(min(capabilities, default=Capability.GROUP))
