"""The trigger language: small immutable values that say when panes are emitted, with no behaviour hidden in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields
from types import FunctionType
from typing import Any, TypeAlias

from ..combiners.expressions import Expr
from ..errors import InvalidArgument

Predicate: TypeAlias = "Expr | Callable[[Any], Any]"
"""An expression, or a function of an Arrow table that gives a boolean a row."""

DOMAINS = ("processing", "event")


class Trigger:
    """When the panes of a window are emitted.

    Triggers are values: they compare, hash, and print as they are written. `t.or_finally(u)` repeats t until u fires.

    >>> import uncombine as uc
    >>> uc.AfterCount(3).or_finally(uc.AfterWatermark())
    RepeatUntil(AfterCount(3), AfterWatermark())
    """

    @property
    def children(self) -> tuple[Trigger, ...]:
        """The triggers that this one is made of."""
        return ()

    def or_finally(self, until: Trigger) -> Trigger:
        """This trigger, again and again, until the other fires."""
        from .composites import RepeatUntil

        return RepeatUntil(self, until)

    def explain(self) -> str:
        """The trigger in words, a line for each part.

        >>> import uncombine as uc
        >>> print(uc.Repeatedly(uc.AfterCount(3)).explain())
        again and again:
          when 3 rows have come
        """
        from .explain import explain

        return explain(self)

    def __repr__(self) -> str:
        parts: list[str] = []
        spec = [f for f in fields(self) if f.init]  # type: ignore[arg-type]
        for at, f in enumerate(spec):
            given = getattr(self, f.name)
            if f.default is not MISSING and type(given) is type(f.default) and given == f.default:
                continue
            plain = len(parts) == at and at < 2 and f.default is MISSING and not f.kw_only
            parts.append(shown(given) if plain else f"{f.name}={shown(given)}")
        return f"{type(self).__name__}({', '.join(parts)})"


@dataclass(frozen=True, repr=False)
class _Group(Trigger):
    """A trigger made of any number of others."""

    parts: tuple[Trigger, ...]

    def __init__(self, *children: Trigger) -> None:
        if len(children) == 1 and isinstance(children[0], list | tuple):
            children = tuple(children[0])
        if not children:
            raise InvalidArgument(f"{type(self).__name__} needs at least one trigger")
        object.__setattr__(self, "parts", tuple(trigger(child, type(self).__name__) for child in children))

    @property
    def children(self) -> tuple[Trigger, ...]:
        return self.parts

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.parts))})"


def shown(value: Any) -> str:
    """The repr of a setting; a function by its name, as an address would be another in every run."""
    return value.__name__ if isinstance(value, FunctionType) else repr(value)


def trigger(value: Any, who: str) -> Trigger:
    """A trigger, or an error that says who wanted one."""
    if not isinstance(value, Trigger):
        raise InvalidArgument(f"{who} is made of triggers such as AfterCount(1), not {value!r}")
    return value


def walk(root: Trigger) -> Iterator[Trigger]:
    """The trigger and all that it is made of, from the top down."""
    yield root
    for child in root.children:
        yield from walk(child)


def at_least_one(value: Any, who: str) -> int:
    """A whole number from 1 on."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidArgument(f"{who} takes a whole number from 1 on, not {value!r}")
    return value


def domain_of(value: str, who: str) -> str:
    """The name of a clock."""
    if value not in DOMAINS:
        raise InvalidArgument(f"domain= of {who} is {value!r}, and it must be 'processing' or 'event'")
    return value
