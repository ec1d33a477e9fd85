"""WHAT is computed: the algebra, the combiners, the law kit."""

from .aggregate import aggregate
from .algebra import Capability, CombineFn
from .combiner import Combiner
from .compose import Struct
from .counting import Count, CountIf
from .expressions import Expr, coalesce, col, when
from .extremes import Max, Min
from .plan import Plan
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
    "when",
]
