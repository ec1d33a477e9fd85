"""Windows: the intervals of event time in which rows are grouped, apart or merged."""

from .calendar import Calendar
from .custom import Custom
from .fixed import Fixed
from .global_window import Global
from .hulls import Hulls as Hulls
from .hulls import union_intervals as union_intervals
from .hulls import union_runs as union_runs
from .inherit import Inherit
from .policies import POLICIES as POLICIES
from .policies import holds as holds
from .policies import policy as policy
from .policies import result_times as result_times
from .sessions import Sessions
from .sliding import Sliding
from .spans import Length as Length
from .spans import Span, span
from .times import MAX_TIME as MAX_TIME
from .times import MIN_TIME as MIN_TIME
from .times import NEVER as NEVER
from .times import time_column as time_column
from .times import time_text as time_text
from .times import times_of as times_of
from .times import timestamp
from .times import timestamps as timestamps
from .window import RowWindows as RowWindows
from .window import Window as Window
from .words import WINDOW_WORDS as WINDOW_WORDS
from .words import as_window as as_window

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


def __dir__() -> list[str]:
    return __all__
