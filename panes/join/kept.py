"""The options of a join without bounds in time, of which each side says how long its rows stay.

A row meets all rows of its key that are there when it comes, and is met by all that come while it stays. As a row
leaves, nothing is said of it: pairs that were given stay as they are.

Guarded by tests/panes/join/test_join_kept.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import InvalidArgument
from ...windows import Span, span
from ...windows.spans import ZERO
from .join import SIDES, Join


@dataclass(frozen=True)
class KeptJoin(Join):
    """The options of a join of all rows of equal key, as a value; those of `Join`, and `keep`.

    Parameters
    ----------
    keep
        How long a row stays after its time, as the watermark tells: one length for both sides, a pair, or a dict by the
        name of the side; None is for ever. A side whose rows can make the other one have a match stays for ever.

    Examples
    --------
    >>> from uncombine.panes.join.kept import KeptJoin
    >>> KeptJoin("user", "left", keep=("30 days", None)).words
    'left join on user, left rows kept for 30 days, right rows for ever'
    """

    keep: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "keep", _sides(self.keep))
        for side, other in (SIDES, SIDES[::-1]):
            length = self.kept(other)
            if self.counted(side) and length is not None:
                pair = {side: self.kept(side), other: None}
                fit = tuple(pair[name] for name in SIDES)
                raise InvalidArgument(
                    f"keep= of the {other} rows is {length!r}, and with how={self.how!r} a {side} row whose match has "
                    f"left the state would count as one without a match: give keep={fit!r}, or within= in its place"
                )

    @property
    def _bounds_in_words(self) -> str:
        left, right = ("for ever" if length is None else f"for {length}" for length in self.keep)
        return f", left rows kept {left}, right rows {right}"

    @property
    def state_words(self) -> str:
        """The rows that the state keeps, and for how long."""
        late = f" plus {self.allowed_lateness}" if self.allowed_lateness > 0 else ""
        kept = [
            f"{side} rows for ever"
            if length is None
            else f"{side} rows until the watermark passes their time plus {Span(length)}{late}"
            for side, length in zip(SIDES, self.keep, strict=True)
        ]
        return f"state: {'; '.join(kept)}"

    @property
    def reach(self) -> tuple[Span, Span]:
        """Zero: a match has no bounds in time."""
        return ZERO, ZERO

    def kept(self, side: str) -> Span | None:
        """The time after its own for which a row of this side stays; None for ever."""
        length: Span | None = self.keep[SIDES.index(side)]
        return length


def _sides(keep: object) -> tuple[Span | None, Span | None]:
    """The lengths for both sides, as a user gave them."""
    if isinstance(keep, Mapping):
        if set(keep) != set(SIDES):
            raise InvalidArgument(
                f"keep= takes one length for both sides, a pair, or a dict with 'left' and 'right', not {keep!r}"
            )
        pair = [keep[side] for side in SIDES]
    elif isinstance(keep, tuple | list):
        pair = list(keep)
    else:
        pair = [keep, keep]
    if len(pair) != len(SIDES):
        raise InvalidArgument(
            f"keep= takes one length for both sides or a pair such as ('30 days', None), not {keep!r}"
        )
    left, right = (None if length is None else span(length) for length in pair)
    for length in (left, right):
        if length is not None and length < 0:
            raise InvalidArgument(f"keep= is {length!r}, and it cannot be negative")
    return left, right


__all__ = ["KeptJoin"]
