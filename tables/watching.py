"""A table that is shown as it changes, in a terminal, in a notebook, or line by line in a file.

Guarded by tests/tables/test_tables.py.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO

import pyarrow as pa

from ..errors import InvalidArgument
from ..panes.showing import TablePreview, shown_rows
from .interrupts import ended_within, interrupts

Show = Callable[[pa.Table], object]
"""Shows the first rows of a table, and one row more if there are more."""


def watched(
    read: Callable[[int], pa.Table],
    ended: Callable[[float], bool | None],
    name: str,
    rows: int = 20,
    every: float = 1.0,
    out: TextIO | None = None,
) -> None:
    """Show the first rows of a table each time that they have changed, until `ended` or an interrupt."""
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        raise InvalidArgument(f"rows= must be a whole number of at least 1, but is {rows!r}")
    if every <= 0:
        raise InvalidArgument(f"every= must be more than 0 seconds, but is {every!r}")
    show = _display(out, name, rows)
    before, running = "", True
    with suppress(KeyboardInterrupt), interrupts() as interrupted:
        while running and not interrupted():
            running = not ended_within(ended, every, interrupted)
            table = read(rows + 1)
            if (text := shown_rows(table, rows, name, whole=False).text()) != before:
                show(table)
                before = text


def _display(out: TextIO | None, name: str, rows: int) -> Show:
    """The way to show a table in the place of the one before it."""

    def shown(table: pa.Table, most: int = rows) -> TablePreview:
        return shown_rows(table, min(rows, most), name, whole=False)

    notebook = sys.modules.get("IPython")
    shell = None if out is not None or notebook is None else notebook.get_ipython()
    if notebook is not None and shell is not None and hasattr(shell, "kernel"):
        return _InNotebook(notebook.display, shown)
    out = sys.stdout if out is None else out
    return _InTerminal(out, shown) if out.isatty() else lambda table: out.write(f"{shown(table).text()}\n\n")


class _InNotebook:
    """Shows tables in one output of a cell."""

    def __init__(self, display: Any, shown: Callable[[pa.Table], TablePreview]) -> None:
        self.display, self.shown, self.handle = display, shown, None

    def __call__(self, table: pa.Table) -> None:
        preview = self.shown(table)
        both = {"text/plain": preview.text(), "text/html": preview.html()}
        if self.handle is None:
            self.handle = self.display.display(both, raw=True, display_id=True)
        else:
            self.handle.update(both, raw=True)


class _InTerminal:
    """Shows tables in the same lines of a terminal, by the library rich if it is installed."""

    def __init__(self, out: TextIO, shown: Callable[..., TablePreview]) -> None:
        self.out, self.shown, self.lines = out, shown, 0
        self.rich = False
        with suppress(ImportError):
            import rich.table

            self.rich = rich.table.Table is not None

    def __call__(self, table: pa.Table) -> None:
        # A line that is wrapped, or that has left the screen at the top, could not be written again.
        columns, lines = _size(self.out)
        around = 8 if self.rich else 4
        preview = self.shown(table, max(1, lines - around))
        text = _by_rich(preview, columns) if self.rich else preview.text(columns - 1)
        up = f"\x1b[{self.lines}A\x1b[J" if self.lines else ""
        self.out.write(f"{up}{text}\n")
        self.out.flush()
        self.lines = text.count("\n") + 1


def _by_rich(preview: TablePreview, columns: int) -> str:
    """The text that rich makes of a table for a terminal of so many columns."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=columns, force_terminal=True)
    with console.capture() as capture:
        console.print(preview.rich())
    return capture.get().rstrip("\n")


def _size(out: TextIO) -> os.terminal_size:
    """The columns and lines of a terminal."""
    try:
        size = os.get_terminal_size(out.fileno())
    except (OSError, ValueError):  # no real terminal
        return os.terminal_size((80, 24))
    return size if min(size) > 0 else os.terminal_size((80, 24))


__all__ = ["watched"]
