"""The content of any Python value as a hash: equal for values that compute the same, in another process too.

A function counts by its text, its defaults, and the values of the names that it uses: closures, and globals. A function
or class of the same package as the first one counts in this way too, another by its name. An object of the user counts
by its class and its attributes, a table by its rows. A value that cannot be looked into, such as a model or a
connection, counts by its type and is named as not compared.

Guarded by tests/panes/test_fingerprint_code.py.
"""

from __future__ import annotations

import datetime
import dis
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from hashlib import blake2b
from logging import Logger
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Literal
from uuid import UUID

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import Column, flat
from ...combiners.rows.hashing import hash_rows_128
from ...errors import UncombineError
from .source import codes, text_of

MOST = 20_000
"""The most values of one function or object that are compared; the rest counts by type."""

MOST_PARTS = 12
"""The most names of a function that are kept with a hash of their own."""

_PLAIN = (
    *(type(None), bool, int, float, complex, type(...), range, slice, Decimal, Fraction, UUID, PurePath),
    *(datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo, np.generic, np.dtype),
    *(pa.DataType, pa.Field, pa.Schema),
)
"""Values that their repr says in full."""

_VERSION = f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}"

_GENERATED = "<string>"
"""The file of methods that `dataclass` writes, which follow from the fields."""


@dataclass(frozen=True)
class Content:
    """The content of a value."""

    source: str
    """A hash by the texts of functions."""
    code: str
    """A hash by the compiled code of functions, after the version of Python that compiled it."""
    parts: Mapping[str, str]
    """The first parts of the value, such as the names that a function uses, each with a short hash."""
    unknown: tuple[str, ...] = ()
    """The types of values that are not compared."""

    def stored(self) -> dict[str, Any]:
        """The content as a value for JSON."""
        return {"source": self.source, "code": self.code, "parts": dict(self.parts)}


def content_of(value: Any) -> Content:
    """The content of a value of the user.

    >>> from uncombine.panes.fingerprint.content import content_of
    >>> def scaled(factor):
    ...     return lambda x: x * factor
    >>> content_of(scaled(2)) == content_of(scaled(2)), content_of(scaled(2)) == content_of(scaled(3))
    (True, False)
    """
    by_source, by_code = _Reader("source", _package(value)), _Reader("code", _package(value))
    source, code = by_source.hash(value), by_code.hash(value)
    parts = {name: _hash(token)[:8] for name, token in by_source.parts(value)}
    if len(parts) > MOST_PARTS:
        kept = dict(list(parts.items())[:MOST_PARTS])
        parts = {**kept, "others": _hash(*(f"{name}={token}" for name, token in parts.items()))[:8]}
    return Content(source, f"{_VERSION} {code}", parts, tuple(sorted(by_source.unknown)))


def content_of_all(values: Sequence[Any]) -> Content:
    """The content of several values of the user as one."""
    one, *others = map(content_of, values)
    if not others:
        return one
    every = (one, *others)
    parts = {str(place): content.source[:8] for place, content in enumerate(every[:MOST_PARTS], 1)}
    unknown = tuple(sorted({name for content in every for name in content.unknown}))
    source, code = (_hash(*(getattr(content, form) for content in every)) for form in ("source", "code"))
    return Content(source, f"{_VERSION} {code}", parts, unknown)


def user_parts(value: Any) -> Iterator[Any]:
    """The functions and objects of the user in a value of the library, such as those of a window or a combiner."""
    yield from _user_parts(value, set())


def _user_parts(value: Any, seen: set[int]) -> Iterator[Any]:
    if isinstance(value, (*_PLAIN, str, bytes, Enum)) or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Mapping):
        for one in value.values():
            yield from _user_parts(one, seen)
    elif isinstance(value, tuple | list | set | frozenset):
        for one in value:
            yield from _user_parts(one, seen)
    elif not _of_library(value):
        yield value
    elif isinstance(value, FunctionType):
        for cell in value.__closure__ or ():
            yield from _user_parts(cell.cell_contents, seen)
    elif not isinstance(value, type):
        names = (
            [field.name for field in fields(value)] if is_dataclass(value) else sorted(getattr(value, "__dict__", ()))
        )
        for name in names:
            yield from _user_parts(getattr(value, name), seen)


