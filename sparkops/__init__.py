"""The same aggregations, windows, triggers and panes on Spark."""

from __future__ import annotations

from importlib.util import find_spec

from ..errors import SparkUnavailable

if find_spec("pyspark") is None:
    raise SparkUnavailable(
        "this part of uncombine runs on Spark, and pyspark is missing: pip install 'uncombine[spark]'"
    )

from .session import session

__all__ = ["session"]
