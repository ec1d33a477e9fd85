"""Panes: accumulation modes, pane info, watermarks, the grouping operator without an engine, and the local runner."""

from .flow import Flow
from .grouping import Grouping
from .operators.grouping.operator import Operator
from .operators.state import Counts, OperatorState, Stepped
from .script import Clock, Elements, Watermark
from .united import union
from .watermark_strategies import BoundedLag, IngressTime, Monotonic, PerSource, Punctuated
from .watermarks import Watermarks

__all__ = [
    "BoundedLag",
    "Clock",
    "Counts",
    "Elements",
    "Flow",
    "Grouping",
    "IngressTime",
    "Monotonic",
    "Operator",
    "OperatorState",
    "PerSource",
    "Punctuated",
    "Stepped",
    "Watermark",
    "Watermarks",
    "union",
]
