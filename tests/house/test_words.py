"""One word for one thing: docstrings and messages name the thing first and keep to the glossary."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from library import MODULES, ROOT

PAGES = [
    "docs/algebra.md",
    "docs/combiners.md",
    "docs/concepts.md",
    "docs/semantics.md",
    "docs/triggers.md",
    *(p.relative_to(ROOT).as_posix() for p in sorted((ROOT / "docs/design").glob("*.md"))),
]

OPENINGS = re.compile(r"(What|Whether|How|Where|Which)\b")
"""A docstring that opens so does not name what it is about."""

OTHERS = {
    r"tak(e|es|en|ing) back": "retract, retraction",
    r"ow(e|es|ed|ing)\b|debts?\b|ghosts?\b": "outstanding pane",
    r"horizons?\b": "expiry",
    r"(ahead of|behind|beyond) the": "after, before",
    r"removals?\b": "retraction",
}
"""Words that the glossary replaces, and the words to write."""


def texts(source: str) -> Iterator[tuple[int, str, bool]]:
    """Line and text of each string of a module but single names, which are no prose; and whether it is a docstring."""
    tree = ast.parse(source)
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            docstring = id(node) in documented
            if docstring or not node.value.isidentifier():
                yield node.lineno, node.value, docstring


def faults_of_text(text: str, opens: bool) -> list[str]:
    """The words of a text that should be others."""
    found = [f"opens with {text.split()[0]}"] if opens and OPENINGS.match(text) else []
    for words, better in OTHERS.items():
        found += [f"{m[0]!r}: write {better}" for m in re.finditer(rf"\b(?:{words})", text)]
    return found


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_a_module_is_in_plain_words(module: Path) -> None:
    found = texts((ROOT / module).read_text())
    assert [f"{module}:{line} {fault}" for line, text, opens in found for fault in faults_of_text(text, opens)] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_in_plain_words(page: str) -> None:
    assert faults_of_text((ROOT / page).read_text(), opens=False) == []


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('"""Whether rows come."""', 1),
        ('def f():\n    """What is owed."""', 2),
        ('N = 1\n"""Where windows end."""', 1),
        ('raise E(f"{x} lies beyond the horizon")', 2),
        ('raise E("rows are taken back")', 1),
        ('"""True if rows come."""\nx = "What"', 0),
        ('COLUMN = "owed"', 0),
        ('"""The rows, however they came; they borrow, and are ahead by a second."""', 0),
    ],
)
def test_a_wrong_word_is_seen(source: str, count: int) -> None:
    assert sum(len(faults_of_text(text, opens)) for _, text, opens in texts(source)) == count
