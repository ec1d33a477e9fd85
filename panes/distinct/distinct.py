"""The options of `distinct`: one row of each id, checked when they are built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...errors import InvalidArgument
from ...windows import Span, span
from ..rows.options import LONGEST, Columns, RowOptions, key_columns, require_keys


@dataclass(frozen=True, repr=False)
class Distinct(RowOptions):
    """One row of each id: the first, and then the first that is `within` or more after the one before.

    Parameters
    ----------
    by
        The columns of the id.
    within
        The length of event time in which an id is shown once. None means all of time: every id is kept for ever.
    bounded
        True if the input ends.

    Examples
    --------
    >>> from uncombine.panes.distinct.distinct import Distinct
    >>> Distinct("id", within="1 hour").by
    ('id',)
    >>> Distinct("id", bounded=False)
    Traceback (most recent call last):
    uncombine.errors.InvalidArgument: distinct() without within= keeps every id of an input without end: ...
    """

    by: Sequence[str] | str
    within: Span | str | None = None
    bounded: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "by", key_columns(self.by, "distinct()"))
        if not self.by:
            raise InvalidArgument("distinct() takes the columns of an id: write distinct('id', within='1 hour')")
        if self.within is not None:
            object.__setattr__(self, "within", span(self.within))
            if self.reach <= 0:
                raise InvalidArgument(f"within= is {self.within!r}, and it must be more than nothing")
        elif not self.bounded:
            raise InvalidArgument(
                "distinct() without within= keeps every id of an input without end: give the length of time in which "
                "an id is shown once, such as within='1 hour'"
            )

    @property
    def reach(self) -> int:
        """The length of `within` in microseconds; for all of time, more than rows can be apart."""
        return LONGEST if self.within is None else min(int(span(self.within)), LONGEST)

    def checked(self, schema: pa.Schema) -> Columns:
        """The columns of an input of this schema; raises if they do not fit."""
        columns = self.columns(schema, "distinct()")
        require_keys(self.by, schema, "distinct()")
        return columns


__all__ = ["Distinct"]
