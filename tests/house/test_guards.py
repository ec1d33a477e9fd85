"""A reader finds the tests of every module, by the rules of docs/design/tests.md."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from library import BELOW, MODULES, ROOT

TESTS = sorted(ROOT.glob("tests/**/test_*.py"))
PAGE = (ROOT / "docs" / "design" / "tests.md").read_text()
TEST = re.compile(r"\btests/[\w/]*test_\w+\.py\b")


def guards(module: Path, source: str) -> str | None:
    """The rule that finds the tests of a module."""
    if (ROOT / "tests" / module.parent / f"test_{module.name}").exists():
        return "name"
    named = TEST.findall(ast.get_docstring(ast.parse(source)) or "")
    if named and all((ROOT / test).exists() for test in named):
        return "docstring"
    if ".".join(("uncombine", *module.with_suffix("").parts)) in imported_by_tests():
        return "import"
    return "table" if module.as_posix() in table() else None


@cache
def imported_by_tests() -> frozenset[str]:
    """Modules of the library that some test imports by their own names."""
    found: set[str] = set()
    for test in TESTS:
        for node in ast.walk(ast.parse(test.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(found)


@cache
def table() -> dict[str, list[str]]:
    """The modules in the table of the page, each with its tests."""
    rows = [line.split("|") for line in PAGE.splitlines() if line.startswith("| `")]
    return {module: TEST.findall(row[2]) for row in rows for module in re.findall(r"`([\w/]+\.py)`", row[1])}


INSIDE = [module for module in MODULES if module.parts[0] in BELOW and module.stem != "__init__"]


def test_every_module_has_tests_that_a_reader_finds() -> None:
    assert [str(module) for module in INSIDE if guards(module, (ROOT / module).read_text()) is None] == []


def test_the_table_names_modules_and_tests_that_are_there() -> None:
    assert set(table()) <= {module.as_posix() for module in INSIDE}
    assert [test for tests in table().values() for test in tests if not (ROOT / test).exists()] == []
    assert all(table().values())


@pytest.mark.parametrize(
    ("module", "source", "rule"),
    [
        ("combiners/topk.py", "", "name"),
        ("panes/new.py", '"""News, guarded by tests/panes/grouping/test_rules.py."""', "docstring"),
        ("panes/new.py", '"""News, guarded by tests/panes/test_nothing.py."""', None),
        ("combiners/rows/columns.py", "", "import"),
        ("combiners/laws/checks.py", "", "table"),
        ("panes/new.py", "", None),
    ],
)
def test_the_rules(module: str, source: str, rule: str | None) -> None:
    assert guards(Path(module), source) == rule
