"""WHERE in event time: windows, their times and how they merge."""

from .calendar import Calendar
from .custom import Custom
from .fixed import Fixed
from .global_window import Global
from .inherit import Inherit
from .merging import Merged, union_intervals
from .policies import POLICIES, holds, policy, result_times
from .sessions import Sessions
from .sliding import Sliding
from .spans import Length, Span, span
from .times import MAX_TIME, MIN_TIME, time_column, time_text, times_of, timestamp, timestamps
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
