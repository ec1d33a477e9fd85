"""Flows: steps over rows and the questions that one may ask of them, without an engine."""

from .flow import Flow
from .union import union

__all__ = ["Flow", "union"]


def __dir__() -> list[str]:
    return __all__
