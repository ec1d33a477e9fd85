"""What the law kit compares of a combiner that is no GROUP: its results, or those of the combiners it is made of.

The tolerance of `Sum("x") / Count()` is infinite, because a quotient can make a small difference as large as the other
side is. Its laws are tried on the results of `Sum("x")` and of `Count()`, each within its own tolerance, and on the
quotient where those are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...errors import UncombineError
from ..algebra import Accumulators, CombineFn
from ..combiner import Arithmetic, Bound, Combiner, Filtered, Mapped, Tolerance
from ..compiled import CompiledCombiner, CompiledPlan
from ..structs import Struct

_PACKAGE = __name__.partition(".")[0] + "."


@dataclass(frozen=True)
class View:
    """Results to be read from accumulators, and how far two of them may lie apart."""

    name: str
    extract: Callable[[Accumulators], pa.Array]
    tolerance: Tolerance | None
    ours: bool = False
    """Whether the tolerance is one of the library's own combiners."""


def views_of(name: str, fn: CombineFn) -> tuple[View, ...]:
    """The combiners that a combiner is made of; itself, if it is made of none."""
    if not isinstance(fn, Bound):
        return (View(name, fn.extract, getattr(fn, "tolerance", None)),)
    leaves = list(_leaves(fn.combiner))
    found = [_view(leaf, fn.plan, fn.plan.schema) for leaf in leaves]
    views = tuple(view for view in found if view is not None)
    if leaves == [fn.combiner] or len(views) < len(leaves):
        return (View(name, fn.extract, fn.combiner.tolerance, _ours(fn.combiner)),)
    return views


def _leaves(combiner: Combiner) -> Iterator[Combiner]:
    match combiner:
        case Arithmetic(left=left, right=right):
            for side in (left, right):
                if isinstance(side, Combiner):
                    yield from _leaves(side)
        case Mapped(combiner=inner):
            yield from _leaves(inner)
        case Filtered(combiner=inner, predicate=predicate):
            for leaf in _leaves(inner):
                yield Filtered(leaf, predicate)
        case Struct(combiners=combiners):
            for _, inner in combiners:
                yield from _leaves(inner)
        case _:
            yield combiner


def _view(leaf: Combiner, plan: CompiledPlan, schema: pa.Schema) -> View | None:
    try:
        compiled = leaf.compile(schema)
    except UncombineError:
        return None
    if not set(compiled.parts) <= set(plan.parts):
        return None
    return View(repr(leaf), _reader(compiled, plan), leaf.tolerance, _ours(leaf))


def _reader(compiled: CompiledCombiner, plan: CompiledPlan) -> Callable[[Accumulators], pa.Array]:
    def extract(accumulators: Accumulators) -> Any:
        return compiled.finish([plan.of_part(part, accumulators) for part in compiled.parts])

    return extract


def _ours(combiner: Combiner) -> bool:
    """Whether the tolerance of a combiner is stated by the library, and not by the user."""
    from ..from_columns import ColumnsCombiner
    from ..from_scalar import ScalarCombiner

    inner = getattr(combiner, "combiner", None)
    if isinstance(inner, Combiner):
        return _ours(inner)
    return not isinstance(combiner, ScalarCombiner | ColumnsCombiner) and type(combiner).__module__.startswith(_PACKAGE)
