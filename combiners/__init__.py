"""Combiners: aggregations that keep an algebra, which the law kit checks."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from .aggregate import aggregate
from .algebra import Capability, CombineFn
from .arg_extremes import ArgMax, ArgMin, First, Last
from .bivariate import Correlation, Covariance, LinearRegression
from .booleans import BitXor, BoolAnd, BoolOr
from .collect import CollectList, CollectSet
from .combiner import Combiner
from .counting import Count, CountIf
from .distinct_counts import CountDistinct
from .expressions.expr import Expr, coalesce, col, concat, when
from .extremes import Max, Min
from .fingerprint import Fingerprint
from .from_columns import from_columns
from .from_scalar import from_scalar
from .histogram import Histogram
from .means import GeometricMean, Mean, WeightedMean
from .mode import Mode
from .moments import Kurtosis, Skewness, StdDev, Variance
from .perkey import PerKey
from .plan import Plan
from .product import Product
from .quantiles import Median, Quantile, Quantiles
from .sketches.approx_distinct import ApproxCountDistinct
from .sketches.approx_quantiles import ApproxQuantiles
from .sketches.heavy_hitters import HeavyHitters
from .structs import Struct
from .summing import Sum
from .topk import BottomK, TopK

__all__ = [
    "ApproxCountDistinct",
    "ApproxQuantiles",
    "ArgMax",
    "ArgMin",
    "BitXor",
    "BoolAnd",
    "BoolOr",
    "BottomK",
    "Capability",
    "CollectList",
    "CollectSet",
    "CombineFn",
    "Combiner",
    "Correlation",
    "Count",
    "CountDistinct",
    "CountIf",
    "Covariance",
    "Expr",
    "Fingerprint",
    "First",
    "GeometricMean",
    "HeavyHitters",
    "Histogram",
    "Kurtosis",
    "Last",
    "LinearRegression",
    "Max",
    "Mean",
    "Median",
    "Min",
    "Mode",
    "PerKey",
    "Plan",
    "Product",
    "Quantile",
    "Quantiles",
    "Skewness",
    "StdDev",
    "Struct",
    "Sum",
    "TopK",
    "Variance",
    "WeightedMean",
    "aggregate",
    "coalesce",
    "col",
    "concat",
    "from_columns",
    "from_scalar",
    "when",
]


def __getattr__(name: str) -> ModuleType:
    # The law kit needs hypothesis, so it is loaded at first use.
    if name == "laws":
        return import_module(".laws", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "laws"]
