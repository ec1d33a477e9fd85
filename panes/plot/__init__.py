"""Pictures of panes: event time to the right, processing time upwards, as in the Dataflow model."""

from .pane_picture import panes
from .pane_picture import save as save

__all__ = ["panes"]


def __dir__() -> list[str]:
    return __all__
