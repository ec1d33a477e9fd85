"""A table that is shown as it changes, in a terminal, in a notebook, or line by line in a file.

Guarded by tests/panes/test_tables.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TextIO

import pyarrow as pa

from ...errors import InvalidArgument

WIDEST = 40
"""The characters of a value that are shown."""


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
    show = _display(out)
    shown, running = "", True
    try:
        while running:
            running = not ended(every)
            text = text_of(read(rows + 1), name, rows)
            if text != shown:
                show(text)
                shown = text
    except KeyboardInterrupt:
        pass


def text_of(table: pa.Table, name: str, rows: int) -> str:
    """The first rows of a table as text in columns.

    >>> print(text_of(pa.table({"user": ["ada", "bob"], "n": [12, 3]}), "totals", 1))
    totals
    user  n
    ada   12
    ... more rows
    """
    lines = [table.column_names]
    lines += [list(map(_text, row.values())) for row in table.slice(0, rows).to_pylist()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    more = ["... more rows"] if table.num_rows > rows else []
    return "\n".join([name, *texts, *more])


def _text(value: object) -> str:
    text = "" if value is None else str(value).replace("\n", " ").replace("\r", " ").replace("\x1b", " ")
    return text if len(text) <= WIDEST else text[: WIDEST - 3] + "..."


def _display(out: TextIO | None) -> Callable[[str], object]:
    """The way to show a text in the place of the one before it."""
    notebook = sys.modules.get("IPython")
    shell = None if out is not None or notebook is None else notebook.get_ipython()
    if notebook is not None and shell is not None and hasattr(shell, "kernel"):
        return _InNotebook(notebook.display)
    out = sys.stdout if out is None else out
    return _InTerminal(out) if out.isatty() else lambda text: out.write(f"{text}\n\n")


class _InNotebook:
    """Shows texts in one output of a cell."""

    def __init__(self, display: Any) -> None:
        self.display, self.handle = display, None

    def __call__(self, text: str) -> None:
        shown = {"text/plain": text}
        if self.handle is None:
            self.handle = self.display.display(shown, raw=True, display_id=True)
        else:
            self.handle.update(shown, raw=True)


class _InTerminal:
    """Shows texts in the same lines of a terminal."""

    def __init__(self, out: TextIO) -> None:
        self.out, self.lines = out, 0

    def __call__(self, text: str) -> None:
        up = f"\x1b[{self.lines}A\x1b[J" if self.lines else ""
        self.out.write(f"{up}{text}\n")
        self.out.flush()
        self.lines = text.count("\n") + 1


__all__ = ["text_of", "watched"]
