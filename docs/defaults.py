"""Defaults of arguments as a reader would write them: values, and not the names or functions that give them.

Guarded by tests/house/test_docs.py.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

CONSTANT = re.compile(r"_?[A-Z][A-Z_]+")


def with_defaults(owner: Any, parameter: inspect.Parameter) -> inspect.Parameter:
    """A parameter whose default is the value that the factory of a field makes."""
    if inspect.isclass(owner) and is_dataclass(owner):
        for field in fields(owner):
            if field.name == parameter.name and callable(field.default_factory):
                return parameter.replace(default=field.default_factory())
    return parameter


def plain_defaults(source: str, module: str) -> str:
    """A module whose defaults are values, for a reader that does not run it, as the reference of the site is one."""
    lines = [line.encode() for line in source.splitlines()]
    for node, text in sorted(_defaults(ast.parse(source), module), key=lambda found: _place(found[0]), reverse=True):
        last = node.end_lineno - 1
        after = lines[last][node.end_col_offset :]
        lines[node.lineno - 1 : last + 1] = [lines[node.lineno - 1][: node.col_offset] + text.encode() + after]
    return b"\n".join(lines).decode() + "\n"


def _place(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _defaults(tree: ast.Module, module: str) -> Iterator[tuple[Any, str]]:
    """The parts of a module that are written in another way, each with its new text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            given: list[Any] = [*node.args.defaults, *node.args.kw_defaults]
        elif isinstance(node, ast.ClassDef):
            given = [part.value for part in node.body if isinstance(part, ast.AnnAssign)]
            yield from _factories(given)
        else:
            continue
        for value in given:
            if isinstance(value, ast.Name) and CONSTANT.fullmatch(value.id):
                text = repr(getattr(importlib.import_module(module), value.id))
                if _is_expression(text):
                    yield value, text


def _factories(values: list[Any]) -> Iterator[tuple[ast.keyword, str]]:
    """The factories of the fields of a class, each with what it makes."""
    for call in values:
        for option in call.keywords if isinstance(call, ast.Call) else ():
            if option.arg == "default_factory":
                made = option.value
                text = ast.unparse(made.body) if isinstance(made, ast.Lambda) else f"{ast.unparse(made)}()"
                short = {"list()": "[]", "dict()": "{}"}.get(text, re.sub(r"span\((.*)\)", r"\1", text))
                yield option, f"default={short}"


def _is_expression(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True
