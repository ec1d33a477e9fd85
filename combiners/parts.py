"""`Part`: one `CombineFn` with the expressions that it reads, and the rows of a table as parts read them.

Parts are values. Two combiners that compile to an equal part share it, so that `Mean("x")`, `Sum("x")` and
`Count("x")` together hold one sum and one count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import TypeMismatch
from .algebra import Capability, CombineFn, Weights
from .expressions.expr import Expr
from .rows.columns import Column
from .rows.groups import Groups

Rows: TypeAlias = tuple[Groups, tuple[Column, ...], Weights]
"""The rows that a part adds: their groups, the columns of its inputs, and their weights."""


@dataclass(frozen=True)
class Part:
    """One `CombineFn` with its inputs and its filter; equal parts are computed once."""

    fn: CombineFn
    inputs: tuple[Expr, ...] = ()
    where: Expr | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The input columns that the part reads."""
        names = [name for expr in self.inputs for name in expr.columns]
        names += self.where.columns if self.where is not None else ()
        return tuple(dict.fromkeys(names))


def remedy_of(parts: Sequence[Part]) -> str:
    """The remedy that the first part without a retraction names."""
    return next(part.fn.remedy for part in parts if part.fn.capability is Capability.MONOID)


class PartRows:
    """The rows of a table as parts read them; an expression or a filter that two parts share is computed once."""

    def __init__(self, groups: Groups, table: pa.Table | pa.RecordBatch, weights: Weights) -> None:
        self.groups, self.table = groups, table
        self.weights = weights
        self._columns: dict[Expr, Column] = {}
        self._rows: dict[tuple[tuple[Expr, ...], Expr | None, tuple[bool, ...]], Rows] = {}

    def of(self, part: Part) -> Rows:
        """The rows that pass the part's filter and have no null in an input that may not be null."""
        nullable = tuple(part.fn.nullable) + (False,) * (len(part.inputs) - len(part.fn.nullable))
        key = (part.inputs, part.where, nullable)
        if key not in self._rows:
            self._rows[key] = self._compute(part, nullable)
        return self._rows[key]

    def _compute(self, part: Part, nullable: tuple[bool, ...]) -> Rows:
        columns = tuple(self._column(expr) for expr in part.inputs)
        keep: np.ndarray | None = None
        if part.where is not None:
            chosen = self._column(part.where).array
            if not pa.types.is_boolean(chosen.type):
                raise TypeMismatch(
                    f".where() takes a boolean expression, but {part.where!r} is {chosen.type}: compare it with a value"
                )
            keep = np.asarray(pc.fill_null(chosen, False))
        for column, may_be_null in zip(columns, nullable, strict=True):
            if column.array.null_count and not may_be_null:
                valid = np.asarray(column.array.is_valid())
                keep = valid if keep is None else keep & valid
        if keep is None:
            return self.groups, columns, self.weights
        weights = None if self.weights is None else self.weights[keep]
        return self.groups.take(keep), tuple(column.take(keep) for column in columns), weights

    def _column(self, expr: Expr) -> Column:
        if expr not in self._columns:
            value = expr.evaluate(self.table)
            if isinstance(value, pa.Scalar):
                value = pa.repeat(value, self.table.num_rows)
            self._columns[expr] = Column(value)
        return self._columns[expr]
