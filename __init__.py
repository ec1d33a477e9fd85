"""Aggregations that a later row can correct: columnar combiners with retraction, by window, trigger, pane."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .advice import no_such_name

__version__ = "0.1.0"

ON_SPARK = {
    "Accumulator": ".sparkops.stored.accumulator",
    "checkpoint": ".sparkops.checkpoints.contents",
    "progress": ".sparkops.progress",
    "session": ".sparkops.session",
    "watch": ".sparkops.progress",
    "why": ".sparkops.reasons",
}
"""The public names that need pyspark, with their homes; `from uncombine import *` leaves them out."""

__all__ = [  # noqa: RUF022
    # A way in, and what comes out
    "flow",
    "Files",
    "SchemaRegistry",
    "Kafka",
    "TableChanges",
    "Flow",
    "Result",
    "Seen",
    "Tuning",
    "union",
    "together",
    # Scripts: the rows, watermarks and clock of a test
    "Elements",
    "Watermark",
    "Clock",
    # Windows
    "Calendar",
    "Custom",
    "Fixed",
    "Global",
    "Inherit",
    "Sessions",
    "Sliding",
    "Span",
    "span",
    "timestamp",
    # Triggers
    "AfterBytes",
    "AfterCount",
    "AfterDelay",
    "AfterWatermark",
    "AllOf",
    "Always",
    "AtPeriod",
    "ChildTrigger",
    "Clearing",
    "FilesPercentile",
    "FirstOf",
    "Never",
    "OnPunctuation",
    "OnResult",
    "OnSignal",
    "RepeatCount",
    "RepeatUntil",
    "Repeatedly",
    "SequenceOf",
    "Trigger",
    "TriggerContext",
    "UserTrigger",
    "WatermarkPercentile",
    # Watermark strategies
    "BoundedLag",
    "EachBatch",
    "IngressTime",
    "Monotonic",
    "PerSource",
    "ProcessingTime",
    "Punctuated",
    "WatermarkStrategy",
    # Combiners
    "ApproxCountDistinct",
    "ApproxQuantiles",
    "ArgMax",
    "ArgMin",
    "BitXor",
    "BoolAnd",
    "BoolOr",
    "BottomK",
    "CollectList",
    "CollectSet",
    "Correlation",
    "Count",
    "CountDistinct",
    "CountIf",
    "Covariance",
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
    # Expressions
    "Expr",
    "coalesce",
    "col",
    "concat",
    "when",
    # Computations with state for each key
    "KeyContext",
    "KeyFunction",
    "BroadcastContext",
    "BroadcastFunction",
    # Combiners of one's own
    "aggregate",
    "rolling",
    "Combiner",
    "CombineFn",
    "Capability",
    "from_columns",
    "from_scalar",
    # Beside flows
    "compare",
    "Comparison",
    "evolve",
    "Deletion",
    "Evolution",
    "changelog",
    "messages",
    "metrics",
    "plot",
    "trigger_costs",
    "UncombineError",
]

if TYPE_CHECKING:
    from . import changelog, messages, metrics, plot, sparkops, testing
    from .combiners import (
        ApproxCountDistinct,
        ApproxQuantiles,
        ArgMax,
        ArgMin,
        BitXor,
        BoolAnd,
        BoolOr,
        BottomK,
        Capability,
        CollectList,
        CollectSet,
        CombineFn,
        Combiner,
        Correlation,
        Count,
        CountDistinct,
        CountIf,
        Covariance,
        Expr,
        Fingerprint,
        First,
        GeometricMean,
        HeavyHitters,
        Histogram,
        Kurtosis,
        Last,
        LinearRegression,
        Max,
        Mean,
        Median,
        Min,
        Mode,
        PerKey,
        Product,
        Quantile,
        Quantiles,
        Skewness,
        StdDev,
        Struct,
        Sum,
        TopK,
        Variance,
        WeightedMean,
        aggregate,
        coalesce,
        col,
        concat,
        from_columns,
        from_scalar,
        when,
    )
    from .comparing import compare
    from .doors import flow
    from .errors import UncombineError
    from .evolution import Evolution, evolve
    from .files.files import Files
    from .flows import Flow, Result, Tuning
    from .flows.early_end.seen import Seen
    from .flows.evolution.deletion import Deletion
    from .flows.together.flows_together import together
    from .flows.union import union
    from .kafka.kafka import Kafka
    from .lakehouse.table_changes import TableChanges
    from .local.script import Clock, Elements, Watermark
    from .lookbacks.over_table import rolling
    from .messages.registry import SchemaRegistry
    from .panes import (
        BoundedLag,
        BroadcastContext,
        BroadcastFunction,
        EachBatch,
        IngressTime,
        KeyContext,
        KeyFunction,
        Monotonic,
        PerSource,
        ProcessingTime,
        Punctuated,
        WatermarkStrategy,
    )
    from .plot.costs import trigger_costs
    from .sparkops.checkpoints.contents import checkpoint
    from .sparkops.progress import progress, watch
    from .sparkops.reasons import why
    from .sparkops.session import session
    from .sparkops.stored.accumulator import Accumulator
    from .tables.comparison.comparison import Comparison
    from .triggers import (
        AfterBytes,
        AfterCount,
        AfterDelay,
        AfterWatermark,
        AllOf,
        Always,
        AtPeriod,
        ChildTrigger,
        Clearing,
        FilesPercentile,
        FirstOf,
        Never,
        OnPunctuation,
        OnResult,
        OnSignal,
        RepeatCount,
        Repeatedly,
        RepeatUntil,
        SequenceOf,
        Trigger,
        TriggerContext,
        UserTrigger,
        WatermarkPercentile,
    )
    from .windows import (
        Calendar,
        Custom,
        Fixed,
        Global,
        Inherit,
        Sessions,
        Sliding,
        Span,
        span,
        timestamp,
    )
else:
    # Loaded at first use: `import uncombine` is light and needs no Spark, and a worker loads the parts that it runs.
    _NAMES = {
        ".combiners": (
            "ApproxCountDistinct ApproxQuantiles ArgMax ArgMin BitXor BoolAnd BoolOr BottomK Capability "
            "CollectList CollectSet CombineFn Combiner Correlation Count CountDistinct CountIf Covariance Expr "
            "Fingerprint First GeometricMean HeavyHitters Histogram Kurtosis Last LinearRegression Max Mean "
            "Median Min Mode PerKey Product Quantile Quantiles Skewness StdDev Struct Sum TopK Variance "
            "WeightedMean aggregate coalesce col concat from_columns from_scalar when"
        ),
        ".errors": ("UncombineError"),
        ".flows": ("Flow Result Tuning together union"),
        ".panes": (
            "BoundedLag BroadcastContext BroadcastFunction EachBatch IngressTime KeyContext KeyFunction "
            "Monotonic PerSource ProcessingTime Punctuated WatermarkStrategy"
        ),
        ".triggers": (
            "AfterBytes AfterCount AfterDelay AfterWatermark AllOf Always AtPeriod ChildTrigger Clearing "
            "FilesPercentile FirstOf Never OnPunctuation OnResult OnSignal RepeatCount Repeatedly RepeatUntil "
            "SequenceOf Trigger TriggerContext UserTrigger WatermarkPercentile"
        ),
        ".windows": ("Calendar Custom Fixed Global Inherit Sessions Sliding Span span timestamp"),
    }
    _HOMES = {name: room for room, names in _NAMES.items() for name in names.split()} | {
        "Clock": ".local.script",
        "Comparison": ".tables.comparison.comparison",
        "Deletion": ".flows.evolution.deletion",
        "Elements": ".local.script",
        "Evolution": ".evolution",
        "evolve": ".evolution",
        "Files": ".files.files",
        "Seen": ".flows.early_end.seen",
        "SchemaRegistry": ".messages.registry",
        "Kafka": ".kafka.kafka",
        "TableChanges": ".lakehouse.table_changes",
        "Watermark": ".local.script",
        "compare": ".comparing",
        "flow": ".doors",
        "rolling": ".lookbacks.over_table",
        "trigger_costs": ".plot.costs",
    }
    _ROOMS = (
        *("changelog", "combiners", "errors", "flows", "messages", "metrics", "panes", "plot", "sparkops"),
        *("testing", "triggers", "windows"),
    )

    def __getattr__(name: str) -> object:
        if name in _ROOMS:
            return import_module(f".{name}", __name__)
        if home := _HOMES.get(name) or ON_SPARK.get(name):
            return getattr(import_module(home, __name__), name)
        if name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        raise no_such_name(name, __dir__())

    def __dir__() -> list[str]:
        return sorted({*__all__, *ON_SPARK, *_ROOMS, "__version__"})
