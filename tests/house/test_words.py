"""One word for one thing: docstrings and messages name the thing first and keep to the glossary."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from library import MODULES, ROOT, source_of

AROUND = sorted(
    path.relative_to(ROOT)
    for folder in ("tests", "benchmarks", "docs", "notebooks")
    for path in (ROOT / folder).rglob("*.py")
    if path != Path(__file__)
)
"""Python outside the package. This file is left out, because it has the words themselves."""

PAGES = [
    *sorted(path.name for path in ROOT.glob("*.md")),
    *(
        path.relative_to(ROOT).as_posix()
        for folder in ("benchmarks", "docs")
        for path in sorted((ROOT / folder).rglob("*.md"))
    ),
]

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

TAGLINE = "**Aggregations you can take back.**"
"""The one place where a page may say so."""

OPENINGS = re.compile(r"(What|Whether|How|Where|Which)\b")
"""A docstring that opens so does not name what it is about."""

OTHERS = {
    r"tak(e|es|en|ing) back": "retract, retraction",
    r"ow(e|es|ed|ing)\b|debts?\b|ghosts?\b": "outstanding pane",
    r"horizons?\b": "expiry",
    r"(ahead of|behind|beyond) the": "after, before",
    r"removals?\b": "retraction",
    r"anew\b": "again",
    r"work(s|ed|ing)? out\b": "compute",
    r"whoever\b": "the reader, the source, the one that",
}
"""Words that the glossary replaces, and the words to write."""

SOME = re.compile(rf"\b(?:{'|'.join(OTHERS)})")
"""One of them, whichever: most texts have none."""


def folder_of(module: Path) -> str:
    """The folder at the top of the tree that a module is in."""
    return module.parts[0] if len(module.parts) > 1 else "."


def texts(source: str) -> Iterator[tuple[int, str, bool]]:
    """Line and text of each string of a module but single names, which are no prose; and whether it is a docstring."""
    documented = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr):  # comes before its value
            documented.add(id(node.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            docstring = id(node) in documented
            if docstring or not node.value.isidentifier():
                yield node.lineno, node.value, docstring


def faults_of_text(text: str, opens: bool) -> list[str]:
    """The words of a text that should be others."""
    found = [f"opens with {text.split()[0]}"] if opens and OPENINGS.match(text) else []
    for words, better in OTHERS.items() if SOME.search(text) else ():
        found += [f"{m[0]!r}: write {better}" for m in re.finditer(rf"\b(?:{words})", text)]
    return found


def names_and_comments(source: str) -> Iterator[tuple[int, str, bool]]:
    """Line and text of each comment, and of each name where it is first, with spaces between its words."""
    seen = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string, False
        elif token.type == tokenize.NAME and token.string not in seen:
            seen.add(token.string)
            yield token.start[0], token.string.replace("_", " ").strip().lower(), False


def faults_of_module(source: str) -> list[tuple[int, str]]:
    """Line and fault of each wrong word of a module."""
    found = [*texts(source), *names_and_comments(source)]
    return [(line, fault) for line, text, opens in found for fault in faults_of_text(text, opens)]


@pytest.mark.parametrize("folder", sorted({folder_of(module) for module in [*MODULES, *AROUND]}))
def test_modules_are_in_plain_words(folder: str) -> None:
    modules = [module for module in [*MODULES, *AROUND] if folder_of(module) == folder]
    assert {str(module): found for module in modules if (found := faults_of_module(source_of(module)))} == {}


def test_pages_are_in_plain_words() -> None:
    texts = {page: source_of(Path(page)).replace(TAGLINE, "") for page in PAGES}
    assert {page: found for page, text in texts.items() if (found := faults_of_text(text, opens=False))} == {}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_in_plain_words(path: Path) -> None:
    cells = json.loads(path.read_text())["cells"]
    sources = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    assert [fault for kind, text in sources if kind == "markdown" for fault in faults_of_text(text, opens=False)] == []
    assert [fault for kind, text in sources if kind == "code" for fault in faults_of_module(text)] == []


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('"""Whether rows come."""', 1),
        ('def f():\n    """What is owed."""', 2),
        ('N = 1\n"""Where windows end."""', 1),
        ('raise E(f"{x} lies beyond the horizon")', 2),
        ('raise E("rows are taken back")', 1),
        ("# the window is ahead of the watermark, and worked out anew\nx = 1", 3),
        ("def test_rows_are_taken_back():\n    pass", 1),
        ("taken_back = HORIZON", 2),
        ("self.owed.debts += 1", 2),
        ('"""True if rows come."""\nx = "What"', 0),
        ('COLUMN = "owed"', 0),
        ('"""The rows, however they came; they borrow, and are ahead by a second."""', 0),
    ],
)
def test_a_wrong_word_is_seen(source: str, count: int) -> None:
    assert len(faults_of_module(source)) == count
