"""Flows on Spark, in batch as in streams; accumulators as its columns."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ..errors import SparkUnavailable

if find_spec("pyspark") is None:
    raise SparkUnavailable("this part of uncombine needs pyspark: install it with pip install 'uncombine[spark]'")

__all__ = ["Checkpoint", "Progress", "StageProgress", "combine_per_key"]

if TYPE_CHECKING:
    from .checkpoints.contents import Checkpoint
    from .per_key import combine_per_key
    from .progress import Progress, StageProgress
else:
    # Loaded at first use: a Python process of Spark needs a part of the package.
    _HOMES = {
        "Checkpoint": ".checkpoints.contents",
        "Progress": ".progress",
        "StageProgress": ".progress",
        "combine_per_key": ".per_key",
    }

    def __getattr__(name: str) -> object:
        if name in _HOMES:
            return getattr(import_module(_HOMES[name], __name__), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
