"""The options of a lookup join, checked when they are built."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...errors import InvalidArgument, nearest
from ...windows import Span, span
from ...windows.spans import ZERO
from ..join.join import LOOKUPS, key_pairs, two_suffixes


@dataclass(frozen=True)
class Lookup:
    """The options of a join in which a left row meets the right rows that are valid when it comes, as a value.

    Parameters
    ----------
    on
        The key, as `on` of a `Join` names it.
    how
        "lookup", or "left_lookup", which gives left rows that meet none too, with nulls.
    suffixes
        The texts that are added to the names of left and right columns that the output would have twice.
    allowed_lateness
        The time by which a left row may be before the watermark and is still taken. For as long it is remembered which
        rows it met, if it can be retracted.
    left_time, right_time
        The event time column of each input.
    left_diff, right_diff
        The weight column of each input, or None.

    Examples
    --------
    >>> from uncombine.panes.lookup.lookup import Lookup
    >>> Lookup({"user": "id"}).words
    'lookup join on user = id'
    """

    on: Any
    how: str = "lookup"
    suffixes: tuple[str, str] | Any = ("_left", "_right")
    allowed_lateness: Span | Any = field(default_factory=lambda: ZERO)
    left_time: str = "ts"
    right_time: str = "ts"
    left_diff: str | None = None
    right_diff: str | None = None

    def __post_init__(self) -> None:
        changes = {
            "on": key_pairs(self.on, "on="),
            "suffixes": two_suffixes(self.suffixes),
            "allowed_lateness": span(self.allowed_lateness),
        }
        for name, value in changes.items():
            object.__setattr__(self, name, value)
        if not self.on:
            raise InvalidArgument("on= names no column: name at least one that both inputs have")
        if self.how not in LOOKUPS:
            raise InvalidArgument(f"how= is {self.how!r}: {nearest(str(self.how), LOOKUPS)}")
        if self.allowed_lateness < 0:
            raise InvalidArgument(f"allowed_lateness= is {self.allowed_lateness!r}, and it cannot be negative")

    @property
    def option(self) -> str:
        """The name of the option of the key."""
        return "on="

    @property
    def within(self) -> tuple[Span, Span]:
        """Zero: a match has no bounds in time."""
        return ZERO, ZERO

    @property
    def reach(self) -> tuple[Span, Span]:
        """Zero: what a left row met is of no use when no retraction of it can come any longer."""
        return ZERO, ZERO

    @property
    def words(self) -> str:
        """The join in words."""
        on = ", ".join(left if left == right else f"{left} = {right}" for left, right in self.on)
        alone = ", rows without a match with nulls" if self.alone("left") else ""
        return f"lookup join on {on}{alone}"

    @property
    def state_words(self) -> str:
        """The rows that the state keeps, and for how long."""
        if self.left_diff is None:
            return "state: the right rows that are valid, for ever; no left rows"
        late = f" plus {self.allowed_lateness}" if self.allowed_lateness > 0 else ""
        return (
            "state: the right rows that are valid, for ever; left rows, with those that they met, until the watermark "
            f"passes their time{late}"
        )

    @property
    def final(self) -> bool:
        """False: a left row is given when it comes."""
        return False

    @property
    def pairs(self) -> bool:
        """True: the output has columns of both inputs."""
        return True

    def kept(self, side: str) -> Span | None:
        """Right rows stay for ever."""
        return ZERO if side == "left" else None

    def alone(self, side: str) -> bool:
        """True if rows of this side that meet none are emitted."""
        return side == "left" and self.how == "left_lookup"

    def counted(self, side: str) -> bool:
        """False: a later match changes nothing of what was given."""
        return False


__all__ = ["Lookup"]
