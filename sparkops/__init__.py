"""Flows on Spark, in batch as in streams; accumulators as its columns."""

from __future__ import annotations

from importlib.util import find_spec

from ..errors import SparkUnavailable

if find_spec("pyspark") is None:
    raise SparkUnavailable("this part of uncombine needs pyspark: install it with pip install 'uncombine[spark]'")

from .checkpoints.contents import Checkpoint, checkpoint
from .combine_per_key import combine_per_key
from .progress import Progress, StageProgress, progress, watch
from .reasons import why
from .session import session
from .stored.accumulator import Accumulator

__all__ = [
    "Accumulator",
    "Checkpoint",
    "Progress",
    "StageProgress",
    "checkpoint",
    "combine_per_key",
    "progress",
    "session",
    "watch",
    "why",
]


def __dir__() -> list[str]:
    return __all__
