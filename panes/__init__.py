"""HOW refinements relate: accumulation modes, pane info, the engine-free grouping operator, the local runner."""

from .grouping import Grouping
from .operator import Operator
from .script import Clock, Elements, Watermark
from .state import Counts, OperatorState, Stepped
from .watermarks import Watermarks

__all__ = ["Clock", "Counts", "Elements", "Grouping", "Operator", "OperatorState", "Stepped", "Watermark", "Watermarks"]
