"""Methods of the values of one kind, under a name of an expression: those of texts in `x.str`, of times in `x.dt`.

Guarded by tests/combiners/expressions/test_text_methods.py and tests/combiners/expressions/test_time_methods.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from ...advice import Adviser, no_such_method
from ...errors import InvalidArgument

E = TypeVar("E")


class Methods(Adviser, Generic[E]):
    """Methods that make an expression of another one, which `step` builds from the name of an operation."""

    _name: ClassVar[str]
    _advice: ClassVar[Mapping[str, str]]

    def __init__(self, expr: E, step: Callable[..., E]) -> None:
        self._expr, self._step = expr, step

    def _of(self, method: str, *args: Any) -> E:
        return self._step(f"{self._name}.{method}", self._expr, *args)

    def _no_such(self, name: str) -> AttributeError:
        return no_such_method(f"x.{self._name}", self, name, self._advice)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._expr!r})"


def require_text(value: object, what: str, empty: bool = True) -> str:
    """The text; raises for another value, and for no character if it must have one."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{what} must be a text, but is {value!r}")
    if not value and not empty:
        raise InvalidArgument(f"{what} must have a character, but is ''")
    return value


def require_whole(value: object, what: str) -> int:
    """The whole number; raises for another value."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidArgument(f"{what} must be a whole number, but is {value!r}")
    return int(value)