class _Reader:
    """Reads values, and notes what it cannot look into."""

    def __init__(self, form: Literal["source", "code"], package: str) -> None:
        self.form, self.package = form, package
        self.unknown: set[str] = set()
        self.read: dict[int, tuple[Any, str]] = {}
        """The hash of each value that was read, by its identity. The value stays alive, so that it keeps it."""
        self.around: dict[int, int] = {}
        """The values that are being read, and the depth of each."""

    def hash(self, value: Any) -> str:
        """The hash of a value and of all that it refers to."""
        if isinstance(value, _PLAIN):
            return _hash(type(value).__name__, _without_addresses(repr(value)))
        if isinstance(value, str | bytes | bytearray):
            return _hash(type(value).__name__, value)
        place = id(value)
        if place in self.read:
            return self.read[place][1]
        if place in self.around:
            return _hash("again", str(len(self.around) - self.around[place]))
        if len(self.read) > MOST or len(self.around) > 100:
            return self._by_type(value)
        self.around[place] = len(self.around)
        try:
            found = _hash(type(value).__name__, *(f"{name}={token}" for name, token in self.parts(value)))
        finally:
            del self.around[place]
        self.read[place] = value, found
        return found

    def parts(self, value: Any) -> Iterator[tuple[str, str]]:
        """The parts of a value that is not plain, each with its hash."""
        match value:
            case FunctionType():
                yield from self._function(value)
            case MethodType():
                yield from self.parts(value.__func__)
                yield "self", self.hash(value.__self__)
            case partial():
                yield from self.parts(value.func)
                yield "arguments", self.hash([value.args, value.keywords])
            case staticmethod() | classmethod():
                yield from self.parts(value.__func__)
            case property():
                yield "get", self.hash(value.fget)
            case type():
                yield from self._class(value)
            case ModuleType():
                yield "module", value.__name__
            case Enum():
                yield f"{type(value).__qualname__}.{value.name}", ""
            case re.Pattern():
                yield "pattern", self.hash([value.pattern, value.flags])
            case tuple() | list() | set() | frozenset() | dict() if len(value) > MOST:
                yield "many", _rows_of_many(value) or self._by_type(value)
            case dict():
                for key, one in value.items():
                    yield self.hash(key), self.hash(one)
            case set() | frozenset():
                for token in sorted(map(self.hash, value)):
                    yield "", token
            case tuple() | list():
                for one in value:
                    yield "", self.hash(one)
            case np.ndarray() if value.dtype == object:
                yield str(value.shape), self.hash(value.ravel().tolist())
            case _:
                yield from self._object(value)

    def _object(self, value: Any) -> Iterator[tuple[str, str]]:
        rows = _rows_of(value)
        if rows is not None:
            yield "rows", rows
        elif isinstance(value, BuiltinFunctionType | np.ufunc) or not self._own(type(value)):
            if _of_library(value):
                yield _without_addresses(repr(value)), self.hash([self.hash(one) for one in user_parts(value)])
            elif is_dataclass(value):
                yield "class", type(value).__qualname__
                yield from self._attributes(value)
            elif callable(value) and hasattr(value, "__qualname__"):
                yield _name(value), ""
            elif isinstance(value, Logger):
                yield "logger", value.name
            else:
                yield "type", self._by_type(value)
        else:
            yield from self._class(type(value))
            yield from self._attributes(value)

    def _attributes(self, value: Any) -> Iterator[tuple[str, str]]:
        names = [field.name for field in fields(value)] if is_dataclass(value) else []
        slots = [name for base in type(value).__mro__ for name in _slots(base)]
        for name in sorted({*names, *slots, *getattr(value, "__dict__", ())}):
            if hasattr(value, name):
                yield name, self.hash(getattr(value, name))

    def _function(self, function: FunctionType) -> Iterator[tuple[str, str]]:
        if not self._own(function):
            yield _name(function), ""
            return
        text = text_of(function) if self.form == "source" else None
        yield "its text", _hash(*_compiled(function.__code__)) if text is None else _hash(text)
        defaults = function.__defaults__ or ()
        by_place = function.__code__.co_varnames[: function.__code__.co_argcount]
        for name, default in zip(by_place[len(by_place) - len(defaults) :], defaults, strict=True):
            yield f"default {name}", self.hash(default)
        for name, default in (function.__kwdefaults__ or {}).items():
            yield f"default {name}", self.hash(default)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                inside = cell.cell_contents
            except ValueError:  # a name that nothing was given yet
                continue
            if not (name == "__class__" and isinstance(inside, type)):
                yield name, self.hash(inside)
        for name in sorted(set(_globals(function.__code__))):
            if name in function.__globals__:
                yield name, self.hash(function.__globals__[name])

    def _class(self, kind: type) -> Iterator[tuple[str, str]]:
        if not self._own(kind):
            yield _name(kind), ""
            return
        for base in kind.__bases__:
            if base is not object:
                yield f"base {base.__qualname__}", self.hash(base)
        for name, value in sorted(vars(kind).items()):
            function = isinstance(value, FunctionType)
            if function and value.__code__.co_filename == _GENERATED and is_dataclass(kind) and name.startswith("__"):
                continue
            if function or isinstance(value, staticmethod | classmethod | property) or not _hidden(name, value):
                yield name, self.hash(value)

    def _own(self, value: Any) -> bool:
        """True if a class or a function is of the user's own package."""
        module = getattr(value, "__module__", None) or ""
        return bool(self.package) and module.partition(".")[0] == self.package

    def _by_type(self, value: Any) -> str:
        name = _name(type(value))
        self.unknown.add(name)
        return name


