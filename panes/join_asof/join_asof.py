"""The options of an as-of join, checked when they are built."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...errors import InvalidArgument, nearest
from ...windows import Span, span
from ...windows.spans import ZERO
from ..join.join import key_pairs, two_suffixes

DIRECTIONS = ("backward", "forward", "nearest")
"""The side in time on which a left row looks for its match."""

_HOWS = ("left", "inner")
_EMITS = ("at_once", "final")


@dataclass(frozen=True)
class JoinAsof:
    """The options of an as-of join of a left and a right input, as a value.

    A left row meets at most one right row of its key: the one that is nearest in time on the side that `direction`
    names. Of right rows of one time it is the last by `order`, and then by all its columns.

    Parameters
    ----------
    by
        The key, as `on` of a `Join` names it. Without one all rows have the same key.
    direction
        "backward": the last right row that is not after the left one. "forward": the first right time that is not
        before it. "nearest": the one with the smaller distance, and the later one if both are as far.
    tolerance
        The greatest distance of a match, which is included; None for any.
    allow_exact
        False if a right row of the same time is no match.
    how
        "left" gives left rows without a match too, with nulls, and "inner" does not.
    order
        Columns of the right input that tell which of several rows of one time is the last.
    suffixes
        The texts that are added to the names of left and right columns that the output would have twice.
    allowed_lateness
        The time by which a row may be before the watermark and is still taken.
    emit
        "at_once": a left row is emitted when it comes, and corrected when its match changes. "final": when the
        watermark says that its match cannot change.
    left_time, right_time
        The event time column of each input.
    left_diff, right_diff
        The weight column of each input, or None.

    Examples
    --------
    >>> from uncombine.panes.join_asof.join_asof import JoinAsof
    >>> JoinAsof("stock", tolerance="1 minute").words
    'left as-of join on stock, backward within 1 minute, corrected'
    """

    by: Any = ()
    direction: str = "backward"
    tolerance: Any = None
    allow_exact: bool = True
    how: str = "left"
    order: Any = ()
    suffixes: tuple[str, str] | Any = ("_left", "_right")
    allowed_lateness: Span | Any = field(default_factory=lambda: ZERO)
    emit: str = "at_once"
    left_time: str = "ts"
    right_time: str = "ts"
    left_diff: str | None = None
    right_diff: str | None = None

    def __post_init__(self) -> None:
        changes = {
            "by": key_pairs(self.by, "by="),
            "tolerance": None if self.tolerance is None else span(self.tolerance),
            "order": _names(self.order),
            "suffixes": two_suffixes(self.suffixes),
            "allowed_lateness": span(self.allowed_lateness),
        }
        for name, value in changes.items():
            object.__setattr__(self, name, value)
        choices = (
            ("direction", self.direction, DIRECTIONS),
            ("how", self.how, _HOWS),
            ("emit", self.emit, _EMITS),
        )
        for name, choice, allowed in choices:
            if choice not in allowed:
                raise InvalidArgument(f"{name}= is {choice!r}: {nearest(str(choice), allowed)}")
        if not isinstance(self.allow_exact, bool):
            raise InvalidArgument(f"allow_exact= takes True or False, not {self.allow_exact!r}")
        for name, length in (("tolerance", self.tolerance), ("allowed_lateness", self.allowed_lateness)):
            if length is not None and length < 0:
                raise InvalidArgument(f"{name}= is {length!r}, and it cannot be negative")
        if self.tolerance is not None and self.tolerance == 0 and not self.allow_exact:
            raise InvalidArgument(
                "tolerance= is 0 seconds and allow_exact= is False, so that no row can match: give another tolerance="
            )

    @property
    def option(self) -> str:
        """The name of the option of the key."""
        return "by="

    @property
    def on(self) -> tuple[tuple[str, str], ...]:
        """The pairs of names of the key."""
        return self.by

    @property
    def within(self) -> tuple[Span, Span]:
        """The bounds of the right time minus the left time of a match; without a tolerance, zero."""
        far = ZERO if self.tolerance is None else self.tolerance
        low, high = (direction != self.direction for direction in ("forward", "backward"))
        return (Span(-int(far)) if low else ZERO, far if high else ZERO)

    @property
    def reach(self) -> tuple[Span, Span]:
        """Zero: a row of the state is passed when no row of its own time can come any longer."""
        return ZERO, ZERO

    @property
    def words(self) -> str:
        """The join in words."""
        on = ", ".join(left if left == right else f"{left} = {right}" for left, right in self.by) or "no key"
        far = "" if self.tolerance is None else f" within {self.tolerance}"
        exact = "" if self.allow_exact else ", no row of the same time"
        order = f", rows of one time in order of {', '.join(self.order)}" if self.order else ""
        emit = ", emitted when final" if self.final else ", corrected"
        return f"{self.how} as-of join on {on}, {self.direction}{far}{exact}{order}{emit}"

    @property
    def state_words(self) -> str:
        """The rows that the state keeps, and for how long."""
        late = f" plus {self.allowed_lateness}" if self.allowed_lateness > 0 else ""
        left = {
            "backward": f"their time{late}",
            "forward": f"their match{late}",
            "nearest": f"their time plus the distance of their match{late}",
        }[self.direction]
        if self.direction != "backward":
            alone = "without end" if self.tolerance is None else f"for {self.tolerance}{late}"
            left += f" (without a match: {alone})"
        right = f"right rows until it passes them{late}"
        if self.direction != "forward":
            far = "" if self.tolerance is None else f" for {self.kept_for}{late}"
            right += f", and the last one of each key{far}"
        return f"state: left rows until the watermark passes {left}; {right}"

    @property
    def kept_for(self) -> Span | None:
        """The time by which the last right row of a key is kept after its own; None for any."""
        if self.tolerance is None:
            return None
        # A left row waits for a later match as long as its earlier one is far.
        return Span(int(self.tolerance) * (2 if self.direction == "nearest" else 1))

    @property
    def final(self) -> bool:
        """True if rows wait until their match cannot change."""
        return self.emit == "final"

    @property
    def pairs(self) -> bool:
        """True: the output has columns of both inputs."""
        return True

    def kept(self, side: str) -> Span | None:
        """No time: a row of the state is passed as the bounds of its reach say."""
        return ZERO

    def alone(self, side: str) -> bool:
        """True if rows of this side that have no match are emitted."""
        return side == "left" and self.how == "left"

    def counted(self, side: str) -> bool:
        """True for left rows: the output depends on their matches."""
        return side == "left"


def _names(order: object) -> tuple[str, ...]:
    if order is None:
        return ()
    names = (order,) if isinstance(order, str) else tuple(order) if isinstance(order, list | tuple) else (order,)
    if not all(isinstance(name, str) for name in names):
        raise InvalidArgument(f"order= takes the name of a column of the right flow, or several, not {order!r}")
    if twice := [name for name in names if names.count(name) > 1]:
        raise InvalidArgument(f"order= names {twice[0]!r} twice: name it once")
    return names


__all__ = ["DIRECTIONS", "JoinAsof"]
