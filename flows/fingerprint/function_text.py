"""The text of a Python function without its layout: equal for functions that say the same.

Comments, docstrings, annotations, names of files and numbers of lines are no part of it, nor is the version of Python.
A function whose source is not there, or is no longer that of the running code, has no text.

Guarded by tests/flows/fingerprint/test_fingerprint_code.py.
"""

from __future__ import annotations
import __future__

import ast
import linecache
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import or_
from types import CodeType, FunctionType

_LAYOUT = frozenset({"annotation", "ctx", "kind", "returns", "type_comment", "type_params"})
"""The fields of syntax that say nothing about what a function does."""

_FUTURE = reduce(or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names))

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def text_of(function: FunctionType) -> str | None:
    """The normal text of a function; None without a source.

    >>> from uncombine.flows.fingerprint.function_text import text_of
    >>> text_of(eval("lambda x: x + 1")) is None
    True
    """
    code = function.__code__
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    if not text:
        return None
    module = _parsed(text, code.co_filename, code.co_flags & _FUTURE)
    place = code.co_name, code.co_firstlineno
    if module is None or code not in module.codes.get(place, ()):  # the text is not that of the running function
        return None
    node = _node_of(module.nodes.get(place, ()), code)
    return None if node is None else normal(node, frozenset({"name"}))


def normal(node: ast.AST, left_out: frozenset[str] = frozenset()) -> str:
    """The text of a piece of syntax, in which nothing that is empty has a place.

    >>> import ast
    >>> from uncombine.flows.fingerprint.function_text import normal
    >>> texts = ("def f(x: int): return x  # as it is", "def f(x): return(x)")
    >>> len({normal(ast.parse(text)) for text in texts})
    1
    """
    if not isinstance(node, ast.AST):
        return repr(node)
    parts = []
    for name in node._fields:
        value = getattr(node, name, None)
        if name in _LAYOUT or name in left_out or value is None or value == []:
            continue
        if isinstance(value, list):
            items = value[_documented(node) :] if name == "body" else value
            parts.append(f"{name}=[{','.join(map(normal, items))}]")
        else:
            parts.append(f"{name}={normal(value)}")
    return f"{type(node).__name__}({','.join(parts)})"


def _documented(node: ast.AST) -> bool:
    """True if the body begins with a docstring."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module) or not node.body:
        return False
    first = node.body[0]
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)


Place = tuple[str, int]
"""The name of a function and the line where it begins."""


@dataclass(frozen=True)
class _Module:
    """The functions of a file, by their places."""

    nodes: Mapping[Place, Sequence[_Function]]
    codes: Mapping[Place, Sequence[CodeType]]


@lru_cache(maxsize=64)
def _parsed(text: str, name: str, flags: int) -> _Module | None:
    """The functions of a file; None if it is not Python, such as a cell with magic commands."""
    try:
        tree, whole = ast.parse(text, name), compile(text, name, "exec", flags, dont_inherit=True)
        made = list(codes(whole))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    nodes, by_place = defaultdict[Place, list[_Function]](list), defaultdict[Place, list[CodeType]](list)
    for node in ast.walk(tree):
        if isinstance(node, _Function):
            first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
            nodes[getattr(node, "name", "<lambda>"), first].append(node)
    for code in made:
        by_place[code.co_name, code.co_firstlineno].append(code)
    return _Module(nodes, by_place)


def codes(code: CodeType) -> Iterator[CodeType]:
    """The code, and that of all functions and classes in it."""
    yield code
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from codes(value)


def _node_of(nodes: Sequence[_Function], code: CodeType) -> _Function | None:
    """The syntax of a function among those of its name that begin in its line, by the places of its instructions."""
    if not any(isinstance(node, ast.Lambda) for node in nodes):
        return nodes[0] if nodes else None
    # Several lambdas may begin in a line: the smallest that has all instructions of this one.
    places = [
        ((line, column), (last, end))
        for line, last, column, end in code.co_positions()
        if line is not None and last is not None and column is not None and end
    ]
    around = [node for node in nodes if all(_begin(node) <= first and last <= _end(node) for first, last in places)]
    return max(around, key=_begin, default=None)


def _begin(node: ast.AST) -> tuple[int, int]:
    return node.lineno, node.col_offset  # type: ignore[attr-defined]


def _end(node: ast.AST) -> tuple[int, int]:
    return node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]


__all__ = ["codes", "normal", "text_of"]