def _package(value: Any) -> str:
    """The package of the function or the class that a value begins with."""
    while isinstance(value, partial):
        value = value.func
    if isinstance(value, MethodType):
        value = value.__func__
    one = value if isinstance(value, type | FunctionType) else type(value)
    return (getattr(one, "__module__", None) or "").partition(".")[0]


_LIBRARY = __name__.partition(".")[0]


def _of_library(value: Any) -> bool:
    """True if a value, or a class, is of this library."""
    one = value if isinstance(value, type | FunctionType) else type(value)
    return (getattr(one, "__module__", None) or "").partition(".")[0] == _LIBRARY


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _hidden(name: str, value: Any) -> bool:
    """True for an attribute of a class that Python or `abc` made."""
    return (name.startswith("__") and name.endswith("__")) or name == "_abc_impl" or name in _MADE or _is_slot(value)


_MADE = frozenset({"_is_protocol", "_is_runtime_protocol"})


def _is_slot(value: Any) -> bool:
    return type(value).__name__ in ("member_descriptor", "getset_descriptor")


def _globals(code: CodeType) -> Iterator[str]:
    """The names that a function, and all functions in it, look up outside of it."""
    for one in codes(code):
        for step in dis.get_instructions(one):
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                yield step.argval


def _compiled(code: CodeType) -> Iterator[str]:
    """The instructions, names and constants of compiled code, without names of files and places in them."""
    yield _VERSION
    for one in codes(code):
        plain = [value for value in one.co_consts if not isinstance(value, CodeType)]
        yield from (one.co_code.hex(), repr(one.co_names), repr(one.co_varnames), repr(one.co_freevars))
        yield from (repr(one.co_cellvars), repr([_constant(value) for value in plain]))


def _constant(value: Any) -> Any:
    """A constant of compiled code. The order of a frozen set differs from process to process."""
    return sorted(map(repr, value)) if isinstance(value, frozenset) else value


def _rows_of(value: Any) -> str | None:
    """A hash of the rows of a table or an array; None for another value, or one whose values cannot be hashed."""
    if isinstance(value, np.ndarray):
        return _hash(str(value.dtype), str(value.shape), np.ascontiguousarray(value).tobytes())
    if type(value).__module__.partition(".")[0] not in ("pyarrow", "pandas", "polars"):
        return None
    try:
        if isinstance(value, pa.Scalar):
            return _hash(str(value.type), repr(value.as_py()))
        table = _table(value)
        if table is None:
            return None
        lanes = hash_rows_128([Column(flat(column)) for column in table.columns])
        return _hash(str(table.schema.remove_metadata()), *(lane.tobytes() for lane in lanes))
    except (UncombineError, pa.ArrowException, TypeError, ValueError):
        return None


def _rows_of_many(value: Collection[Any]) -> str | None:
    """A hash of the values of a large collection; None if they are no values of Arrow."""
    try:
        both: list[Collection[Any]] = [value]
        if isinstance(value, dict):
            both = [list(value), list(value.values())]
        arrays = [pa.array(sorted(one) if isinstance(one, set | frozenset) else list(one)) for one in both]
        return _rows_of(pa.table(arrays, [str(i) for i in range(len(arrays))]))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


def _table(value: Any) -> pa.Table | None:
    if isinstance(value, pa.Table | pa.RecordBatch):
        return pa.table(value) if isinstance(value, pa.RecordBatch) else value
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return pa.table({"": value})
    if not hasattr(value, "__arrow_c_stream__"):
        return None
    try:
        return pa.table(value)
    except (pa.ArrowException, TypeError, ValueError):  # a column
        return pa.table({"": pa.chunked_array(value)})


def _name(value: Any) -> str:
    """The name of a class or a function of another package, without the modules inside it, which move."""
    package = (getattr(value, "__module__", None) or "").partition(".")[0]
    return value.__qualname__ if package in ("builtins", _LIBRARY) else f"{package}.{value.__qualname__}"


def _without_addresses(text: str) -> str:
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def _hash(*tokens: str | bytes | bytearray) -> str:
    """A hash of 128 bits of several texts."""
    made = blake2b(digest_size=16)
    for token in tokens:
        data = token.encode("utf-8", "surrogatepass") if isinstance(token, str) else bytes(token)
        made.update(len(data).to_bytes(8, "little"))
        made.update(data)
    return made.hexdigest()


__all__ = ["Content", "content_of", "content_of_all", "user_parts"]
