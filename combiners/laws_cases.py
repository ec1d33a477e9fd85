"""One example of the law kit: a combiner, some rows, and what it means that two accumulators are the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument, LawViolation, OutOfRange
from .algebra import Accumulators, Capability, CombineFn
from .columns import Column
from .combiner import Bound
from .groups import Groups
from .laws_strategies import KEYS

Row: TypeAlias = tuple[int, int, tuple[Any, ...]]
"""A row of an example: its group, its weight, its values."""


@dataclass(frozen=True)
class Subject:
    """What is checked: a `CombineFn` over columns of known types."""

    name: str
    fn: CombineFn
    columns: dict[str, pa.DataType]
    tolerance: Callable[[Sequence[float], int], float] | None = None
    append_only: CombineFn | None = None

    @property
    def capability(self) -> Capability:
        return self.fn.capability

    @property
    def extracts(self) -> bool:
        """Whether it has results; a part of other combiners may have none."""
        return type(self.fn).extract is not CombineFn.extract

    def nullable(self, place: int) -> bool:
        """Whether a column may hold nulls: a combiner leaves them out, a bare part must ask for them."""
        if isinstance(self.fn, Bound):
            return True
        return place < len(self.fn.nullable) and self.fn.nullable[place]

    def arrays(self, rows: Sequence[Row]) -> list[pa.Array]:
        """The value columns of some rows."""
        out = []
        for place, (name, kind) in enumerate(self.columns.items()):
            values = [row[2][place] for row in rows]
            try:
                out.append(pa.array(values, kind, from_pandas=False))
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
                raise InvalidArgument(f"values= draws what a column {name!r} of {kind} cannot hold: {error}") from None
        return out


@dataclass
class Case:
    """A subject with three batches of rows, and the operations on them written short."""

    subject: Subject
    a: list[Row]
    b: list[Row]
    c: list[Row]
    law: str = ""
    equation: str = ""
    _kept: dict[str, Accumulators] = field(default_factory=dict)

    @property
    def fn(self) -> CombineFn:
        return self.subject.fn

    def add(self, rows: Sequence[Row], weighed: bool = True, count: int = KEYS) -> Accumulators:
        """The accumulators of some rows; `weighed=False` leaves the weights out."""
        groups = Groups(np.array([row[0] for row in rows], np.int64), count)
        weights = np.array([row[1] for row in rows], np.int64) if weighed else None
        columns = dict(zip(self.subject.columns, map(Column, self.subject.arrays(rows)), strict=True))
        wanted = self.fn.columns if isinstance(self.fn, Bound) else columns
        return self.fn.add(groups, *(columns[name] for name in wanted), weights=weights)

    def batch(self, name: str) -> Accumulators:
        """The accumulators of batch "a", "b" or "c"."""
        if name not in self._kept:
            self._kept[name] = self.add(getattr(self, name))
        return self._kept[name]

    @property
    def both(self) -> Accumulators:
        """The sum of the first two batches."""
        if "a + b" not in self._kept:
            self._kept["a + b"] = self.merge(self.batch("a"), self.batch("b"))
        return self._kept["a + b"]

    @property
    def zero(self) -> Accumulators:
        """What nothing gives."""
        if "zero" not in self._kept:
            self._kept["zero"] = self.fn.zero(KEYS)
        return self._kept["zero"]

    def merge(self, *parts: Accumulators) -> Accumulators:
        """The sum, group by group."""
        count = len(parts[0][0])
        both = tuple(pa.concat_arrays(columns) for columns in zip(*parts, strict=True))
        return self.fn.merge(Groups.repeated(count, len(parts)), both)

    def results(self, accumulators: Accumulators) -> Any:
        """The results as plain values; a sum out of range is a result like others."""
        if not self.subject.extracts:
            return [array.to_pylist() for array in accumulators]
        results = self.extract(accumulators)
        return "out of range" if results is None else results.to_pylist()

    def extract(self, accumulators: Accumulators) -> pa.Array | None:
        """The results, None where one is out of its type's range."""
        try:
            return self.fn.extract(accumulators)
        except OutOfRange:
            return None

    @property
    def slack(self) -> float:
        """How far two results may lie apart: each within the tolerance of the exact one."""
        if self.subject.tolerance is None:
            return 0.0
        magnitudes = []
        for _, weight, values in [*self.a, *self.b, *self.c]:
            for value in values:
                if isinstance(value, bool | int | float | Decimal) and math.isfinite(value):
                    magnitudes += [abs(float(value))] * (2 * max(abs(weight), 1))
        count = sum(2 * max(abs(weight), 1) for _, weight, _ in [*self.a, *self.b, *self.c])
        return 2 * self.subject.tolerance(magnitudes, count)

    def same(self, left: Accumulators, right: Accumulators, left_text: str, right_text: str) -> None:
        """Raise unless two are the same: bit for bit for a GROUP, else as far as results can tell."""
        if self.subject.capability is Capability.GROUP:
            if bits(left) != bits(right):
                self.fail(left_text, plain(left), right_text, plain(right))
            return
        self.close(self.results(left), self.results(right), left_text, right_text)
        probe = self.batch("c")
        more = (self.results(self.merge(left, probe)), self.results(self.merge(right, probe)))
        self.close(*more, f"({left_text}) + c", f"({right_text}) + c")

    def close(self, left: Any, right: Any, left_text: str, right_text: str) -> None:
        """Raise unless two lists of results are equal up to the stated tolerance."""
        if not near(left, right, 0.0) and not near(left, right, self.slack):
            self.fail(left_text, left, right_text, right)

    def fail(self, left_text: str, left: Any, right_text: str, right: Any) -> None:
        """Raise the violation of the law at hand, with the example."""
        types = ", ".join(f"{name}: {kind}" for name, kind in self.subject.columns.items())
        lines = [
            f"{self.subject.name}{f' over {types}' if types else ''} declares {self.subject.capability.name} "
            f"and breaks the law of {self.law}: {self.equation}",
            f"  a: {self._told(self.a)}",
            *(f"  {name}: {self._told(rows)}" for name, rows in (("b", self.b), ("c", self.c)) if rows),
            f"  {left_text}  gives  {left}",
            f"  {right_text}  gives  {right}",
        ]
        raise LawViolation("\n".join(lines), self.law)

    def _told(self, rows: Sequence[Row]) -> str:
        told = []
        for group, weight, values in rows:
            named = ", ".join(f"{n}={v!r}" for n, v in zip(self.subject.columns, values, strict=True))
            told.append(f"({named}{'; ' if named else ''}group {group}, weight {weight})")
        return " ".join(told) or "no rows"


