"""The law kit of flows: random scripts that check the rows a flow leaves against a function of pandas.

It needs the extra `testing`. `docs/how-to/test_a_pipeline.md` teaches it.
"""

try:
    import hypothesis
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "the law kit needs hypothesis: install uncombine[testing]",
        name="hypothesis",
    ) from missing

from .check import assert_rows
from .checks import check_flow, check_script
from .evolutions import check_evolution
from .scripts import changelogs, scripts

__all__ = ["assert_rows", "changelogs", "check_evolution", "check_flow", "check_script", "scripts"]


def __dir__() -> list[str]:
    return __all__
