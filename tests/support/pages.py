"""The names that the examples of a page define."""

from __future__ import annotations

import doctest
import io
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any


def code_of(page: Path) -> list[str]:
    """The statements of a page's examples, one after another."""
    return [example.source for example in doctest.DocTestParser().get_examples(page.read_text(encoding="utf-8"))]


def names_of(page: Path) -> dict[str, Any]:
    """The names after all examples have run, without what they print."""
    names: dict[str, Any] = {"__name__": page.stem}
    with redirect_stdout(io.StringIO()):
        for source in code_of(page):
            exec(compile(source, str(page), "single"), names)
    return names
