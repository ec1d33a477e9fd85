"""Pictures of flows: panes, watermarks, windows, rolling results, the costs of triggers, the life of a table."""

from .animation_page import Animation, animation
from .changelog_picture import changelog
from .cost_picture import trigger_costs
from .pane_picture import panes
from .rolled_picture import rolling
from .watermark_picture import watermark
from .window_picture import windows

__all__ = ["Animation", "animation", "changelog", "panes", "rolling", "trigger_costs", "watermark", "windows"]


def __dir__() -> list[str]:
    return __all__
