"""The trigger language: small immutable values that say when panes are emitted.

A trigger holds settings and words only. `compiling` turns it into the nodes that evaluate it.
`tests/triggers/test_language.py` guards this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields
from types import FunctionType
from typing import Any, TypeAlias

from ..combiners.expressions.expr import Expr
from ..errors import InvalidArgument, NamedOptions
from ..windows.window import settle
from .words import read_trigger

Predicate: TypeAlias = "Expr | Callable[[Any], Any]"
"""An expression, or a function that takes an Arrow table and gives a boolean for each row."""

DOMAINS = ("processing", "event")
"""The names of the two clocks: processing time, and event time as the watermark measures it."""


KINDS: dict[str, type[Trigger]] = {}
"""The triggers of this room by name, which texts may name; each comes in with its class."""


class Trigger(NamedOptions):
    """A rule for when the panes of a window are emitted.

    Triggers are values: they compare, hash, and print as they are written.

    >>> import uncombine as uc
    >>> uc.AfterCount(3).or_finally(uc.AfterWatermark())
    RepeatUntil(AfterCount(3), AfterWatermark())
    """

    def __init_subclass__(cls, spoken: bool = True) -> None:
        # A text may not name a class of the user: it does not say whose it is.
        if spoken and cls.__module__.startswith(f"{__package__}."):
            KINDS[cls.__name__] = cls

    @property
    def children(self) -> tuple[Trigger, ...]:
        """The triggers that this trigger is made of."""
        return ()

    def or_finally(self, until: Trigger | str) -> Trigger:
        """Repeat this trigger until another one fires, which is the last firing.

        Parameters
        ----------
        until
            The trigger that ends the repetition.

        Returns
        -------
        RepeatUntil
            The two triggers in one.

        Examples
        --------
        >>> import uncombine as uc
        >>> uc.AfterCount(3).or_finally(uc.AfterWatermark())
        RepeatUntil(AfterCount(3), AfterWatermark())
        """
        return RepeatUntil(self, until)

    def words(self) -> str:
        """One line that says when this trigger fires; `explain` adds the lines of its children.

        >>> import uncombine as uc
        >>> uc.AfterCount(3).words()
        'when 3 rows of a key have come to a window'
        """
        return f"when {self!r} fires"

    def labels(self) -> tuple[str, ...]:
        """A line for `explain` to put above each child; empty for a child that needs none.

        >>> import uncombine as uc
        >>> uc.AfterCount(3).or_finally(uc.AfterWatermark()).labels()
        ('', 'until this fires, which is the last time:')
        """
        return ("",) * len(self.children)

    def explain(self) -> str:
        """The trigger in words: a line for each part, indented by its depth.

        >>> import uncombine as uc
        >>> print(uc.Repeatedly(uc.AfterCount(3)).explain())
        again and again:
          when 3 rows of a key have come to a window
        """
        # The methods of the class: a user's trigger may have a setting of the same name.
        kind = type(self)
        lines = [kind.words(self)]
        for label, child in zip(kind.labels(self), self.children, strict=True):
            below = child.explain().splitlines()
            lines += ["  " + line for line in ([label, *("  " + line for line in below)] if label else below)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        parts: list[str] = []
        spec = [f for f in fields(self) if f.init]  # type: ignore[arg-type]
        for at, f in enumerate(spec):
            value = getattr(self, f.name)
            if f.default is not MISSING and type(value) is type(f.default) and value == f.default:
                continue
            plain = len(parts) == at and at < 2 and f.default is MISSING and not f.kw_only
            parts.append(shown(value) if plain else f"{f.name}={shown(value)}")
        return f"{type(self).__name__}({', '.join(parts)})"


@dataclass(frozen=True, repr=False)
class Group(Trigger, spoken=False):
    """A trigger made of any number of others."""

    parts: tuple[Trigger, ...]

    def __init__(self, *children: Trigger | str) -> None:
        if len(children) == 1 and isinstance(children[0], list | tuple):
            children = tuple(children[0])
        if not children:
            raise InvalidArgument(f"{type(self).__name__}() needs at least one trigger, such as AfterCount(1)")
        object.__setattr__(self, "parts", tuple(as_trigger(child, type(self).__name__) for child in children))

    @property
    def children(self) -> tuple[Trigger, ...]:
        return self.parts

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.parts))})"


@dataclass(frozen=True, init=False, repr=False)
class RepeatUntil(Trigger):
    """Fires with its child, again and again, until another trigger fires; that is the last firing.

    It stands beside `Trigger`, whose `or_finally` makes it.

    Parameters
    ----------
    child
        The trigger that is repeated.
    until
        The trigger that ends the repetition.

    Examples
    --------
    >>> import uncombine as uc
    >>> uc.RepeatUntil(uc.AfterCount(2), uc.AfterWatermark())
    RepeatUntil(AfterCount(2), AfterWatermark())
    """

    child: Trigger
    until: Trigger

    def __init__(self, child: Trigger | str, until: Trigger | str) -> None:
        settle(self, child=as_trigger(child, "RepeatUntil"), until=as_trigger(until, "RepeatUntil"))

    @property
    def children(self) -> tuple[Trigger, ...]:
        return (self.child, self.until)

    def words(self) -> str:
        return "again and again:"

    def labels(self) -> tuple[str, ...]:
        return ("", "until this fires, which is the last time:")


def shown(value: Any) -> str:
    """The repr of a setting; a function is shown by its name, because its address differs from run to run."""
    return value.__name__ if isinstance(value, FunctionType) else repr(value)


def as_trigger(value: Trigger | str, who: str = "trigger=") -> Trigger:
    """The trigger that a value stands for: a trigger, or its words.

    Parameters
    ----------
    value
        The trigger, or a text.
    who
        The argument or the class that takes the trigger, for the error.

    Returns
    -------
    Trigger
        The trigger.

    Examples
    --------
    >>> import uncombine as uc
    >>> from uncombine.triggers import as_trigger
    >>> as_trigger("early every 1 minute")
    AfterWatermark(early=AtPeriod('1 minute'), late=AfterCount(1))
    >>> as_trigger("Repeatedly(FirstOf('after 10 rows', AfterDelay('1 minute')))")
    Repeatedly(FirstOf(AfterCount(10), AfterDelay('1 minute')))
    """
    made: Any = read_trigger(str(value), KINDS) if isinstance(value, str) else value
    if not isinstance(made, Trigger):
        raise InvalidArgument(
            f"{who} takes a trigger such as AfterCount(1) or 'every 10 rows', but was given {value!r}"
        )
    return made


def walk(root: Trigger) -> Iterator[Trigger]:
    """The trigger and all that it is made of, from the top down."""
    yield root
    for child in root.children:
        yield from walk(child)


def at_least_one(value: Any, who: str) -> int:
    """The value if it is a whole number of at least 1; otherwise an error that names `who`, a trigger with an n."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidArgument(f"{who}: n must be a whole number of at least 1, but is {value!r}")
    return value


def domain_of(value: str, who: str) -> str:
    """The value if it names a clock; otherwise an error that names `who`, which has a `domain`."""
    if value not in DOMAINS:
        raise InvalidArgument(f"{who}: domain must be 'processing' or 'event', but is {value!r}")
    return value


def require_percent(value: Any, who: str) -> None:
    """Raise unless a value is a percentage; the error names `who`, a trigger with a `percent`."""
    if isinstance(value, float) and 0 < value < 1:
        raise InvalidArgument(
            f"{who}(percent): percent must be a number from 1 to 100, but is {value!r}: write {value * 100:g} for "
            f"{value * 100:g} %"
        )
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= 100:
        raise InvalidArgument(f"{who}(percent): percent must be a number from 1 to 100, but is {value!r}")
