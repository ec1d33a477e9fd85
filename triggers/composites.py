"""Triggers made of triggers, nested to any depth; `RepeatUntil` stands in `language`."""

from __future__ import annotations

from dataclasses import dataclass

from ..windows.window import settle
from .language import Group, Trigger, as_trigger, at_least_one


class FirstOf(Group):
    """Fires when any of its triggers fires; finished when one that fired is finished.

    Parameters
    ----------
    *children
        The triggers, or their words; at least one.

    Examples
    --------
    >>> import uncombine as uc
    >>> uc.FirstOf(uc.AfterCount(100), uc.AfterDelay("1 minute"))
    FirstOf(AfterCount(100), AfterDelay('1 minute'))
    """

    def words(self) -> str:
        return "when any of these fires:"


class AllOf(Group):
    """Fires when each of its triggers has been ready since the last firing; finished when all are finished.

    Parameters
    ----------
    *children
        The triggers, or their words; at least one.

    Examples
    --------
    >>> import uncombine as uc
    >>> uc.AllOf(uc.AfterCount(10), uc.AtPeriod("1 minute"))
    AllOf(AfterCount(10), AtPeriod('1 minute'))
    """

    def words(self) -> str:
        return "when all of these are ready:"


class SequenceOf(Group):
    """Fires with its active trigger; the next trigger becomes active when that one finishes.

    Only the active trigger sees events.

    Parameters
    ----------
    *children
        The triggers, or their words, in their order; at least one.

    Examples
    --------
    >>> import uncombine as uc
    >>> uc.SequenceOf(uc.AfterCount(1), uc.AfterWatermark())
    SequenceOf(AfterCount(1), AfterWatermark())
    """

    def words(self) -> str:
        return "one after the other:"


@dataclass(frozen=True, init=False, repr=False)
class Repeatedly(Trigger):
    """Fires with its child, which starts again each time it finishes.

    Parameters
    ----------
    child
        The trigger that is repeated, or its words.

    Examples
    --------
    >>> import uncombine as uc
    >>> uc.Repeatedly(uc.AfterCount(2)), uc.Repeatedly("after 2 rows")
    (Repeatedly(AfterCount(2)), Repeatedly(AfterCount(2)))
    """

    child: Trigger

    def __init__(self, child: Trigger | str) -> None:
        settle(self, child=as_trigger(child, "Repeatedly"))

    @property
    def children(self) -> tuple[Trigger, ...]:
        return (self.child,)

    def words(self) -> str:
        return "again and again:"


@dataclass(frozen=True, init=False, repr=False)
class Clearing(Trigger):
    """Fires with its child, and asks to empty the window then, in a mode that ends in `_by_default`.

    In mode "retracting_by_default" the pane is retracted by the next one of the window, which shows the rows since.

    Parameters
    ----------
    child
        The trigger that empties the window when it fires, or its words.

    Examples
    --------
    >>> import uncombine as uc
    >>> uc.Repeatedly("after 2 rows and clear")
    Repeatedly(Clearing(AfterCount(2)))
    >>> rows = [uc.Elements([{"ts": 0, "x": x}]) for x in (1, 2, 4, 8)]
    >>> trigger, mode = "early every 2 rows and clear", "retracting_by_default"
    >>> totals = uc.flow(rows).window("1 minute", trigger, mode).combine(x=uc.Sum("x"))
    >>> totals.run(rows).panes.select(["x", "diff"]).to_pydict()
    {'x': [3, 3, 12], 'diff': [1, -1, 1]}
    """

    child: Trigger

    def __init__(self, child: Trigger | str) -> None:
        settle(self, child=as_trigger(child, "Clearing"))

    @property
    def children(self) -> tuple[Trigger, ...]:
        return (self.child,)

    def words(self) -> str:
        return "emptying the window:"


@dataclass(frozen=True, init=False, repr=False)
class RepeatCount(Trigger):
    """Fires with its child n times in all; the child starts again each time it finishes.

    Parameters
    ----------
    child
        The trigger that is repeated, or its words.
    n
        The number of firings, at least 1.

    Examples
    --------
    >>> import uncombine as uc
    >>> uc.RepeatCount(uc.AfterCount(10), 3)
    RepeatCount(AfterCount(10), 3)
    """

    child: Trigger
    n: int

    def __init__(self, child: Trigger | str, n: int) -> None:
        settle(self, child=as_trigger(child, "RepeatCount"), n=at_least_one(n, "RepeatCount(child, n)"))

    @property
    def children(self) -> tuple[Trigger, ...]:
        return (self.child,)

    def words(self) -> str:
        return f"{self.n} times in all:" if self.n > 1 else "once in all:"
