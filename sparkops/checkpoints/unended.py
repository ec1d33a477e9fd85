"""The error of a checkpoint whose query has not ended a batch, so that there is no state to look into.

Guarded by tests/sparkops/checkpoints/test_contents.py and tests/sparkops/checkpoints/test_evolved_checkpoints.py.
"""

from __future__ import annotations

import os

from pyspark.sql import SparkSession

from ...errors import InvalidArgument
from ..query_log import is_checkpoint
from .positions import is_evolved


class NoBatchYet(InvalidArgument):
    """A query has started, and its first batch has not ended.

    >>> issubclass(NoBatchYet, InvalidArgument)
    True
    """


def require_folder(path: str) -> None:
    """Raise if there is no folder, before Spark is started, which would read this disk.

    >>> require_folder(".")
    """
    if "://" not in path and "HADOOP_CONF_DIR" not in os.environ and not os.path.isdir(path):
        raise InvalidArgument(f"there is no folder {path!r}: name the checkpoint of a query")


def unended(spark: SparkSession, path: str) -> InvalidArgument:
    """Why a folder has nothing to look into."""
    if is_evolved(path):
        return InvalidArgument(
            f"the query of {path!r} has not ended a batch since its checkpoint was made of another one: start it once, "
            "or see the former one"
        )
    if is_checkpoint(spark, path):
        return NoBatchYet(
            f"the query of {path!r} has not ended its first batch yet: ask again when it has; uc.watch(query) shows "
            "what Spark does meanwhile"
        )
    return InvalidArgument(
        f"{path!r} is no checkpoint of a streaming query that has ended a batch: it has no folder 'commits'"
    )


__all__ = ["NoBatchYet", "require_folder", "unended"]