def bits(accumulators: Accumulators) -> list[Any]:
    """Plain values that are equal exactly where the accumulators are, bit for bit."""
    return [_bits(array) for array in accumulators]


def plain(accumulators: Accumulators) -> Any:
    """Accumulators as a person reads them."""
    shown = [array.to_pylist() for array in accumulators]
    return shown[0] if len(shown) == 1 else shown


def near(left: Any, right: Any, slack: float) -> bool:
    """Whether two plain values agree, floats up to `slack` and, where there is any, to a few last places."""
    if isinstance(left, float) and isinstance(right, float):
        if math.isfinite(left) and math.isfinite(right):
            rounding = 2.0**-50 * max(abs(left), abs(right)) if slack else 0.0
            return abs(left - right) <= slack + rounding
        return left == right or (math.isnan(left) and math.isnan(right)) or slack == math.inf
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(near, left, right, [slack] * len(left)))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(near(left[k], right[k], slack) for k in left)
    if slack == math.inf and isinstance(left, float | None) and isinstance(right, float | None):
        return True
    return bool(left == right)


def _bits(array: pa.Array) -> Any:
    kind = array.type
    valid = array.is_valid().to_pylist()
    if pa.types.is_struct(kind):
        return valid, [_bits(child) for child in array.flatten()]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return valid, array.value_lengths().to_pylist(), _bits(array.flatten())
    if pa.types.is_map(kind):
        return valid, array.cast(pa.list_(pa.struct([kind.key_field, kind.item_field]))).to_pylist()
    if pa.types.is_floating(kind):
        floats = np.asarray(array.fill_null(0.0).to_numpy(zero_copy_only=False))
        return valid, floats.view(f"i{floats.itemsize}").tolist()
    if pa.types.is_temporal(kind):
        array = array.view(pa.int64() if kind.bit_width == 64 else pa.int32())
    return array.to_pylist()
