"""Several combiners as one, whose result is a struct."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ..errors import InvalidArgument
from .algebra import Accumulators, Capability, weakest
from .combiner import Combiner
from .compiled import CompiledCombiner
from .parts import Part


class Struct(Combiner):
    """Several combiners as one whose result is a struct; they share the groups and equal parts.

    >>> import pyarrow as pa, uncombine as uc
    >>> both = uc.Struct(total=uc.Sum("x"), best=uc.Max("x"))
    >>> uc.aggregate(pa.table({"x": [1, 5]}), r=both).to_pylist()
    [{'r': {'total': 6, 'best': 5}}]
    """

    def __init__(self, **combiners: Combiner) -> None:
        if not combiners:
            raise InvalidArgument("Struct() needs at least one combiner: write Struct(total=Sum('x'))")
        for name, combiner in combiners.items():
            if not isinstance(combiner, Combiner):
                raise InvalidArgument(f"Struct({name}=) takes a combiner such as Sum('x'), but was given {combiner!r}")
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

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        compiled = [combiner.compile(schema) for _, combiner in self.combiners]
        fields = [pa.field(name, one.output) for (name, _), one in zip(self.combiners, compiled, strict=True)]

        def finish(parts: Sequence[Accumulators]) -> pa.Array:
            results, at = [], 0
            for one in compiled:
                results.append(one.finish(parts[at : at + len(one.parts)]))
                at += len(one.parts)
            return pa.StructArray.from_arrays(results, fields=fields)

        parts: tuple[Part, ...] = tuple(part for one in compiled for part in one.parts)
        return CompiledCombiner(parts=parts, finish=finish, output=pa.struct(fields))

    def __repr__(self) -> str:
        return f"Struct({', '.join(f'{name}={combiner!r}' for name, combiner in self.combiners)})"
