"""The options of `rolling(...).combine(...)`, checked when they are built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import pyarrow as pa

from ...combiners.combiner import Combiner
from ...combiners.plan import Plan
from ...combiners.rows.hashing import require_hash
from ...errors import InvalidArgument, nearest
from ...lookbacks.lookback import LookBack
from ...lookbacks.over_table import Rolling
from ...windows import Span
from ..rows.options import DIFF, EVENT_TIME, Columns, RowOptions, key_columns, require_keys
from .labels import event_schema

Emit: TypeAlias = Literal["at_once", "final"]
EMITS = ("at_once", "final")


@dataclass(frozen=True, repr=False)
class Rolled(RowOptions):
    """Rows with the results of combiners over the rows of their key in one look-back or several.

    Parameters
    ----------
    combiners
        The name of each result, and its combiner.
    lookbacks
        The look-backs by their names; a single one has the name "".
    by
        The key columns. Without any, all rows are one key.
    order
        The column by which rows of one time are sorted, where a look-back is a number of rows.
    min_rows
        The results of fewer rows are null.
    emit
        "at_once" gives a row when it comes, and corrects it. "final" gives it once, when no row can change it.
    bounded
        True if the input ends, so that each row is given once.
    labels
        True if the rows are labels, which see and are given, and events, which are seen (`labels.py`).
    every
        The microseconds between ticks, which are given in place of the rows.

    Examples
    --------
    >>> import uncombine as uc
    >>> from uncombine.lookbacks.lookback import LookBack
    >>> from uncombine.panes.rolled.rolled import Rolled
    >>> Rolled({"n": uc.Count()}, {"": LookBack.of("1 hour")}, emit="final").final
    True
    """

    combiners: Mapping[str, Combiner]
    lookbacks: Mapping[str, LookBack]
    by: Sequence[str] | str = ()
    order: str | None = None
    min_rows: int = 1
    emit: Emit = "at_once"
    bounded: bool = False
    labels: bool = False
    every: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "by", key_columns(self.by, "rolling(by=)"))
        if self.emit not in EMITS:
            raise InvalidArgument(f"rolling(emit={self.emit!r}): {nearest(str(self.emit), EMITS)}")

    @property
    def who(self) -> str:
        """The step as users write it."""
        return "join_rolling()" if self.labels else "rolling()"

    @property
    def final(self) -> bool:
        """True if no row is given that could be corrected."""
        return self.bounded or self.emit == "final"

    @property
    def words(self) -> str:
        """The step in words."""
        looks = [f"{name} {one.words}" if name else one.words for name, one in self.lookbacks.items()]
        closed = {one.closed for one in self.lookbacks.values()} - {"right"}
        by = f" by {', '.join(self.by)}" if self.by else ""
        order = f", rows of one time in order of {self.order}" if self.order else ""
        ends = f", closed {', '.join(sorted(closed))}" if closed else ""
        results = ", ".join(f"{name}={combiner!r}" for name, combiner in self.combiners.items())
        emit = "emitted when final" if self.final else "corrected"
        by = f" each {Span(self.every)}{by}" if self.every is not None else by
        return f"{self.who.removesuffix('()')} over {', '.join(looks)}{by}{ends}{order}: {results}; {emit}"

    @property
    def state_words(self) -> str:
        """The rows that the state keeps, and for how long."""
        late = f" plus {self.allowed_lateness}" if self.allowed_lateness > 0 else ""
        every = list(self.lookbacks.values())
        if any(one.ever for one in every):
            return "state: all rows, without end"
        if self.rows:
            return f"state: the last {self.rows} rows of each key that cannot change, and all after them"
        longest = max(every, key=lambda one: one.longest)
        return f"state: rows until the watermark passes their time plus {longest.words}{late}"

    @property
    def rolling(self) -> Rolling:
        """The same look-backs over a table of rows with their event time."""
        return Rolling(
            lookbacks=self.lookbacks,
            time=EVENT_TIME,
            by=tuple(self.by),
            every=self.every,
            order=self.order,
            min_rows=self.min_rows,
        )

    @property
    def within(self) -> tuple[Span, ...]:
        """The lengths of time of the look-backs that have one, about as long for months."""
        return tuple(Span(one.micros or one.longest) for one in self.lookbacks.values() if one.micros or one.months)

    @property
    def rows(self) -> int:
        """The most rows of a look-back that is a number of rows; 0 if none is."""
        return max(one.rows for one in self.lookbacks.values())

    def checked(self, schema: pa.Schema) -> Columns:
        """The columns of an input of this schema; raises if they do not fit."""
        columns = self.columns(schema, self.who)
        require_keys(self.by, schema, "rolling(by=)")
        self.rolling.check(columns.rows, self.combiners)
        for name in self.rolling.names(self.combiners):
            if name in (EVENT_TIME, DIFF, "pane"):
                raise InvalidArgument(f"{name!r} is a column of every result of {self.who}: rename the result")
        if self.rows:
            if self.order is None:
                raise InvalidArgument(
                    "rolling(rows=) in a flow needs order=, a column that sorts rows of one time: the order in which "
                    "rows arrive is not the same in each run"
                )
            for field in columns.user:
                require_hash(field.type, "rolling(rows=)", field.name)
        return columns

    def results(self, plan: Plan) -> list[pa.Field]:
        """The columns of the results."""
        kinds = {field.name: field.type for field in plan.outputs}
        names = [(label, name) for label in self.lookbacks for name in kinds]
        return [pa.field(f"{label}_{name}" if label else name, kinds[name]) for label, name in names]

    def plan(self, columns: Columns) -> Plan:
        """The combiners on the columns of a row; rows are never retracted from their states."""
        rows = event_schema(columns.rows) if self.labels else columns.rows
        return Plan(self.combiners, rows, append_only=True)


__all__ = ["EMITS", "Emit", "Rolled"]
