"""Aggregations that a later row can correct: columnar combiners with retraction, by window, trigger, pane."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from . import combiners, flows, panes, triggers, windows
from .advice import no_such_name
from .combiners import *
from .errors import UncombineError
from .flows import *
from .panes import *
from .triggers import *
from .windows import *

__version__ = "0.1.0"

ON_SPARK = ("Accumulator", "progress", "session", "watch")
"""The public names that need pyspark; `from uncombine import *` leaves them out."""

__all__ = [
    "Clock",
    "Elements",
    "Files",
    "UncombineError",
    "Watermark",
    "changelog",
    "flow",
    "plot",
    "trigger_costs",
    *combiners.__all__,
    *flows.__all__,
    *panes.__all__,
    *triggers.__all__,
    *windows.__all__,
]

if TYPE_CHECKING:
    from . import changelog, plot, sparkops, testing
    from .doors import flow
    from .files.files import Files
    from .local.script import Clock, Elements, Watermark
    from .plot.costs import trigger_costs
    from .sparkops import *
else:
    # Loaded at first use, so that `import uncombine` stays light and needs no Spark.
    _LAZY = {
        "changelog": ".changelog",
        "plot": ".plot",
        "sparkops": ".sparkops",
        "testing": ".testing",
    }
    _HOMES = {
        "Clock": ".local.script",
        "Elements": ".local.script",
        "Files": ".files.files",
        "Watermark": ".local.script",
        "flow": ".doors",
        "trigger_costs": ".plot.costs",
    }
    _ROOMS = ("combiners", "errors", "flows", "panes", "triggers", "windows")

    def __getattr__(name: str) -> object:
        if name in _LAZY:
            return import_module(_LAZY[name], __name__)
        if name in _HOMES:
            return getattr(import_module(_HOMES[name], __name__), name)
        if name in ON_SPARK:
            return getattr(import_module(".sparkops", __name__), name)
        if name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        raise no_such_name(name, __dir__())

    def __dir__() -> list[str]:
        return sorted({*__all__, *_LAZY, *ON_SPARK, *_ROOMS, "__version__"})
