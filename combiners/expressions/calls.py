"""Scalar functions of `pyarrow.compute`, by their names.

Only those that come with Arrow are called: one that a process has registered is in no other process.

Guarded by tests/combiners/expressions/test_calls.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pyarrow.compute as pc

from ...errors import InvalidArgument, nearest
from .operands import plain_operand

_ABOUT = "__arrow_compute_function__"
"""The attribute of a function of Arrow in Python that says its name, its arity and the class of its options."""

Pairs = tuple[tuple[str, Any], ...]
"""The options of a function by their names, as a value that can be compared."""


def call(value: Any, function: str, *others: Any, options: Pairs = ()) -> Any:
    """The function over plain columns and values."""
    return _functions()[function](*(plain_operand(one) for one in (value, *others)), **_keywords(options))


def require_function(function: object, count: int) -> str:
    """The name of a scalar function of Arrow that takes so many values; raises for another one."""
    if function == "strptime":
        raise InvalidArgument("call('strptime') takes February 31 for March 2: write x.cast_time('%d.%m.%Y')")
    if not isinstance(function, str):
        raise InvalidArgument(
            f"call() takes the name of a function of pyarrow.compute such as 'utf8_reverse', but was given {function!r}"
        )
    if function not in _functions():
        raise InvalidArgument(f"call({function!r}): pyarrow.compute has no such scalar function: {_hint(function)}")
    arity = pc.get_function(function).arity
    if arity is not Ellipsis and arity != count:
        raise InvalidArgument(f"call({function!r}) takes {arity} values with the expression, not {count}")
    return function


def option_pairs(function: str, options: Mapping[str, Any] | None) -> Pairs:
    """The options of a function in the order of their names; raises for those that it does not have."""
    if not isinstance(options, Mapping | None):
        raise InvalidArgument(f"call(options=) takes a dict such as {{'ndigits': 2}}, but was given {options!r}")
    names = _options(function)
    for name in options or {}:
        if name not in names:
            raise InvalidArgument(f"call({function!r}) has no option {name!r}: {nearest(str(name), names)}")
    for name, needed in names.items():
        if needed and name not in (options or {}):
            raise InvalidArgument(f"call({function!r}) needs the option {name!r}: write options={{{name!r}: ...}}")
    try:
        pairs = tuple(sorted((name, _plain(value)) for name, value in (options or {}).items()))
        if pairs:
            about = getattr(_functions()[function], _ABOUT)
            getattr(pc, about["options_class"])(**_keywords(pairs))
    except (TypeError, ValueError, OverflowError) as error:
        reason = str(error).partition("\n")[0]
        raise InvalidArgument(f"call({function!r}) has an option that does not fit, {options!r}: {reason}") from None
    return pairs


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise TypeError(f"{value!r} is neither a plain value nor a list of them")


def _keywords(pairs: Pairs) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in pairs}


def _hint(function: str) -> str:
    if f"utf8_{function}" in _functions():
        return f"did you mean 'utf8_{function}'?"
    near = nearest(function, _functions())
    return near if near.startswith("did") else "pyarrow.compute.list_functions() has their names"


def _options(function: str) -> dict[str, bool]:
    """The names of the options of a function, with True for one that it needs."""
    parameters = inspect.signature(_functions()[function]).parameters.values()
    named = [one for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    return {one.name: one.default is one.empty for one in named if one.name not in ("options", "memory_pool")}


@cache
def _functions() -> dict[str, Callable[..., Any]]:
    """The scalar functions of Arrow of one value or more, as Python calls them."""
    found: dict[str, Callable[..., Any]] = {}
    for value in vars(pc).values():
        about = getattr(value, _ABOUT, None)
        if about is not None and pc.get_function(about["name"]).kind == "scalar":
            found[about["name"]] = value
    return found
