"""HOW refinements relate: accumulation modes, pane info, the engine-free grouping operator, the local runner."""

from .grouping import Grouping
from .operator import Counts, Operator, OperatorState, Stepped
from .watermarks import Watermarks

__all__ = ["Counts", "Grouping", "Operator", "OperatorState", "Stepped", "Watermarks"]
