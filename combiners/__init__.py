"""WHAT is computed: the algebra, the combiners, the law kit."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from .aggregate import aggregate
from .algebra import Capability, CombineFn
from .combiner import Combiner
from .compose import Struct
from .counting import Count, CountIf
from .expressions import Expr, coalesce, col, when
from .extremes import Max, Min
from .plan import Plan
from .scalar import from_scalar
from .summing import Sum

__all__ = [
    "Capability",
    "CombineFn",
    "Combiner",
    "Count",
    "CountIf",
    "Expr",
    "Max",
    "Min",
    "Plan",
    "Struct",
    "Sum",
    "aggregate",
    "coalesce",
    "col",
    "from_scalar",
    "when",
]


def __getattr__(name: str) -> ModuleType:
    # The law kit needs hypothesis, so it is loaded at first use.
    if name == "laws":
        return import_module(".laws", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
