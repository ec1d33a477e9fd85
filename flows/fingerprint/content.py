"""The content of any Python value as a hash: equal for values that compute the same, in another process too.

A function counts by its text, its defaults, and the values of the names that it uses: closures, and globals. A function
or class of the user counts in this way too, and one of an installed package by its name; `owners.py` tells them apart.
An object of the user counts by its class and its attributes, a table by its rows. A value that cannot be looked into,
such as a model or a connection, counts by its type and is named as not compared. No code of the user is called.

Guarded by tests/flows/fingerprint/test_fingerprint_code.py.
"""

from __future__ import annotations

import array
import datetime
import functools
import operator
import re
import sys
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from logging import Logger
from pathlib import PurePath
from types import (
    CodeType,
    FunctionType,
    GenericAlias,
    MappingProxyType,
    MethodType,
    ModuleType,
    NotImplementedType,
    SimpleNamespace,
    UnionType,
)
from typing import Any, Literal
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import owners
from .function_text import codes, text_of
from .names import Names, names_in
from .owners import attributes, has_name, in_class, is_users, name_of, of_library, package_of, poses
from .row_hashes import hash_of, rows_of, rows_of_many

MOST = 20_000
"""The most values of one function or object that are compared; the rest counts by type."""

MOST_PARTS = 12
"""The most names of a function that are kept with a hash of their own."""

