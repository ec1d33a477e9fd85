"""The words for a checkpoint whose query has not ended a batch, so that there is no state to look into.

Guarded by tests/sparkops/checkpoints/test_contents.py and tests/sparkops/checkpoints/test_evolved_checkpoints.py.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from ..query_log import is_checkpoint
from .positions import is_evolved


def unended(spark: SparkSession, path: str) -> str:
    """Why a folder has nothing to look into, as a sentence."""
    if is_evolved(path):
        return (
            f"the query of {path!r} has not ended a batch since uc.evolve() made its checkpoint: start it once, or see "
            "the former one"
        )
    if is_checkpoint(spark, path):
        return (
            f"the query of {path!r} has not ended its first batch yet: ask again when it has; uc.watch(query) shows "
            "what Spark does meanwhile"
        )
    return f"{path!r} is no checkpoint of a streaming query that has ended a batch: it has no folder 'commits'"


__all__ = ["unended"]
