"""The owner of a function or a class, and what is in an object, found without a call of the user's code.

Guarded by tests/flows/fingerprint/test_fingerprint_code.py.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property, partial
from pathlib import PurePath
from types import FunctionType, MappingProxyType, MethodType
from typing import Any

_LIBRARY = __name__.partition(".")[0]

_TOOLS = frozenset({"duckdb", "numpy", "pandas", "polars", "py4j", "pyarrow", "pyspark", "scipy", "sklearn", "torch"})
"""Packages of which no part is the user's, wherever they are installed."""

_INSTALLED = frozenset({"site-packages", "dist-packages"})

_MAIN = frozenset({"__main__", "__mp_main__"})


def package_of(value: Any) -> str:
    """The package of the function or the class that a value begins with; none for one that is not the user's."""
    while type(value) is partial:
        value = value.func
    if type(value) is MethodType:
        value = value.__func__
    package = _package(value if issubclass(type(value), (type, FunctionType)) else type(value))
    if package in _MAIN:  # `python -m package.module`
        package = getattr(getattr(sys.modules.get(package), "__spec__", None), "name", package).partition(".")[0]
    return "" if _is_tool(package) else package


def is_users(module: str, package: str) -> bool:
    """True if a module is of this package, or of one that is not installed, such as the file beside a script."""
    top = module.partition(".")[0]
    if top in _MAIN or top == package:
        return bool(top)
    loaded = sys.modules.get(top)
    if top == _LIBRARY or _is_tool(top) or loaded is None:
        return False
    place = getattr(loaded, "__file__", None) or next(iter(getattr(loaded, "__path__", ())), None)
    return isinstance(place, str) and _INSTALLED.isdisjoint(PurePath(place).parts)


def of_library(value: Any) -> bool:
    """True if a value, or a class, is of this library."""
    return _package(value if issubclass(type(value), (type, FunctionType)) else type(value)) == _LIBRARY


def name_of(value: Any) -> str:
    """The name of a class or a function of another package, without the modules inside it, which move."""
    package = _package(value)
    return str(value.__qualname__) if package in ("builtins", _LIBRARY) else f"{package}.{value.__qualname__}"


def attributes(value: Any) -> dict[str, Any]:
    """The attributes that an object has of its own, in the order of their names, less those that are cached results."""
    out = dict(sorted(_dict_of(value).items()))
    for base in type(value).__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            hidden = name.startswith("__") and not name.endswith("__")
            slot: Any = vars(base).get(f"_{base.__name__.lstrip('_')}{name}" if hidden else name)
            if type(slot).__name__ == "member_descriptor":
                try:
                    out[name] = slot.__get__(value, type(value))
                except AttributeError:  # no value was given yet
                    continue
    return {name: one for name, one in out.items() if type(in_class(type(value), name)) is not cached_property}


def in_class(kind: type, name: str) -> Any:
    """The attribute of a class or a base of it, as it stands there; None without one."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def poses(kind: type) -> bool:
    """True for a class whose objects say that they are of another one, as mocks and proxies do."""
    return any("__class__" in vars(base) for base in kind.__mro__[:-1])


def has_name(value: Any) -> bool:
    """True if a value has a qualified name, as functions of C have."""
    return callable(value) and (in_class(type(value), "__qualname__") is not None or "__qualname__" in _dict_of(value))


def user_parts(value: Any, plain: tuple[type, ...]) -> Iterator[Any]:
    """The functions and objects of the user in a value of the library, such as those of a window or a combiner."""
    yield from _user_parts(value, plain, set())


def _user_parts(value: Any, plain: tuple[type, ...], seen: set[int]) -> Iterator[Any]:
    if isinstance(value, plain) or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, dict | MappingProxyType):
        inside = list(value.values())
    elif isinstance(value, tuple | list | set | frozenset):
        inside = list(value)
    elif not of_library(value):
        yield value
        return
    elif isinstance(value, FunctionType):
        inside = [cell.cell_contents for cell in value.__closure__ or ()]
    elif is_dataclass(value) and not isinstance(value, type):
        inside = [getattr(value, field.name) for field in fields(value)]
    else:
        inside = [] if isinstance(value, type) else list(attributes(value).values())
    for one in inside:
        yield from _user_parts(one, plain, seen)


def _package(value: Any) -> str:
    return (getattr(value, "__module__", None) or "").partition(".")[0]


def _is_tool(package: str) -> bool:
    return package == "" or package in _TOOLS or package in sys.stdlib_module_names


def _dict_of(value: Any) -> dict[str, Any]:
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return own if type(own) is dict else {}


__all__ = [
    "attributes",
    "has_name",
    "in_class",
    "is_users",
    "name_of",
    "of_library",
    "package_of",
    "poses",
    "user_parts",
]
