"""Local runs: scripts, tables and files through any flow, without Spark."""

from ..local_result import Result
from ..plot.costs import trigger_costs
from .data_files import files
from .running import run
from .sources import source

__all__ = ["Result", "files", "run", "source", "trigger_costs"]


def __dir__() -> list[str]:
    return __all__
