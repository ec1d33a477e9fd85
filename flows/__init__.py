"""Flows: the steps that a user writes over rows, as values that no engine has run yet."""

from .flow import Flow
from .result import Result
from .together.flows_together import together
from .tuning import Tuning
from .union import union

__all__ = ["Flow", "Result", "Tuning", "together", "union"]


def __dir__() -> list[str]:
    return __all__
