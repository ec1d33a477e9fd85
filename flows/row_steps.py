"""The steps of a flow over single rows, with state and without: methods that give a new flow.

Guarded by tests/local/test_local_flows.py and tests/sparkops/test_steps.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Never, Self

import pyarrow as pa

from ..combiners.column_names import column_name, column_names
from ..combiners.expressions.expr import Expr
from ..errors import InvalidArgument
from ..panes.distinct.distinct import Distinct
from ..panes.in_order.in_order import InOrder
from ..panes.process.process import Process
from ..panes.remember.remember import Remember
from ..panes.rows.options import RowOptions
from ..panes.transforms import Map, Select, Transform, Where, WithColumns, function_of, predicate_of
from ..panes.with_time import with_time
from ..windows import Span


class RowSteps(ABC):
    """The part of a flow that adds steps over single rows."""

    @property
    @abstractmethod
    def _is_bounded(self) -> bool:
        """True if the input of the flow ends."""

    @property
    @abstractmethod
    def _changes(self) -> bool:
        """True if rows of the flow can be retracted."""

    @property
    @abstractmethod
    def _time(self) -> str:
        """The column of the event time."""

    @abstractmethod
    def _then(self, transform: Transform) -> Self:
        """The flow with a transform after it."""

    @abstractmethod
    def _stepped(self, make: Callable[..., RowOptions], given: Mapping[str, Any] | None = None, who: str = "") -> Self:
        """The flow with a step that keeps state after it."""

    def map(self, function: Callable[[pa.Table], Any], *, remember: bool = False, deterministic: bool = True) -> Self:
        """Apply a function of an Arrow table that returns an Arrow table or a pandas DataFrame.

        The function is called with tables of any size, and once without rows to learn the columns of its result.

        With `remember=True` the result of each row is kept as long as the row can be retracted, so that a retraction
        retracts exactly what was given before: for models, lookups, clocks and random numbers. The function then gives
        one row for each row, and the result has its columns, `event_time` and `diff`. Without `remember`, a retraction
        is computed by the function again. Say `deterministic=False` of a function that may then give another result:
        over a changelog it is refused without `remember`.
        """
        if not callable(function):
            raise InvalidArgument(f"map() takes a function of an Arrow table, but was given {function!r}")
        if remember:
            return self._stepped(partial(Remember, function))
        self._check_deterministic("map", deterministic)
        return self._then(Map(function))

    def flat_map(
        self, function: Callable[[pa.Table], Any], *, remember: bool = False, deterministic: bool = True
    ) -> Self:
        """Apply a function of an Arrow table that gives any number of rows for each row.

        With `remember=True`, as for `map`, the result of the function has a column `row` beside its own: the place of
        the row that each of its rows is made from.

        >>> import pyarrow as pa, uncombine as uc
        >>> words = uc.local.source(pa.table({"ts": [0, 1], "text": ["a b", "c"]}))
        >>> def split(table):
        ...     pairs = [(i, word) for i, text in enumerate(table["text"].to_pylist()) for word in text.split()]
        ...     places, found = zip(*pairs) if pairs else ((), ())
        ...     return pa.table({"row": pa.array(places, pa.int64()), "word": pa.array(found, pa.string())})
        >>> uc.local.run(flow=words.flat_map(split, remember=True))["word"].to_pylist()
        ['a', 'b', 'c']
        """
        if not callable(function):
            raise InvalidArgument(f"flat_map() takes a function of an Arrow table, but was given {function!r}")
        if remember:
            return self._stepped(partial(Remember, function, flat=True))
        self._check_deterministic("flat_map", deterministic)
        return self._then(Map(function, step="flat_map()"))

    def distinct(self, *by: str, within: Span | str | None = None, **options: Any) -> Self:
        """Keep the first row of each id: of the rows that are less than `within` apart, one.

        Over a changelog the first row is that with the earliest event time. When it is retracted, the next one takes
        its place. Without weights the first row that arrives is shown at once and never corrected. Options are
        allowed_lateness= and late=, as for `window`. The result has `event_time` and `diff`.

        >>> import pyarrow as pa, uncombine as uc
        >>> orders = uc.local.source(pa.table({"ts": [0, 1, 2], "id": ["a", "b", "a"]}))
        >>> uc.local.run(flow=orders.distinct("id", within="1 hour"))["id"].to_pylist()
        ['a', 'b']
        """
        names = column_names(by[0] if len(by) == 1 else by, "distinct()")
        return self._stepped(partial(Distinct, names, within=within, bounded=self._is_bounded), options, "distinct()")

    def in_order(self, by: str | Sequence[str] = (), **options: Any) -> Self:
        """Hold rows until the watermark passes them, and give them in order of event time for each key.

        Options are allowed_lateness= and late=, as for `window`. The result has `event_time` and `diff`, and no
        retractions: a row that is retracted while it waits is not given.

        >>> import pyarrow as pa, uncombine as uc
        >>> log = uc.local.source(pa.table({"ts": [3, 1, 2], "user": ["a", "a", "a"]}))
        >>> [row.microsecond for row in uc.local.run(flow=log.in_order(by="user"))["ts"].to_pylist()]
        [1, 2, 3]
        """
        return self._stepped(partial(InOrder, column_names(by, "by=")), options, "in_order()")

    def process(self, by: str | Sequence[str] = (), *, function: Any, **options: Any) -> Self:
        """Run a computation with state and timers for each key, which emits rows.

        `function` is an object, or a class of objects, as `KeyFunction` describes it. One Python call is made for each
        row. Options are allowed_lateness= and late=, as for `window`. The result has the key, the columns that the
        function names, `event_time` and `diff`.
        """
        return self._stepped(partial(Process, function, column_names(by, "by=")), options, "process()")

    def _check_deterministic(self, step: str, deterministic: bool) -> None:
        if not deterministic and self._changes:
            raise InvalidArgument(
                f"{step}(deterministic=False) over rows that can be retracted would not retract what it gave before: "
                "give remember=True"
            )

    def where(self, predicate: Expr | Callable[[pa.Table], Any]) -> Self:
        """Keep the rows for which an expression, or a function of an Arrow table, is true."""
        return self._then(Where(predicate_of(predicate)))

    def select(self, *names: str) -> Self:
        """Keep these columns, in this order."""
        return self._then(Select(tuple(column_name(name, "select()") for name in names)))

    def with_columns(self, *unnamed: Never, **columns: Expr | Callable[[pa.Table], Any]) -> Self:
        """Add or replace columns; the value of each is an expression or a function of an Arrow table.

        All are computed from the columns before the step, so one cannot use the new values of another.
        """
        if unnamed:
            raise InvalidArgument(f"with_columns() takes columns by name, but was given {unnamed[0]!r}: write name=...")
        return self._then(WithColumns({n: function_of(value, f"with_columns({n}=)") for n, value in columns.items()}))

    def with_time(self, value: Expr | Callable[[pa.Table], Any], at_most_back: Span | str = "0 seconds") -> Self:
        """Give each row another event time: a timestamp or date from an expression or a function of an Arrow table.

        The new time replaces the old one in the column of the event time, which is `event_time` after a grouping. It
        may lie up to `at_most_back` before the old one, and the watermark is held back by as much. A row that goes
        further back, or whose new time is null, has no event time and is counted as bad by the next step.

        >>> import pyarrow as pa, uncombine as uc
        >>> day = pa.array([1_453_248_000, 1_453_334_400], pa.timestamp("s", "UTC"))
        >>> sent = uc.local.source(pa.table({"ts": day, "begun": day.slice(1).take(pa.array([0, 0]))}))
        >>> later = sent.with_time(uc.col("begun")).window(uc.Fixed("1 day")).combine(n=uc.Count())
        >>> uc.local.run(flow=later)["n"].to_pylist()
        [2]
        """
        return self._then(with_time(self._time, value, at_most_back))


__all__ = ["RowSteps"]
