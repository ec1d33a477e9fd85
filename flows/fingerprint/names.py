"""The names that a function looks up outside of it, with their values.

Guarded by tests/flows/fingerprint/test_fingerprint_code.py.
"""

from __future__ import annotations

import dis
import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

from .function_text import codes


@dataclass(frozen=True)
class Names:
    """The names in a function, and in all functions in it."""

    values: tuple[tuple[str, Any], ...]
    """Its closures and its globals."""
    set_by_it: frozenset[str]
    """The closures and globals to which it gives other values."""
    attributes: frozenset[str]
    """All names of attributes and of imported values."""
    imported: tuple[ModuleType, ...]
    """The modules that it imports when it is called, if they are loaded."""


def names_in(function: FunctionType) -> Names:
    """The names in a function.

    >>> from uncombine.flows.fingerprint.names import names_in
    >>> def scaled(factor):
    ...     return lambda x: x * factor
    >>> names_in(scaled(2)).values
    (('factor', 2),)
    """
    code, inside = function.__code__, list(_values_of(function))
    looked_up, set_by_it, attributes = set[str](), set[str](), set[str]()
    modules: dict[str, ModuleType] = {}
    for one in codes(code):
        level = 0
        for step in dis.get_instructions(one):
            match step.opname:
                case "LOAD_GLOBAL" | "LOAD_NAME" | "LOAD_FROM_DICT_OR_GLOBALS":
                    looked_up.add(step.argval)
                case "STORE_GLOBAL":
                    set_by_it.add(step.argval)
                case "STORE_DEREF" if step.argval in code.co_freevars and step.argval in one.co_freevars:
                    set_by_it.add(step.argval)
                case "LOAD_ATTR" | "LOAD_METHOD" | "IMPORT_FROM":
                    attributes.add(step.argval)
                case "LOAD_CONST" | "LOAD_SMALL_INT" if isinstance(step.argval, int):
                    level = step.argval
                case "IMPORT_NAME":
                    modules |= _imported(step.argval, level, function)
    values = [(name, function.__globals__[name]) for name in sorted(looked_up) if name in function.__globals__]
    imported = [modules[name] for name in sorted(modules)]
    return Names(
        values=(*inside, *values),
        set_by_it=frozenset(set_by_it),
        attributes=frozenset(attributes),
        imported=tuple(imported),
    )


def _values_of(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The values of closures, less those that were given none yet, and the class of a method."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            inside = cell.cell_contents
        except ValueError:  # a name that nothing was given yet
            continue
        if not (name == "__class__" and isinstance(inside, type)):
            yield name, inside


def _imported(name: str, level: int, function: FunctionType) -> dict[str, ModuleType]:
    """The module that a statement in a function imports, by its name."""
    try:
        full = importlib.util.resolve_name("." * level + name, function.__globals__.get("__package__"))
    except ImportError:
        return {}
    module = sys.modules.get(full)
    return {full: module} if type(module) is ModuleType else {}


__all__ = ["Names", "names_in"]
