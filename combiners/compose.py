"""Combiners made of combiners: filtered rows, mapped results, arithmetic on results, structs of results."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidArgument, TypeMismatch
from .algebra import Accumulators, Capability, weakest
from .combiner import Combiner, Lowered, Part, input_type
from .expressions import Expr, col


@dataclass(frozen=True, repr=False)
class Where(Combiner):
    """`combiner` over the rows for which `predicate` is true (null counts as false)."""

    combiner: Combiner
    predicate: Expr

    def __post_init__(self) -> None:
        if not isinstance(self.predicate, Expr):
            raise InvalidArgument(f".where() takes an expression such as col('x') > 2, not {self.predicate!r}")

    @property
    def capability(self) -> Capability:
        return self.combiner.capability

    def tolerance(self, magnitudes: Sequence[float], count: int) -> float:
        return self.combiner.tolerance(magnitudes, count)

    def append_only(self) -> Combiner:
        return Where(self.combiner.append_only(), self.predicate)

    def of(self, *inputs: Any) -> Combiner:
        return Where(self.combiner.of(*inputs), self.predicate)

    def lower(self, schema: pa.Schema) -> Lowered:
        if not pa.types.is_boolean(input_type(self.predicate, schema, self)):
            raise TypeMismatch(f".where() takes a boolean expression, and {self.predicate!r} is not one")
        lowered = self.combiner.lower(schema)
        parts = tuple(
            replace(p, where=self.predicate if p.where is None else p.where & self.predicate) for p in lowered.parts
        )
        return replace(lowered, parts=parts)

    def __repr__(self) -> str:
        return f"{self.combiner!r}.where({self.predicate!r})"


@dataclass(frozen=True, repr=False)
class Mapped(Combiner):
    """The results of `combiner` put through `function`, an Arrow array in, an Arrow array of that length out.

    >>> import pyarrow as pa, pyarrow.compute as pc, uncombine as uc
    >>> uc.aggregate(pa.table({"x": [1, 2]}), s=uc.Sum("x").map(pc.negate)).to_pylist()
    [{'s': -3}]
    """

    combiner: Combiner
    function: Callable[[pa.Array], pa.Array]
    output: pa.DataType | None = None

    @property
    def capability(self) -> Capability:
        return self.combiner.capability

    def tolerance(self, magnitudes: Sequence[float], count: int) -> float:
        # What the function makes of a small difference is not known.
        return math.inf if self.combiner.tolerance(magnitudes, count) else 0.0

    def append_only(self) -> Combiner:
        return replace(self, combiner=self.combiner.append_only())

    def of(self, *inputs: Any) -> Combiner:
        return replace(self, combiner=self.combiner.of(*inputs))

    def lower(self, schema: pa.Schema) -> Lowered:
        lowered = self.combiner.lower(schema)
        output = self.output if self.output is not None else self._apply(pa.array([], lowered.output), None).type

        def finish(parts: Sequence[Accumulators]) -> pa.Array:
            return self._apply(lowered.finish(parts), output)

        return Lowered(lowered.parts, finish, output)

    def _apply(self, results: pa.Array, output: pa.DataType | None) -> pa.Array:
        mapped = self.function(results)
        if isinstance(mapped, pa.ChunkedArray):
            mapped = mapped.combine_chunks()
        if not isinstance(mapped, pa.Array) or len(mapped) != len(results):
            raise TypeMismatch(f".map() needs a function that gives an Arrow array of the same length, not {mapped!r}")
        return mapped if output is None or mapped.type == output else mapped.cast(output)

    def __repr__(self) -> str:
        output = "" if self.output is None else f", {self.output!r}"
        return f"{self.combiner!r}.map({getattr(self.function, '__qualname__', self.function)}{output})"


@dataclass(frozen=True, repr=False)
class Arithmetic(Combiner):
    """`left op right`, result by result; null if either is null, and where a divisor is zero."""

    op: str
    left: Combiner | float
    right: Combiner | float

    def __post_init__(self) -> None:
        for side in (self.left, self.right):
            if not isinstance(side, Combiner) and (isinstance(side, bool) or not isinstance(side, int | float)):
                raise InvalidArgument(f"arithmetic on results takes combiners and numbers, not {side!r}")

    @property
    def capability(self) -> Capability:
        return weakest([side.capability for side in (self.left, self.right) if isinstance(side, Combiner)])

    def tolerance(self, magnitudes: Sequence[float], count: int) -> float:
        sides = [side for side in (self.left, self.right) if isinstance(side, Combiner)]
        bounds = [side.tolerance(magnitudes, count) for side in sides]
        if self.op in "+-":
            return sum(bounds)
        # A product or quotient can make a small difference as large as the other side is.
        return math.inf if any(bounds) else 0.0

    def append_only(self) -> Combiner:
        left, right = (s.append_only() if isinstance(s, Combiner) else s for s in (self.left, self.right))
        return Arithmetic(self.op, left, right)

    def lower(self, schema: pa.Schema) -> Lowered:
        sides = [side.lower(schema) if isinstance(side, Combiner) else None for side in (self.left, self.right)]
        cut = len(sides[0].parts) if sides[0] else 0
        a, b = col("a"), col("b")
        expr = {"+": a + b, "-": a - b, "*": a * b, "/": a / b}[self.op]

        def table(parts: Sequence[Accumulators], count: int) -> pa.Table:
            columns = []
            for side, given, mine in zip(sides, (self.left, self.right), (parts[:cut], parts[cut:]), strict=True):
                columns.append(pa.repeat(pa.scalar(given), count) if side is None else side.finish(mine))
            return pa.table(columns, names=["a", "b"])

        def finish(parts: Sequence[Accumulators]) -> pa.Array:
            result = expr.evaluate(table(parts, len(parts[0][0])))
            return result.combine_chunks() if isinstance(result, pa.ChunkedArray) else result

        types = [
            pa.scalar(given).type if side is None else side.output
            for side, given in zip(sides, (self.left, self.right), strict=True)
        ]
        for kind in types:
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
                raise TypeMismatch(f"{self!r} needs numbers, and one side gives {kind}")
        output = expr.type(pa.schema([("a", types[0]), ("b", types[1])]))
        return Lowered(tuple(p for side in sides if side for p in side.parts), finish, output)

    def __repr__(self) -> str:
        return f"({self.left!r} {self.op} {self.right!r})"


class Struct(Combiner):
    """Several combiners as one whose result is a struct; they share the grouping work and equal parts.

    >>> import pyarrow as pa, uncombine as uc
    >>> both = uc.Struct(total=uc.Sum("x"), best=uc.Max("x"))
    >>> uc.aggregate(pa.table({"x": [1, 5]}), r=both).to_pylist()
    [{'r': {'total': 6, 'best': 5}}]
    """

    def __init__(self, **combiners: Combiner) -> None:
        if not combiners:
            raise InvalidArgument("Struct needs at least one combiner, such as Struct(total=Sum('x'))")
        for name, combiner in combiners.items():
            if not isinstance(combiner, Combiner):
                raise InvalidArgument(f"Struct({name}=) takes a combiner such as Sum('x'), not {combiner!r}")
        self.combiners: tuple[tuple[str, Combiner], ...] = tuple(combiners.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Struct) and self.combiners == other.combiners

    def __hash__(self) -> int:
        return hash((Struct, self.combiners))

    @property
    def capability(self) -> Capability:
        return weakest([combiner.capability for _, combiner in self.combiners])

    def tolerance(self, magnitudes: Sequence[float], count: int) -> float:
        return max(combiner.tolerance(magnitudes, count) for _, combiner in self.combiners)

    def append_only(self) -> Combiner:
        return Struct(**{name: combiner.append_only() for name, combiner in self.combiners})

    def of(self, *inputs: Any) -> Combiner:
        return Struct(**{name: combiner.of(*inputs) for name, combiner in self.combiners})

    def lower(self, schema: pa.Schema) -> Lowered:
        lowered = [combiner.lower(schema) for _, combiner in self.combiners]
        fields = [pa.field(name, low.output) for (name, _), low in zip(self.combiners, lowered, strict=True)]

        def finish(parts: Sequence[Accumulators]) -> pa.Array:
            results, at = [], 0
            for low in lowered:
                results.append(low.finish(parts[at : at + len(low.parts)]))
                at += len(low.parts)
            return pa.StructArray.from_arrays(results, fields=fields)

        parts: tuple[Part, ...] = tuple(part for low in lowered for part in low.parts)
        return Lowered(parts, finish, pa.struct(fields))

    def __repr__(self) -> str:
        return f"Struct({', '.join(f'{name}={combiner!r}' for name, combiner in self.combiners)})"


def null_where(results: pa.Array, missing: pa.Array) -> pa.Array:
    """`results` with nulls where `missing` is true."""
    return pc.if_else(missing, pa.scalar(None, results.type), results)
