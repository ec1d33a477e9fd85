"""Flows on Spark, in batch as in streams; accumulators as its columns."""

from __future__ import annotations

from importlib.util import find_spec

from ..errors import SparkUnavailable

if find_spec("pyspark") is None:
    raise SparkUnavailable("this part of uncombine needs pyspark: install it with pip install 'uncombine[spark]'")

from .combine_per_key import combine_per_key
from .progress import Progress, StageProgress, progress, watch
from .session import session
from .stored.columns import add_udf, extract_udf, merge_udf, uncombine_udf
from .stored.dataframes import accumulate, extract_accumulated, merge_accumulated, uncombine_accumulated
from .udfs import as_arrow_udf, as_pandas_udf, register

__all__ = [
    "Progress",
    "StageProgress",
    "accumulate",
    "add_udf",
    "as_arrow_udf",
    "as_pandas_udf",
    "combine_per_key",
    "extract_accumulated",
    "extract_udf",
    "merge_accumulated",
    "merge_udf",
    "progress",
    "register",
    "session",
    "uncombine_accumulated",
    "uncombine_udf",
    "watch",
]


def __dir__() -> list[str]:
    return __all__
