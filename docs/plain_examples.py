"""The examples of docstrings as blocks of pages: code that runs when it is copied, and what it prints in a block after.

Guarded by tests/house/test_docs.py.
"""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator

PROMPT = re.compile(r"^ *>>> ", re.MULTILINE)
WIDTH = 88
"""The signs of the longest line of a block."""
SHOWS = {"print", "show", "watch"}
"""Functions that print by themselves."""
ERROR = re.compile(r"Traceback .*\n(?:[ .].*\n)*(\S(?:.|\n)*)")
BY_REPR = re.compile(r"(array|Decimal|datetime\.\w+|\w+Type)\(|<(?!BLANKLINE)")
"""The beginning of what a prompt shows of a value that prints otherwise."""


def plain(text: str) -> str:
    """A docstring with its examples as fenced blocks of code, each with a block of what it prints."""
    if not PROMPT.search(text):
        return text
    return re.sub(r"\n{3,}", "\n\n", "\n".join(_parts(text))).strip("\n")


def _parts(text: str) -> Iterator[str]:
    code: list[str] = []
    for part in doctest.DocTestParser().parse(text):
        if isinstance(part, doctest.Example):
            source, output = shown(part)
            code.append(source)
            if output:
                yield from (fence("python", "\n".join(code)), fence("text", output))
                code = []
        elif part:
            if code:
                yield fence("python", "\n".join(code))
                code = []
            yield part.strip("\n")
    if code:
        yield fence("python", "\n".join(code))


def fence(kind: str, text: str) -> str:
    """A block of a page, with empty lines around it."""
    return f"\n```{kind}\n{text}\n```\n"


def shown(example: doctest.Example) -> tuple[str, str]:
    """The code of an example as a program has it, and what it prints."""
    source = re.sub(r"  # doctest: .*", "", example.source).rstrip("\n")
    output = example.want.replace("<BLANKLINE>", "").strip("\n")
    if error := ERROR.fullmatch(output):
        return source, error[1]
    last = ast.parse(source).body[-1]
    if not output or not isinstance(last, ast.Expr) or _prints(last.value):
        return source, output
    value = ast.get_source_segment(source, last.value) or ""
    before, _, after = source.rpartition(value)
    comment = re.search(r" *#.*", after)
    if BY_REPR.match(output):
        value = f"repr({value})"
    elif output[0] in "'\"" and isinstance(text := literal(output), str):
        output = text
    elif isinstance(last.value, ast.Tuple) and not value.startswith("("):
        value = f"({value})"
    call = f"print({value})"
    if longest(call) > WIDTH:
        call = f"print(\n    {value.replace(chr(10), chr(10) + '    ')}\n)"
    return before.rstrip("(") + call + (comment[0] if comment else ""), output


def _prints(value: ast.expr) -> bool:
    """True for the call of a function that prints by itself."""
    called = value.func if isinstance(value, ast.Call) else None
    return getattr(called, "id", getattr(called, "attr", "")) in SHOWS


def literal(text: str) -> object:
    """The value that a text writes, or None."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None


def longest(text: str) -> int:
    """The length of the longest line of a text."""
    return max(map(len, text.split("\n")))
