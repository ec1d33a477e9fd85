"""Triggers made of triggers, nested to any depth."""

from __future__ import annotations

from dataclasses import dataclass

from .language import Trigger, _Group, at_least_one, trigger


class FirstOf(_Group):
    """When any of its triggers fires; finished when one that fired is finished.

    >>> import uncombine as uc
    >>> uc.FirstOf(uc.AfterCount(100), uc.AfterDelay("1 minute"))
    FirstOf(AfterCount(100), AfterDelay('1 minute'))
    """


class AllOf(_Group):
    """When all of its triggers have been ready at some time since the last firing; finished when all are.

    >>> import uncombine as uc
    >>> uc.AllOf(uc.AfterCount(10), uc.AtPeriod("1 minute"))
    AllOf(AfterCount(10), AtPeriod('1 minute'))
    """


class SequenceOf(_Group):
    """One after the other: only the active trigger sees events, and the next takes over when it finishes.

    >>> import uncombine as uc
    >>> uc.SequenceOf(uc.AfterCount(1), uc.AfterWatermark())
    SequenceOf(AfterCount(1), AfterWatermark())
    """


@dataclass(frozen=True, repr=False)
class Repeatedly(Trigger):
    """Again and again: its trigger starts anew each time it finishes.

    >>> import uncombine as uc
    >>> uc.Repeatedly(uc.AfterCount(2))
    Repeatedly(AfterCount(2))
    """

    child: Trigger

    def __post_init__(self) -> None:
        trigger(self.child, "Repeatedly")

    @property
    def children(self) -> tuple[Trigger, ...]:
        return (self.child,)


@dataclass(frozen=True, repr=False)
class RepeatUntil(Trigger):
    """Again and again until another trigger fires, which is the last firing.

    >>> import uncombine as uc
    >>> uc.RepeatUntil(uc.AfterCount(2), uc.AfterWatermark())
    RepeatUntil(AfterCount(2), AfterWatermark())
    """

    child: Trigger
    until: Trigger

    def __post_init__(self) -> None:
        trigger(self.child, "RepeatUntil")
        trigger(self.until, "RepeatUntil")

    @property
    def children(self) -> tuple[Trigger, ...]:
        return (self.child, self.until)


@dataclass(frozen=True, repr=False)
class RepeatCount(Trigger):
    """Again and again, n times in all.

    >>> import uncombine as uc
    >>> uc.RepeatCount(uc.AfterCount(10), 3)
    RepeatCount(AfterCount(10), 3)
    """

    child: Trigger
    n: int

    def __post_init__(self) -> None:
        trigger(self.child, "RepeatCount")
        at_least_one(self.n, "RepeatCount")

    @property
    def children(self) -> tuple[Trigger, ...]:
        return (self.child,)
