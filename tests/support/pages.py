"""Runs the examples of a page, as somebody would who copies its blocks one after the other.

    python tests/support/pages.py README.md ...

A block of Python has no prompts. What it prints, or the error that it ends with, stands in the block of text after it.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
WIDTH = 88
"""The signs of the longest line of a block that a page shows without a bar to push."""
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Example:
    """A block of Python, and what the page says that it prints."""

    code: str
    output: str
    line: int


def examples(page: str) -> Iterator[Example]:
    """The examples of a page."""
    fences = list(FENCE.finditer(page))
    for fence, after in zip_longest(fences, fences[1:]):
        if fence[1] != "python":
            continue
        shown = after is not None and after[1] == "text" and not page[fence.end() : after.start()].strip()
        output = after[2] if shown and after is not None else ""
        yield Example(code=fence[2], output=output, line=page.count("\n", 0, fence.start()) + 2)


def failures(page: str, name: str) -> list[str]:
    """The examples that print something else than the page says."""
    found, names = list[str](), dict[str, Any]({"__name__": "__main__"})
    for example in examples(page):
        output = printed(example, name, names)
        if not doctest.OutputChecker().check_output(example.output, output, FLAGS):
            found.append(f"{name}:{example.line}\n{example.code}\nshould print\n{example.output}\nand prints\n{output}")
    return found


def unfit(page: str) -> list[str]:
    """The lines of blocks that have a prompt, or are too long."""
    lines = [line for fence in FENCE.finditer(page) for line in fence[2].splitlines()]
    return [line for line in lines if line.startswith(">>>") or len(line) > WIDTH]


def printed(example: Example, name: str, names: dict[str, Any]) -> str:
    """The output of the code of an example, with the error that it ends with."""
    out = io.StringIO()
    # Functions of a page can be looked into where Python finds its lines.
    code = compile("\n" * (example.line - 1) + example.code, name, "exec")
    with contextlib.redirect_stdout(out):
        try:
            exec(code, names)
        except Exception as error:
            print("".join(traceback.format_exception_only(error)))
    return out.getvalue()


def names_of(page: Path) -> dict[str, Any]:
    """The names after all examples of a page have run, without what they print."""
    names: dict[str, Any] = {"__name__": page.stem}
    for example in examples(page.read_text(encoding="utf-8")):
        printed(example, str(page), names)
    return names


if __name__ == "__main__":
    problems = [problem for path in sys.argv[1:] for problem in failures(Path(path).read_text("utf-8"), path)]
    print("\n\n".join(problems) or "the examples of the pages print what they say")
    sys.exit(len(problems))

__all__ = ["examples", "failures", "names_of", "unfit"]
