"""Names of PySpark that are not public stand in one module, where each has a test."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOME = "sparkops/spark_private.py"

PUBLIC = {
    "pyspark",
    "pyspark.errors",
    "pyspark.sql",
    "pyspark.sql.datasource",
    "pyspark.sql.functions",
    "pyspark.sql.streaming",
    "pyspark.sql.streaming.datasource",
    "pyspark.sql.streaming.listener",
    "pyspark.sql.types",
}
"""The modules of PySpark whose names its API reference lists, or that hand their values to users, as listeners do."""

MODULES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in ROOT.rglob("*.py")
    if not any(part.startswith(".") or part in ("out", "build", "dist") for part in path.relative_to(ROOT).parts)
)


def private_names(source: str) -> set[str]:
    """The names of PySpark's in a module that are not public: imports, and attributes that nothing here defines."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    defined = set(_defined(nodes))
    return {name for node in nodes for name in _imports(node)} | {
        name for node in nodes for name in _reached(node) if name not in defined
    }


def _imports(node: ast.AST) -> Iterator[str]:
    """The names that are not public of those that a statement imports from PySpark."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if _is_spark(alias.name) and alias.name not in PUBLIC)
    elif isinstance(node, ast.ImportFrom) and not node.level and _is_spark(node.module or ""):
        for alias in node.names:
            full = f"{node.module}.{alias.name}"
            # Of what the packages hold, modules are written small.
            small = node.module in ("pyspark", "pyspark.sql") and alias.name.islower()
            if node.module not in PUBLIC or alias.name.startswith("_") or (small and full not in PUBLIC):
                yield full


def _is_spark(module: str) -> bool:
    return module.split(".")[0] == "pyspark"


def _reached(node: ast.AST) -> Iterator[str]:
    """Names with one underscore that something other than `self` or `cls` is asked for."""
    name = None
    if isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
        name = node.attr
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
        name = getattr(node.args[1], "value", None)
    if isinstance(name, str) and name.startswith("_") and not name.startswith("__"):
        yield name


def _defined(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def test_the_library_names_only_what_is_public() -> None:
    modules = [name for name in MODULES if name.startswith("sparkops/") and name != HOME]
    assert {module: found for module in modules if (found := private_names((ROOT / module).read_text()))} == {}


def test_tests_take_private_names_from_the_library() -> None:
    named = {name: private_names((ROOT / name).read_text()) for name in MODULES if name.startswith("tests/")}
    private = {module: {name for name in found if name.startswith("pyspark")} for module, found in named.items()}
    assert {module: found for module, found in private.items() if found} == {}


def test_each_private_name_has_a_test() -> None:
    tested = (ROOT / "tests/sparkops/test_spark_private.py").read_text()
    tree = ast.parse((ROOT / HOME).read_text())
    offered = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")}
    offered |= {alias.asname for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    offered.discard(None)
    assert "arrow_of" in offered
    assert {name for name in offered if name not in tested} == set()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from pyspark.sql.pandas.types import to_arrow_type", "pyspark.sql.pandas.types.to_arrow_type"),
        ("import pyspark.worker", "pyspark.worker"),
        ("from pyspark import worker", "pyspark.worker"),
        ("def f():\n    from pyspark.sql import _typing", "pyspark.sql._typing"),
        ("df._jdf.queryExecution()", "_jdf"),
        ("getattr(df, '_jdf')", "_jdf"),
        ("self.df._jdf", "_jdf"),
    ],
)
def test_a_private_name_is_seen(source: str, found: str) -> None:
    assert private_names(source) == {found}


@pytest.mark.parametrize(
    "source",
    [
        "from pyspark.sql import functions as F",
        "from pyspark.sql.functions import arrow_udf",
        "from .spark_private import arrow_of",
        "import numpy._core",
        "self._operator = self._made()",
        "class A:\n    def __init__(self):\n        self._x = 1\n    def __eq__(self, other):\n        return other._x",
        "df.__class__",
    ],
)
def test_what_is_public_or_ours_is_let_pass(source: str) -> None:
    assert private_names(source) == set()
