"""`uc.rolling`: each row of a table with aggregates over the rows of its key in the period before it.

Guarded by tests/lookbacks/test_rolling.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Never, TypeVar

import numpy as np
import pyarrow as pa

from ..advice import DIFF, combiner_for
from ..combiners.aggregate import ArrowStream, as_table, warn_of_weights
from ..combiners.column_names import check_named, column_name, key_names
from ..combiners.combiner import Combiner
from ..combiners.from_columns import calls_functions
from ..combiners.plan import KEY_NAMES, Plan
from ..combiners.rows.columns import Column, flat, with_missing
from ..combiners.rows.groups import Groups, group_rows
from ..combiners.rows.key_codes import group_keys, normal_keys
from ..combiners.rows.ordering import order_keys, require_order
from ..errors import InvalidArgument, TypeMismatch, nearest, require_column
from ..windows.spans import Length, positive
from ..windows.times import time_column
from .lookback import LookBack, lookbacks_of
from .results import Results, sorted_table
from .sorted_rows import Ranges, SortedRows
from .ticks import require_ticks, ticks_of

if TYPE_CHECKING:
    import pandas as pd

Given = TypeVar("Given")
Made = TypeVar("Made")


def rolling(
    table: pa.Table | pa.RecordBatch | pd.DataFrame | Iterable[Mapping[str, Any]] | Mapping[str, Any] | ArrowStream,
    period: Length | Mapping[str, Length | None] | None = None,
    *unnamed: Never,
    rows: int | None = None,
    by: str | Sequence[str] = (),
    time: str = "ts",
    closed: str = "right",
    every: Length | None = None,
    order: str | None = None,
    coarse: Length | None = None,
    min_rows: int = 1,
    **combiners: Combiner,
) -> pa.Table:
    """Each row with the results of `combiners` over the rows of its key in the period that ends at it.

    Law: the results of a row are those of `uc.aggregate` over the rows that it sees. A value that has left the period
    leaves no error, also in floats. With `exact=True` sums of floats are right to the last bit.

    Parameters
    ----------
    table
        All that `uc.aggregate` takes.
    period
        The look-back: a length of time such as "7 days", or calendar months, quarters or years in UTC such as
        "1 month". A dict gives several at once: `{"h1": "1 hour", "ever": None}` gives columns `h1_total` and
        `ever_total`; None sees all that came before.
    rows
        Instead of a period: the last so many rows of the key, by time, then `order`, then their place in the table. A
        row sees itself.
    by
        The key columns. Null is a key of its own, and NaN equals NaN. Without key columns all rows are one key.
    time
        The column of timestamps or dates; of nanoseconds the whole microseconds count. A row without a time sees
        nothing, and no other row sees it: its results are null.
    closed
        The ends of the period that belong to it, as in pandas and Polars. "right", the default, sees a row and all rows
        of its time, but none that is a whole period old; "both" sees these too; "left" and "neither" see only rows
        before its time.
    every
        Give ticks instead of rows: the multiples of this length since 1970 UTC, one row for each key and tick while
        something is in a period, and one for the tick at which all are empty again. The columns are the keys, the time
        and the results, in the order of the keys' first appearance, then of time.
    order
        The column by which rows of one time are sorted, for `rows=`; null comes first.
    coarse
        Cut the first instant of the period down to whole ones of this length since 1970 UTC, so that the period is
        longer by up to this much.
    min_rows
        The results of fewer rows than this are null. With 1, the default, a period without rows has the results of no
        rows: 0 for counts and null for most combiners.
    **combiners
        The name of each result column, and its combiner.

    Returns
    -------
    pyarrow.Table
        The rows in their order with all their columns, and the results; with `every` the ticks.

    Examples
    --------
    >>> import datetime as dt, pyarrow as pa, uncombine as uc
    >>> days = [dt.datetime(2024, 5, day) for day in (1, 4, 9)]
    >>> spent = pa.table({"ts": days, "user": ["ada"] * 3, "amount": [10, 20, 40]})
    >>> week = uc.rolling(spent, "7 days", by="user", total=uc.Sum("amount"))
    >>> week.select(["amount", "total"]).to_pylist()
    [{'amount': 10, 'total': 10}, {'amount': 20, 'total': 30}, {'amount': 40, 'total': 60}]
    """
    check_named("rolling()", unnamed)
    _require_combiners(combiners, time)
    source, keys = as_table(table), key_names(by)
    options = Rolling(
        lookbacks=lookbacks_of(period, rows, closed, coarse),
        time=column_name(time, "time="),
        by=tuple(keys),
        every=None if every is None else int(positive(every, "rolling", "every")),
        order=None if order is None else column_name(order, "order="),
        min_rows=min_rows,
    )
    options.check(source.schema, combiners)
    plan = Plan(combiners, source.schema, append_only=True)
    remedy = f"write {_over_changes('diff', DIFF, options.time)} if it has the weights of the rows"
    warn_of_weights(source, {*keys, *plan.columns, options.time}, remedy)
    threads = pa.cpu_count() if not calls_functions(combiners) else 1
    return (options.ticks if options.every is not None else options.rows)(source, plan, threads)


def _require_combiners(combiners: Mapping[str, object], time: object) -> None:
    """Raise for a plain value that is no combiner, under the name of an option that there is not."""
    for name, value in combiners.items():
        if name in ("diff", "changelog") and not isinstance(value, Combiner):
            raise InvalidArgument(
                f"rolling() takes rows that stay: for those that are retracted write {_over_changes(name, value, time)}"
            )
        is_plain = isinstance(value, str | bytes | int | float | timedelta | list | tuple | None)
        if is_plain and combiner_for(value) is None and name not in KEY_NAMES:
            if name == "time_format":
                raise InvalidArgument(f"rolling() has no option 'time_format': {_by_format('ts')}")
            raise InvalidArgument(
                f"rolling() has no option {name!r}: {nearest(name, _OPTIONS)}; a result is a combiner, such as "
                "total=uc.Sum('x')"
            )


def _by_format(time: str) -> str:
    return (
        f"for times in texts or numbers write uc.flow(rows, time={time!r}, time_format='%d.%m.%Y').rolling('7 days')"
        ".combine(total=uc.Sum('x'))"
    )


def _over_changes(option: str, value: object, time: object) -> str:
    """The same over a changelog: a flow of it."""
    timed = "" if time == "ts" else f"time={time!r}, "
    shown = repr(value) if option == "diff" else "..."
    return f"uc.flow(table, {timed}{option}={shown}).rolling('7 days').combine(total=uc.Sum('x'))"


_OPTIONS = ("period", "rows", "by", "time", "closed", "every", "order", "coarse", "min_rows")


def _null_where(column: pa.Array, few: np.ndarray | None) -> pa.Array:
    return column if few is None else with_missing(column, few)


@dataclass(frozen=True)
class Rolling:
    """The options of a rolling aggregate, over tables of some columns."""

    lookbacks: Mapping[str, LookBack]
    time: str = "ts"
    by: tuple[str, ...] = ()
    every: int | None = None
    order: str | None = None
    min_rows: int = 1

    def check(self, schema: pa.Schema, combiners: Mapping[str, object]) -> None:
        """Raise if the options do not fit each other or the columns."""
        for names, what in ((self.by, "rolling(by=)"), ((self.time,), "rolling(time=)")):
            for name in names:
                require_column(name, schema.names, what)
        try:
            time_column(pa.array([], schema.field(self.time).type))
        except TypeMismatch as error:
            raise TypeMismatch(f"{error}, or {_by_format(self.time)}") from None
        if not combiners:
            raise InvalidArgument("rolling() needs a combiner: write n=uc.Count()")
        if isinstance(self.min_rows, bool) or not isinstance(self.min_rows, int) or self.min_rows < 0:
            raise InvalidArgument(
                f"rolling(min_rows=) takes a number of rows from 0 on, but was given {self.min_rows!r}"
            )
        if self.order is not None:
            if not any(one.rows for one in self.lookbacks.values()):
                raise InvalidArgument("rolling(order=) sorts rows of one time for rows=: leave it out, or give rows=")
            require_column(self.order, schema.names, "rolling(order=)")
            require_order(schema.field(self.order).type, "rolling(order=)", self.order)
        if self.every is not None:
            require_ticks(list(self.lookbacks.values()))
        kept = [*self.by, self.time] if self.every is not None else schema.names
        for name in self.names(combiners):
            if name in kept:
                raise InvalidArgument(f"{name!r} is a column of the rows and the name of a result: rename the result")

    def names(self, combiners: Iterable[str]) -> list[str]:
        """The names of the results: those of the combiners after that of the look-back."""
        return [f"{label}_{name}" if label else name for label in self.lookbacks for name in combiners]

    def rows(self, table: pa.Table, plan: Plan, threads: int = 1) -> pa.Table:
        """The rows with their results."""
        rows, _, sorted_rows = self._sorted(table)
        place = np.zeros(table.num_rows, np.int64)
        place[rows] = np.arange(len(rows))
        timed = np.zeros(table.num_rows, np.bool_)
        timed[rows] = True

        def shown(column: pa.Array, few: np.ndarray | None) -> pa.Array:
            mask = ~timed | few[place] if few is not None else ~timed
            return column.take(pa.array(place, mask=mask if mask.any() else None))

        keys = sorted_rows.codes
        for name, column in self._results(table, plan, rows, sorted_rows, keys, sorted_rows.ranges, shown, threads):
            table = table.append_column(name, column)
        return table

    def ticks(self, table: pa.Table, plan: Plan, threads: int = 1) -> pa.Table:
        """The ticks of each key with their results."""
        assert self.every is not None
        rows, first, sorted_rows = self._sorted(table)
        codes, ticks = ticks_of(sorted_rows, list(self.lookbacks.values()), self.every)
        ranges = partial(sorted_rows.ranges_at, codes, ticks)
        place = pa.array(first[codes])
        columns: dict[str, pa.Array] = {name: normal_keys(flat(table[name]).take(place)) for name in self.by}
        zone = getattr(table.schema.field(self.time).type, "tz", None)
        columns[self.time] = pa.array(ticks).view(pa.timestamp("us", zone))
        columns.update(self._results(table, plan, rows, sorted_rows, codes, ranges, _null_where, threads))
        return pa.table(columns)

    def results_at(self, rows: pa.Table, plan: Plan, sorted_rows: SortedRows, places: np.ndarray) -> list[pa.Array]:
        """The results of some of the rows, which are sorted already, in the order of `names`."""
        keys, every_row = sorted_rows.codes[places], np.arange(len(sorted_rows))
        ranges = partial(sorted_rows.ranges, places=places)
        return [column for _, column in self._results(rows, plan, every_row, sorted_rows, keys, ranges)]

    def results_of_ticks(
        self, rows: pa.Table, plan: Plan, sorted_rows: SortedRows, codes: np.ndarray, ticks: np.ndarray
    ) -> list[pa.Array]:
        """The results of ticks over rows that are sorted already, in the order of `names`."""
        ranges, every_row = partial(sorted_rows.ranges_at, codes, ticks), np.arange(rows.num_rows)
        return [column for _, column in self._results(rows, plan, every_row, sorted_rows, codes, ranges)]

    def _sorted(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray, SortedRows]:
        """The rows with a time by key and time, the first row of each key, and the engine's view of them."""
        times, valid = time_column(flat(table[self.time]))
        if self.by:
            groups, first = group_rows([group_keys(flat(table[name])) for name in self.by], table.num_rows)
        else:
            groups, first = Groups.single(table.num_rows), np.zeros(1, np.int64)
        then = None
        if self.order is not None:
            then = order_keys([Column(flat(table[self.order]))]).keys
        if valid.all():
            sorted_rows = SortedRows.of(groups, times, then)
            return sorted_rows.order, first, sorted_rows
        timed = np.flatnonzero(valid)
        sorted_rows = SortedRows.of(groups.take(timed), times[timed], None if then is None else then[timed])
        return timed[sorted_rows.order], first, sorted_rows

    def _results(
        self,
        table: pa.Table,
        plan: Plan,
        rows: np.ndarray,
        sorted_rows: SortedRows,
        keys: np.ndarray,
        ranges: Callable[[LookBack], Ranges],
        shown: Callable[[pa.Array, np.ndarray | None], pa.Array] = _null_where,
        threads: int = 1,
    ) -> Iterator[tuple[str, pa.Array]]:
        """The results by name; `shown` has the places that have too few rows, if there are any."""
        seen = _each(ranges, list(self.lookbacks.values()), lambda: threads)
        longest = max(int(one.sizes.max(initial=0)) for one in seen)
        results = Results(plan, sorted_table(table, plan.columns, rows), sorted_rows, longest)

        def over(one: Ranges) -> list[pa.Array]:
            few = one.sizes < self.min_rows if self.min_rows > 1 else None
            few = few if few is not None and few.any() else None
            return [shown(column, few) for column in results.over(one, keys)]

        found = _each(over, seen, lambda: 1 if results.merged else threads)
        return zip(self.names(plan.compiled), chain.from_iterable(found), strict=True)


def _each(work: Callable[[Given], Made], given: Sequence[Given], threads: Callable[[], int]) -> list[Made]:
    """The work of each; the first is done before the others, which find what all share, and are done by threads."""
    made = [work(given[0])]
    if len(given) > 2 and (count := threads()) > 1:
        with ThreadPoolExecutor(count) as pool:
            return [*made, *pool.map(work, given[1:])]
    return [*made, *map(work, given[1:])]


__all__ = ["Rolling", "rolling"]
