"""Panes: the operators of steps, the watermarks that they follow, their state, the shards that drive them."""

from .grouping.grouping import Grouping
from .grouping.operator import Operator
from .process.context import BroadcastContext, KeyContext
from .process.process import BroadcastFunction, KeyFunction
from .state.operator_state import Counts, OperatorState, StepResult
from .watermarks.strategy import WatermarkStrategy
from .watermarks.watermark_strategies import (
    BoundedLag,
    EachBatch,
    IngressTime,
    Monotonic,
    PerSource,
    ProcessingTime,
    Punctuated,
)
from .watermarks.watermarks import Watermarks

__all__ = [
    "BoundedLag",
    "BroadcastContext",
    "BroadcastFunction",
    "Counts",
    "EachBatch",
    "Grouping",
    "IngressTime",
    "KeyContext",
    "KeyFunction",
    "Monotonic",
    "Operator",
    "OperatorState",
    "PerSource",
    "ProcessingTime",
    "Punctuated",
    "StepResult",
    "WatermarkStrategy",
    "Watermarks",
]


def __dir__() -> list[str]:
    return __all__
