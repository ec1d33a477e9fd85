"""The options of a join of two inputs, checked when they are built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...errors import InvalidArgument, nearest
from ...windows import Span, span
from ...windows.spans import ZERO

HOWS = ("inner", "left", "right", "full", "semi", "anti")
"""The kinds of join. "semi" and "anti" give rows of the left input only."""

LOOKUPS = ("lookup", "left_lookup")
"""The kinds of join in which a left row meets the right rows of the time when it comes, and is not corrected later."""

SIDES = ("left", "right")

UNMATCHED = ("at_once", "final")


class JoinOptions(Protocol):
    """The options of a join of any kind, as far as its keys, its columns and its inputs depend on them."""

    @property
    def option(self) -> str:
        """The name of the option of the key, for messages."""

    @property
    def on(self) -> tuple[tuple[str, str], ...]:
        """The pairs of names of the key."""

    @property
    def how(self) -> str:
        """The rows that the join gives."""

    @property
    def within(self) -> tuple[Span, Span] | None:
        """The bounds of the right time minus the left time of a match; None for a join of windows."""

    @property
    def reach(self) -> tuple[Span, Span] | None:
        """The bounds by which rows of the state stay for rows that still come; None for a join of windows."""

    @property
    def suffixes(self) -> tuple[str, str]:
        """The texts that are added to names that both sides have."""

    @property
    def allowed_lateness(self) -> Span:
        """The time by which a row may be before the watermark."""

    @property
    def left_time(self) -> str:
        """The event time column of the left input."""

    @property
    def right_time(self) -> str:
        """The event time column of the right input."""

    @property
    def left_diff(self) -> str | None:
        """The weight column of the left input."""

    @property
    def right_diff(self) -> str | None:
        """The weight column of the right input."""

    @property
    def words(self) -> str:
        """The join in words."""

    @property
    def final(self) -> bool:
        """True if rows without a match wait for the watermark."""

    @property
    def pairs(self) -> bool:
        """True if the output has columns of both inputs."""

    def kept(self, side: str) -> Span | None:
        """The time beyond its reach for which a row of this side is taken and stays; None for ever."""

    def alone(self, side: str) -> bool:
        """True if rows of this side that have no match are emitted."""

    def counted(self, side: str) -> bool:
        """True if the output depends on the matches that a row of this side has."""


@dataclass(frozen=True)
class Join:
    """The options of a join of a left and a right input, as a value.

    Parameters
    ----------
    on
        The key: a column of both inputs, several, or pairs of names as a dict or a list where the names differ
        (`{"left": "right"}`). The output has each key column once, under its left name.
    how
        "inner", "left", "right", "full", "semi" (left rows with a match) or "anti" (left rows without one).
    within
        The least and the greatest right time minus left time of a match; both are included. Without it both inputs
        must have a column `window`, and rows of one window match.
    unmatched
        When a row without a match is emitted, for `how` other than "inner" and "semi". "at_once": when it comes; it is
        retracted when a match comes, and emitted again when its last match is retracted. "final": when the watermark
        says that no match can come.
    suffixes
        What is added to the names of left and right columns that the output would have twice.
    allowed_lateness
        The time by which a row may be before the watermark and is still taken.
    left_time, right_time
        The event time column of each input.
    left_diff, right_diff
        The weight column of each input, or None.

    Examples
    --------
    >>> from uncombine.panes.join.join import Join
    >>> Join("ad", within=("-5 minutes", "10 minutes")).within
    ('-5 minutes', '10 minutes')
    >>> Join({"user": "id"}, how="left").on
    (('user', 'id'),)
    """

    on: Any
    how: str = "inner"
    within: Any = None
    unmatched: str = "at_once"
    suffixes: tuple[str, str] | Any = ("_left", "_right")
    allowed_lateness: Span | Any = field(default_factory=lambda: ZERO)
    left_time: str = "ts"
    right_time: str = "ts"
    left_diff: str | None = None
    right_diff: str | None = None

    def __post_init__(self) -> None:
        changes = {
            "on": key_pairs(self.on, "on="),
            "within": None if self.within is None else _bounds(self.within),
            "suffixes": two_suffixes(self.suffixes),
            "allowed_lateness": span(self.allowed_lateness),
        }
        for name, value in changes.items():
            object.__setattr__(self, name, value)
        if not self.on:
            raise InvalidArgument("on= names no column: name at least one that both inputs have")
        for name, choice, allowed in (("how", self.how, HOWS), ("unmatched", self.unmatched, UNMATCHED)):
            if choice not in allowed:
                others = LOOKUPS if name == "how" else ()
                raise InvalidArgument(f"{name}= is {choice!r}: {nearest(str(choice), (*allowed, *others))}")
        if self.allowed_lateness < 0:
            raise InvalidArgument(f"allowed_lateness= is {self.allowed_lateness!r}, and it cannot be negative")
        if self.final and self.how in ("inner", "semi"):
            raise InvalidArgument(
                f"unmatched='final' is for rows without a match, and how={self.how!r} emits none: leave unmatched= out"
            )

    @property
    def words(self) -> str:
        """The join in words.

        >>> Join({"user": "id"}, "left", ("0 s", "1 hour")).words
        "left join on user = id within ('0 seconds', '1 hour')"
        """
        on = ", ".join(left if left == right else f"{left} = {right}" for left, right in self.on)
        alone = f", rows without a match {self.unmatched}" if self.final else ""
        return f"{self.how} join on {on}{self._bounds_in_words}{alone}"

    @property
    def _bounds_in_words(self) -> str:
        return " in the same window" if self.within is None else f" within {self.within!r}"

    @property
    def option(self) -> str:
        """The name of the option of the key."""
        return "on="

    @property
    def reach(self) -> tuple[Span, Span] | Any:
        """The bounds by which rows of the state stay: those of a match."""
        return self.within

    @property
    def final(self) -> bool:
        """True if rows without a match wait for the watermark."""
        return self.unmatched == "final"

    @property
    def pairs(self) -> bool:
        """True if the output has columns of both inputs."""
        return self.how not in ("semi", "anti")

    def kept(self, side: str) -> Span | None:
        """No time: the bounds of a match say how long a row stays."""
        return ZERO

    def alone(self, side: str) -> bool:
        """True if rows of this side that have no match are emitted."""
        return self.how in {"left": ("left", "full", "anti"), "right": ("right", "full")}[side]

    def counted(self, side: str) -> bool:
        """True if the output depends on the number of matches that a row of this side has."""
        return self.alone(side) or (self.how == "semi" and side == "left")


def key_pairs(on: object, option: str) -> tuple[tuple[str, str], ...]:
    """The pairs (left name, right name) of a key, as an option of this name gives it.

    >>> key_pairs(["user", ("ad", "id")], "on=")
    (('user', 'user'), ('ad', 'id'))
    """
    if isinstance(on, str):
        entries: list[object] = [on]
    elif isinstance(on, Mapping):
        entries = list(on.items())
    elif isinstance(on, Iterable):
        entries = list(on)
    else:
        raise InvalidArgument(f"{option} takes the name of a column, several, or pairs of names, not {on!r}")
    pairs = []
    for one in entries:
        pair = (one, one) if isinstance(one, str) else tuple(one) if isinstance(one, Sequence) else ()
        if len(pair) != 2 or not all(isinstance(name, str) for name in pair):
            raise InvalidArgument(f"{option} takes names of columns or pairs (left name, right name), not {one!r}")
        pairs.append((str(pair[0]), str(pair[1])))
    for side, names in zip(SIDES, zip(*pairs, strict=True), strict=False):
        for name in names:
            if names.count(name) > 1:
                raise InvalidArgument(f"{option} names the {side} column {name!r} twice: name it once")
    return tuple(pairs)


def _bounds(within: object) -> tuple[Span, Span]:
    if isinstance(within, str) or not isinstance(within, Sequence) or len(within) != 2:
        raise InvalidArgument(
            "within= takes the least and the greatest right time minus left time, such as "
            f"('-5 minutes', '10 minutes'), not {within!r}"
        )
    low, high = span(within[0]), span(within[1])
    if low > high:
        raise InvalidArgument(
            f"within= goes from {low!r} to {high!r}, so that no row can match: give the lesser bound first"
        )
    return low, high


def two_suffixes(suffixes: object) -> tuple[str, str]:
    """The two texts that are added to names that both sides have."""
    pair = tuple(suffixes) if isinstance(suffixes, Sequence) and not isinstance(suffixes, str) else ()
    if len(pair) != 2 or not all(isinstance(name, str) for name in pair) or pair[0] == pair[1]:
        raise InvalidArgument(f"suffixes= takes two different texts such as ('_left', '_right'), not {suffixes!r}")
    return str(pair[0]), str(pair[1])


__all__ = ["HOWS", "LOOKUPS", "SIDES", "Join", "JoinOptions", "key_pairs", "two_suffixes"]
