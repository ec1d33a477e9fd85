"""Pictures of all keys as files: a page that plays them, or a picture in any format of matplotlib.

Guarded by tests/plot/test_picture_file.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from ..errors import InvalidArgument
from ..local.script import Entry
from .animation_page import page_of
from .picture import History, pictures_of
from .style import MOST_PANELS, new_figure

STEPS = 3
"""The steps of `save`."""

FORMATS = ("html", "pdf", "png", "svg")


def check_path(path: str | PathLike[str], what: str = "a picture") -> str:
    """The format of a picture by the end of its path."""
    if "://" in str(path):
        raise InvalidArgument(f"{what} is written into a file of this machine, not into an address with ://")
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise InvalidArgument(f"{what} is written as .{', .'.join(FORMATS)}, but was given {str(path)!r}: name it so")
    return ending


def save(
    path: str | PathLike[str],
    result: Any,
    script: Sequence[Entry],
    *,
    time: str | None = None,
    where: Mapping[str, Any] | None = None,
    between: Sequence[Any] | None = None,
    title: str | None = None,
    done: Callable[[], object] = lambda: None,
) -> None:
    """Draw the panes of all keys, or of those that are asked for, into a file.

    No window opens, and pyplot's list of open figures stays as it is. Keys have a panel each, or one together if they
    are too many. `done` is called after each of `STEPS` steps.
    """
    ending = check_path(path)
    history = History.of(result, script, time=time, where=where, between=between)
    done()
    if ending == "html":
        page = page_of(history, title or "Panes, step by step", None, getattr(result, "column_names", ()))
        done()
        page.save(path)
    else:
        from .pane_picture import draw_all, size_of

        several = len(history.values_of(history.keys)) if history.keys else 1
        pictures = pictures_of(history, history.keys if 1 < several <= MOST_PANELS else [])
        figure = new_figure(size_of(len(pictures)))
        draw_all(figure, pictures, title=title)
        done()
        figure.savefig(path)
    done()


__all__ = ["FORMATS", "STEPS", "check_path", "save"]
