"""Panes: flows and unions, watermarks, modes and pane info, and the local runner.

The operators that keep state, the shards that drive them and the form in which state is stored are here too, all
without an engine.
"""

from .flow import Flow
from .grouping import Grouping
from .operators.grouping.operator import Operator
from .operators.process.context import KeyContext
from .operators.process.process import KeyFunction
from .operators.state import Counts, OperatorState, Stepped
from .script import Clock, Elements, Watermark
from .strategy import Strategy
from .united import union
from .watermark_strategies import BoundedLag, EachBatch, IngressTime, Monotonic, PerSource, ProcessingTime, Punctuated
from .watermarks import Watermarks

__all__ = [
    "BoundedLag",
    "Clock",
    "Counts",
    "EachBatch",
    "Elements",
    "Flow",
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
    "Stepped",
    "Strategy",
    "Watermark",
    "Watermarks",
    "union",
]


def __dir__() -> list[str]:
    return __all__
