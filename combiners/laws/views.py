"""The results that the law kit compares for a combiner that is no GROUP: its own, or those of its parts.

The tolerance of `Sum("x") / Count()` is infinite, because a small divisor makes a small difference large.
Its laws are tried on the results of `Sum("x")` and of `Count()`, each within its own tolerance, and on the quotient
where those are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...errors import UncombineError
from ..algebra import Accumulators, CombineFn
from ..combiner import Arithmetic, Bound, Combiner, Filtered, Mapped
from ..compiled import CompiledCombiner, CompiledPlan
from ..floats.tolerances import RelativeTolerance, Tolerance, tolerance_of
from ..structs import Struct
from .compare import LAST_BITS

_PACKAGE = __name__.partition(".")[0] + "."


@dataclass(frozen=True)
class View:
    """A way to read results from accumulators, with their tolerance."""

    name: str
    extract: Callable[[Accumulators], pa.Array]
    tolerance: Tolerance | None
    ours: bool = False
    """True if the tolerance belongs to a combiner of the library."""
    part: float = LAST_BITS
    """The part of a result by which it may differ from another one."""


def views_of(name: str, fn: CombineFn) -> tuple[View, ...]:
    """One view for each combiner that a combiner is made of; a single view of itself if it is made of none."""
    if not isinstance(fn, Bound):
        bound = tolerance_of(getattr(fn, "tolerance", None), name)
        return (View(name=name, extract=fn.extract, tolerance=bound, part=_part(bound)),)
    leaves = list(_leaves(fn.combiner))
    candidates = [_view(leaf, fn.plan, fn.plan.schema) for leaf in leaves]
    views = tuple(view for view in candidates if view is not None)
    if leaves == [fn.combiner] or len(views) < len(leaves):
        return (_of(fn.combiner, name, fn.extract),)
    return views


def _of(combiner: Combiner, name: str, extract: Callable[[Accumulators], pa.Array]) -> View:
    """The view of a combiner whose results this function reads."""
    own = combiner
    while isinstance(inner := getattr(own, "combiner", None), Combiner):
        own = inner
    bound = getattr(getattr(own, "fn", None), "bound", None)
    return View(name=name, extract=extract, tolerance=combiner.tolerance, ours=_ours(own), part=_part(bound))


def _part(bound: Tolerance | None) -> float:
    """The part by which two results may differ that are each within a tolerance of the exact one."""
    return max(2 * bound.part, LAST_BITS) if isinstance(bound, RelativeTolerance) else LAST_BITS


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
    return _of(leaf, repr(leaf), _reader(compiled, plan))


def _reader(compiled: CompiledCombiner, plan: CompiledPlan) -> Callable[[Accumulators], pa.Array]:
    def extract(accumulators: Accumulators) -> Any:
        return compiled.finish([plan.of_part(part, accumulators) for part in compiled.parts])

    return extract


def _ours(combiner: Combiner) -> bool:
    """True if a combiner, which is made of no other one, is the library's, and so is its tolerance."""
    from ..from_columns import ColumnsCombiner
    from ..from_scalar import ScalarCombiner

    return not isinstance(combiner, ScalarCombiner | ColumnsCombiner) and type(combiner).__module__.startswith(_PACKAGE)
