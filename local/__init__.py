"""Flows in this process: over a script, tables or files, without Spark."""

from .data_files import files
from .local_result import Result
from .running import run
from .script import Clock, Elements, Watermark
from .sources import source

__all__ = ["Clock", "Elements", "Result", "Watermark", "files", "run", "source"]


def __dir__() -> list[str]:
    return __all__
