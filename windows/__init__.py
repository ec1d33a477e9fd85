"""WHERE in event time: windows, their times and how they merge."""

from .aligned import Fixed, Global, Inherit, Sliding
from .calendar import Calendar
from .merging import Merged, union_intervals
from .result_times import POLICIES, holds, policy, result_times
from .sessions import Custom, Sessions
from .spans import Span, span
from .times import MAX_TIME, MIN_TIME, time_column, time_text, timestamp, timestamps
from .window import Assigned, Window

__all__ = [
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
]
