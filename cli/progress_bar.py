"""A bar that shows how far long work of the command is.

Guarded by tests/cli/test_command_line.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(words: str, steps: int | None = None) -> Iterator[Callable[[], object]]:
    """Show a bar on stderr while the block runs, and give a function that counts a step.

    Nothing is shown if stderr is no terminal, or if the library rich is not installed. Without a number of steps the
    bar only moves.

    >>> with progress_bar("replaying", 2) as done:
    ...     for _ in range(2):
    ...         _ = done()
    """
    if not _can_show():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(words, total=steps)
        yield lambda: bar.advance(task)


def _can_show() -> bool:
    if not sys.stderr.isatty():
        return False
    try:
        import rich.progress
    except ImportError:
        return False
    return rich.progress.Progress is not None


__all__ = ["progress_bar"]


def __dir__() -> list[str]:
    return __all__