_PLAIN = (
    *(type(None), NotImplementedType, GenericAlias, UnionType, type(...), bool, int, float, complex, range, slice),
    *(Decimal, Fraction, UUID, PurePath, datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo),
    *(np.generic, np.dtype, pa.DataType, pa.Field, pa.Schema),
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

    >>> from uncombine.flows.fingerprint.content import content_of
    >>> def scaled(factor):
    ...     return lambda x: x * factor
    >>> content_of(scaled(2)) == content_of(scaled(2)), content_of(scaled(2)) == content_of(scaled(3))
    (True, False)
    """
    by_source, by_code = _Reader("source", package_of(value)), _Reader("code", package_of(value))
    source, code = by_source.hash(value), by_code.hash(value)
    parts = {name: hash_of(token)[:8] for name, token in by_source.parts(value)}
    if len(parts) > MOST_PARTS:
        first_parts = dict(list(parts.items())[:MOST_PARTS])
        parts = {**first_parts, "others": hash_of(*(f"{name}={token}" for name, token in parts.items()))[:8]}
    return Content(source=source, code=f"{_VERSION} {code}", parts=parts, unknown=tuple(sorted(by_source.unknown)))


def content_of_all(values: Sequence[Any]) -> Content:
    """The content of several values of the user as one."""
    one, *others = map(content_of, values)
    if not others:
        return one
    every = (one, *others)
    parts = {str(place): content.source[:8] for place, content in enumerate(every[:MOST_PARTS], 1)}
    unknown = tuple(sorted({name for content in every for name in content.unknown}))
    source, code = (hash_of(*(getattr(content, form) for content in every)) for form in ("source", "code"))
    return Content(source=source, code=f"{_VERSION} {code}", parts=parts, unknown=unknown)


def user_parts(value: Any) -> Iterator[Any]:
    """The functions and objects of the user in a value of the library, such as those of a window or a combiner."""
    return owners.user_parts(value, (*_PLAIN, str, bytes, Enum))


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
        kind = type(value)
        if issubclass(kind, (*_PLAIN, str, bytes, bytearray)) and not self._own(kind):
            return hash_of(kind.__name__, value if issubclass(kind, _TEXTS) else without_addresses(repr(value)))
        place = id(value)
        if place in self.read:
            return self.read[place][1]
        if place in self.around:
            return hash_of("again", str(len(self.around) - self.around[place]))
        if len(self.read) > MOST or len(self.around) > 100:
            return self._by_type(value)
        self.around[place] = len(self.around)
        try:
            made = hash_of(kind.__name__, *(f"{name}={token}" for name, token in self.parts(value)))
        except Exception:  # of an object that does not let itself be looked into
            made = self._by_type(value)
        finally:
            del self.around[place]
        self.read[place] = value, made
        return made

    def parts(self, value: Any) -> Iterator[tuple[str, str]]:
        """The parts of a value that is not plain, each with its hash."""
        if poses(type(value)):
            yield from self._object(value)
            return
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
            case functools.cached_property():
                yield "get", self.hash(value.func)
            case functools._lru_cache_wrapper():
                yield from self.parts(value.__wrapped__)
            case type():
                yield from self._class(value)
            case ModuleType():
                yield "module", str(ModuleType.__getattribute__(value, "__name__"))
            case Enum():
                yield f"{type(value).__qualname__}.{value.name}", self.hash(value._value_)
            case re.Pattern():
                yield "pattern", self.hash([value.pattern, value.flags])
            case operator.itemgetter() | operator.attrgetter() | operator.methodcaller() | pc.Expression():
                yield "made by", self.hash([part for part in value.__reduce__()[1:] if part is not None])
            case pa.Buffer() | array.array():
                yield "bytes", hash_of(memoryview(value).tobytes())
            case np.ndarray() if value.dtype.hasobject:
                yield f"{value.dtype} {value.shape}", self.hash(value.ravel().tolist())
            case _ if issubclass(type(value), (*_COLLECTIONS, *_PLAIN, *_TEXTS)):
                yield from self._collection(value)
                if self._own(type(value)):
                    yield from self._own_object(value)
            case _:
                yield from self._object(value)

    def _collection(self, value: Any) -> Iterator[tuple[str, str]]:
        """The values in a collection, or the plain value that an object of a class of the user is."""
        match value:
            case MappingProxyType():
                yield "", self.hash(dict(value))
            case SimpleNamespace():
                yield "", self.hash(vars(value))
            case tuple() | list() | set() | frozenset() | dict() | deque() if len(value) > MOST:
                yield "many", rows_of_many(value) or self._by_type(value)
            case dict():
                if isinstance(value, defaultdict):
                    yield "default", self.hash(value.default_factory)
                for key, one in dict.items(value):
                    yield self.hash(key), self.hash(one)
            case set() | frozenset():
                for token in sorted(map(self.hash, value)):
                    yield "", token
            case tuple() | list() | deque():
                for one in value:
                    yield "", self.hash(one)
                if isinstance(value, deque):
                    yield "most", self.hash(value.maxlen)
            case str() | bytes() | bytearray():
                yield "", hash_of(value)
            case _:
                base: Any = next(base for base in _PLAIN if isinstance(value, base))
                yield "", "" if base.__repr__ is object.__repr__ else base.__repr__(value)

    def _object(self, value: Any) -> Iterator[tuple[str, str]]:
        kind = type(value)
        rows = None if poses(kind) else rows_of(value)
        if rows is not None:
            yield "rows", rows
        elif self._own(kind):
            yield from self._own_object(value)
        elif of_library(value):
            yield without_addresses(repr(value)), self.hash([self.hash(one) for one in user_parts(value)])
        elif in_class(kind, "__dataclass_fields__") is not None:
            yield "class", kind.__qualname__
            yield from self._attributes(value)
        elif has_name(value):
            yield name_of(value), ""
        elif issubclass(kind, Logger):
            yield "logger", value.name
        else:
            yield "type", self._by_type(value)
            for name, one in attributes(value).items():  # such as the function of numpy.vectorize
                if type(one) is FunctionType and self._own(one):
                    yield name, self.hash(one)

    def _own_object(self, value: Any) -> Iterator[tuple[str, str]]:
        yield from self._class(type(value))
        yield from self._attributes(value)

    def _attributes(self, value: Any) -> Iterator[tuple[str, str]]:
        for name, one in sorted(attributes(value).items()):
            yield name, self.hash(one)

    def _function(self, function: FunctionType) -> Iterator[tuple[str, str]]:
        if not self._own(function):
            yield name_of(function), ""
            return
        text = text_of(function) if self.form == "source" else None
        yield "its text", hash_of(*_compiled(function.__code__)) if text is None else hash_of(text)
        defaults = function.__defaults__ or ()
        by_place = function.__code__.co_varnames[: function.__code__.co_argcount]
        for name, default in zip(by_place[len(by_place) - len(defaults) :], defaults, strict=True):
            yield f"default {name}", self.hash(default)
        for name, default in (function.__kwdefaults__ or {}).items():
            yield f"default {name}", self.hash(default)
        names = names_in(function)
        for name, one in names.values:
            if name in names.set_by_it:  # its value is state, such as the number of calls
                self.unknown.add(f"{name}, which {function.__qualname__} sets")
            elif type(one) is ModuleType:
                yield from self._module(name, one, names)
            else:
                yield name, self.hash(one)
        for one in names.imported:
            yield from self._module(one.__name__, one, names)

    def _module(self, name: str, module: ModuleType, names: Names, depth: int = 4) -> Iterator[tuple[str, str]]:
        """The values of a module that a function uses by their names, if it is a module of the user."""
        yield name, self.hash(module)
        if not is_users(module.__name__, self.package) or not depth:
            return
        for attribute in sorted(names.attributes & vars(module).keys()):
            inside = vars(module)[attribute]
            if type(inside) is ModuleType:
                yield from self._module(f"{name}.{attribute}", inside, names, depth - 1)
            else:
                yield f"{name}.{attribute}", self.hash(inside)

    def _class(self, kind: type) -> Iterator[tuple[str, str]]:
        if not self._own(kind):
            yield name_of(kind), ""
            return
        for base in kind.__bases__:
            if base is not object:
                yield f"base {base.__qualname__}", self.hash(base)
        for name, value in sorted(vars(kind).items()):
            function = isinstance(value, FunctionType)
            if function and value.__code__.co_filename == _GENERATED and name.startswith("__"):
                continue
            if function or isinstance(value, staticmethod | classmethod | property) or not _hidden(name, value):
                yield name, self.hash(value)

    def _own(self, value: Any) -> bool:
        """True if a class or a function is of the user."""
        return is_users(getattr(value, "__module__", None) or "", self.package)

    def _by_type(self, value: Any) -> str:
        name = name_of(type(value))
        self.unknown.add(name)
        return name


def _hidden(name: str, value: Any) -> bool:
    """True for an attribute of a class that Python or `abc` made."""
    made = type(value).__name__ in ("member_descriptor", "getset_descriptor", "_tuplegetter")
    return made or (name.startswith("__") and name.endswith("__")) or name in _MADE


_MADE = frozenset({"_abc_impl", "_is_protocol", "_is_runtime_protocol"})

_TEXTS = (str, bytes, bytearray)

_COLLECTIONS = (tuple, list, set, frozenset, dict, deque, MappingProxyType, SimpleNamespace)


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


def without_addresses(text: str) -> str:
    """A repr without the address of its object, which differs from run to run."""
    return re.sub(r" at 0x[0-9a-f]+", "", text)


__all__ = ["Content", "content_of", "content_of_all", "user_parts", "without_addresses"]
