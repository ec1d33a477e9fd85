"""A flow: the steps that the rows of a source go through, as a value that knows no engine.

Each method adds a step and gives a new flow; no row is read before the flow is run. A step over single rows needs no
state (`where`, `sample`, `select`, `with_columns`, `with_time`, `map`) or keeps some (`distinct`, `in_order`,
`process`). A grouping is two calls, `window` and `combine`, and its panes are rows again, which a later pane can
correct: so a step after it gets retractions, and passes them on. A source names the engine that runs a flow over it,
and the ways out ask it.

Not promised: that two flows are equal if they are built alike, or that a function is called once for a row.

Guarded by tests/local/test_local_flows.py, tests/sparkops/test_flow.py and tests/sparkops/test_steps.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Concatenate, Literal, Never, ParamSpec, TypeVar, Unpack

import pyarrow as pa

from ..advice import Adviser, no_such_step, no_such_step_before_combine, own_names
from ..combiners import Combiner
from ..combiners.column_names import check_named, column_name, column_names, key_names
from ..combiners.expressions.expr import Expr
from ..errors import InvalidArgument, require_options
from ..lookbacks.lookback import lookbacks_of
from ..panes.distinct.distinct import Distinct
from ..panes.distinct.stage import DistinctStage
from ..panes.grouping.grouping import Grouping, GroupingOptions, Mode
from ..panes.grouping.stage import GroupingStage, OpenGrouping
from ..panes.in_order.in_order import InOrder
from ..panes.in_order.stage import InOrderStage
from ..panes.join.join import SIDES, key_pairs
from ..panes.process.broadcast import PORTS
from ..panes.process.process import Process
from ..panes.process.stage import ProcessStage
from ..panes.remember.remember import Remember
from ..panes.remember.stage import RememberStage
from ..panes.rolled.rolled import Emit, Rolled
from ..panes.rolled.stage import RolledStage
from ..panes.rows.options import RowOptions, StepOptions
from ..panes.rows.stage import RowStage
from ..panes.sample import sample
from ..panes.selection import Select, dropping, renaming
from ..panes.transforms import Map, Transform, Where, WithColumns, function_of, predicate_of
from ..panes.with_time import with_time
from ..triggers import Trigger, as_trigger
from ..windows import Global, Length, Span, Window, as_window, span
from ..windows.spans import positive
from .answers import Answers
from .early_end.job_triggers import job_trigger, words_of
from .engine import FlowSource, Source, ended_early
from .flow_steps import (
    FlowSteps,
    check_filters,
    followed_flow,
    input_of,
    leaves_of,
    stages_of,
    weight_of,
    with_name,
    without_counts,
)
from .join_step import (
    Direction,
    How,
    Joined,
    JoinSide,
    Keep,
    broadcast_stage,
    join_asof_stage,
    join_stage,
    with_signals,
)
from .looking_back import JOIN_ROLLING_OPTIONS, ROLLING_OPTIONS, RollingRows, check_watermark, labelled
from .outputs import Outputs
from .result import Result
from .settings import Settings, check_free, check_kept, check_replay, check_sources
from .settle import check_lateness, settled

if TYPE_CHECKING:
    from ..panes.state.seed import Seed

JOIN_OPTIONS = ("on", "how", "within", "unmatched", "suffixes", "allowed_lateness", "keep")
JOIN_ASOF_OPTIONS = (
    *("by", "direction", "tolerance", "allow_exact", "how", "order", "suffixes", "allowed_lateness", "emit"),
)
_NOT_OF_WINDOW = ("combiners", "window", "by", "bounded", "max_future")
P = ParamSpec("P")
Made = TypeVar("Made")
OPTIONS = tuple(name for name in Grouping.__dataclass_fields__ if name not in _NOT_OF_WINDOW)


@dataclass(frozen=True, eq=False, repr=False)
class Flow(FlowSteps, Answers, Outputs, Adviser):
    """The steps that rows go through, as a value: every method returns a new flow and leaves this one as it is.

    Between two groupings, and before the first, rows are Arrow tables. `map` takes a function of a table, and
    `uc.col` makes expressions. The repr of a flow explains how it runs.

    >>> import pyarrow as pa, uncombine as uc
    >>> source = uc.flow(pa.table({"ts": ["2016-01-20T12:00:26Z"], "score": [5]}))
    >>> high = source.where(uc.col("score") > 9).window("1 minute").combine(n=uc.Count())
    >>> high.run([]).num_rows
    0
    """

    source: Source[Flow]
    door: Callable[[Any, Source[Flow], Settings], Source[Flow]] | None = None
    """Opens other rows in the place of those of the source; None for a flow that no door has opened."""

    def where(self, predicate: Expr | Callable[[pa.Table], Any]) -> Flow:
        """Keep the rows for which an expression, or a function of an Arrow table, is true."""
        return self._then(Where(predicate_of(predicate)))

    filter = where

    def select(self, *names: str) -> Flow:
        """Keep these columns, in this order."""
        return self._then(Select(tuple(key_names(names[0] if len(names) == 1 else names, "select()"))))

    def drop(self, *names: str) -> Flow:
        """Leave these columns out. The event time and the weights of the rows stay: only `select` leaves them out."""
        gone = key_names(names[0] if len(names) == 1 else names, "drop()")
        return self._then(dropping(self.schema.names, gone, [input_of(self).time, weight_of(self)]))

    def rename(self, names: Mapping[str, str] | None = None, /, **others: str) -> Flow:
        """Give columns other names: `rename({"old": "new"})`, or `rename(old="new")`.

        The event time and the weights go with their names: later steps read them under the new ones.

        >>> import uncombine as uc
        >>> rows = uc.flow([{"ts": 0, "user name": "ada", "x": 5}])
        >>> scores = rows.rename({"user name": "user"}, ts="played")
        >>> scores.window("1 minute").combine(by="user", total=uc.Sum("x")).collect()[0]["user"]
        'ada'
        """
        return self._then(renaming({} if names is None else names, others))

    def with_columns(self, *unnamed: Never, **columns: Expr | Callable[[pa.Table], Any]) -> Flow:
        """Add or replace columns; the value of each is an expression or a function of an Arrow table.

        All are computed from the columns before the step, so one cannot use the new values of another.
        """
        if unnamed:
            raise InvalidArgument(f"with_columns() takes columns by name, but was given {unnamed[0]!r}: write name=...")
        return self._then(WithColumns({n: function_of(value, f"with_columns({n}=)") for n, value in columns.items()}))

    assign = with_columns

    def with_time(self, value: Expr | Callable[[pa.Table], Any], at_most_back: Span | str = "0 seconds") -> Flow:
        """Give each row another event time: a timestamp or date from an expression or a function of an Arrow table.

        The new time replaces the old one in the column of the event time, which is `event_time` after a grouping. It
        may lie up to `at_most_back` before the old one, and the watermark is held back by as much. A row that goes
        further back, or whose new time is null, has no event time and is counted as bad by the next step.

        >>> import pyarrow as pa, uncombine as uc
        >>> day = pa.array([1_453_248_000, 1_453_334_400], pa.timestamp("s", "UTC"))
        >>> sent = uc.flow(pa.table({"ts": day, "begun": day.slice(1).take(pa.array([0, 0]))}))
        >>> later = sent.with_time(uc.col("begun")).window("1 day").combine(n=uc.Count())
        >>> later.run()["n"].to_pylist()
        [2]
        """
        return self._then(with_time(input_of(self).time, value, at_most_back))

    def map(self, function: Callable[[pa.Table], Any], *, remember: bool = False, deterministic: bool = True) -> Flow:
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
            return self._stepped(RememberStage, partial(Remember, function))
        self._check_deterministic("map", deterministic)
        return self._then(Map(function))

    def flat_map(
        self, function: Callable[[pa.Table], Any], *, remember: bool = False, deterministic: bool = True
    ) -> Flow:
        """Apply a function of an Arrow table that gives any number of rows for each row.

        With `remember=True`, as for `map`, the result of the function has a column `row` beside its own: the place of
        the row that each of its rows is made from.

        >>> import pyarrow as pa, uncombine as uc
        >>> words = uc.flow(pa.table({"ts": [0, 1], "text": ["a b", "c"]}))
        >>> def split(table):
        ...     words = [text.split() for text in table["text"].to_pylist()]
        ...     places = [place for place, some in enumerate(words) for _ in some]
        ...     words = pa.array([word for some in words for word in some], pa.string())
        ...     return pa.table({"row": pa.array(places, pa.int64()), "word": words})
        >>> words.flat_map(split, remember=True).run()["word"].to_pylist()
        ['a', 'b', 'c']
        """
        if not callable(function):
            raise InvalidArgument(f"flat_map() takes a function of an Arrow table, but was given {function!r}")
        if remember:
            return self._stepped(RememberStage, partial(Remember, function, flat=True))
        self._check_deterministic("flat_map", deterministic)
        return self._then(Map(function, step="flat_map()"))

    def sample(self, fraction: float, *, by: str | Sequence[str] | None = None, seed: int = 0) -> Flow:
        """Keep each row with a probability of `fraction`, decided by a hash of its values: the same rows in each run.

        Equal rows share their fate, and so do a row and its retraction. With `by=` all rows of a key do: a tenth of
        the users keeps all their rows. A sample has the rows of each smaller one of the same key and seed; samples of
        two seeds are independent. Without `by=` all columns count but `pane`. Rows that can be retracted need `by=`:
        columns that a row shares with its retraction.

        >>> import uncombine as uc
        >>> visits = uc.flow([{"ts": n, "user": n % 100} for n in range(1000)])
        >>> some = visits.sample(0.1, by="user")
        >>> some.combine(by="user", n=uc.Count()).run()["n"].to_pylist()
        [10, 10, 10, 10, 10, 10]
        """
        return self._then(sample(fraction, by, seed, self.schema, weight_of(self)))

    def pipe(self, function: Callable[Concatenate[Flow, P], Made], *arguments: P.args, **options: P.kwargs) -> Made:
        """The result of a function of this flow, so that steps of your own stand in a chain: `flow.pipe(clean, 3)`.

        >>> import uncombine as uc
        >>> def above(flow, least):
        ...     return flow.where(uc.col("x") > least)
        >>> len(uc.flow([{"ts": 0, "x": 5}, {"ts": 1, "x": 9}]).pipe(above, 7).run())
        1
        """
        if not callable(function):
            raise InvalidArgument(f"pipe() takes a function of a flow, but was given {function!r}")
        return function(self, *arguments, **options)

    def distinct(self, *by: str, within: Span | str | None = None, **options: Unpack[StepOptions]) -> Flow:
        """Keep the first row of each id: of the rows that are less than `within` apart, one.

        Over a changelog the first row is that with the earliest event time. When it is retracted, the next one takes
        its place. Without weights the first row that arrives is shown at once and never corrected. allowed_lateness= is
        that of `window`; rows that come later are in `left_out`. The result has `event_time` and `diff`.

        >>> import pyarrow as pa, uncombine as uc
        >>> orders = uc.flow(pa.table({"ts": [0, 1, 2], "id": ["a", "b", "a"]}))
        >>> orders.distinct("id", within="1 hour").run()["id"].to_pylist()
        ['a', 'b']
        """
        names = column_names(by[0] if len(by) == 1 else by, "distinct()")
        return self._stepped(
            DistinctStage, partial(Distinct, names, within=within, bounded=self._is_bounded), options, "distinct()"
        )

    def in_order(self, by: str | Sequence[str] = (), **options: Unpack[StepOptions]) -> Flow:
        """Hold rows until the watermark passes them, and give them in order of event time for each key.

        allowed_lateness= is that of `window`; rows that come later are in `left_out`. The result has `event_time` and
        `diff`, and no retractions: a row that is retracted while it waits is not given.

        >>> import pyarrow as pa, uncombine as uc
        >>> log = uc.flow(pa.table({"ts": [3, 1, 2], "user": ["a", "a", "a"]}))
        >>> [row.microsecond for row in log.in_order(by="user").run()["ts"].to_pylist()]
        [1, 2, 3]
        """
        return self._stepped(InOrderStage, partial(InOrder, column_names(by, "by=")), options, "in_order()")

    def process(
        self,
        by: str | Sequence[str] = (),
        *,
        function: Any,
        outputs: Mapping[str, pa.Schema] | None = None,
        broadcast: Flow | None = None,
        **options: Unpack[StepOptions],
    ) -> Flow:
        """Run a computation with state and timers for each key, which emits rows.

        `function` is an object, or a class of objects, as `KeyFunction` describes it. One Python call is made for each
        row. allowed_lateness= is that of `window`; rows that come later are in `left_out`. The result has the key, the
        columns that the function names, `event_time` and `diff`.

        `outputs` has the columns of further outputs, each by its name: `ctx.emit(row, to=name)` gives a row to one of
        them, and `.output(name)` has its rows.

        `broadcast` is a flow whose rows have no key and reach every key, such as models and rules: the function handles
        them as `BroadcastFunction` describes.
        """
        make = partial(Process, function, column_names(by, "by="), outputs)
        if broadcast is None:
            return self._stepped(ProcessStage, make, options, "process()")
        _check_join("process", "flow.process(..., broadcast=models)", broadcast, options, ("allowed_lateness",))
        return self._joined(broadcast, "process(broadcast=)", partial(broadcast_stage, make, options), PORTS)

    def rolling(
        self,
        period: Length | Mapping[str, Length | None] | None = None,
        *,
        rows: int | None = None,
        by: str | Sequence[str] = (),
        closed: Literal["right", "left", "both", "neither"] = "right",
        every: Length | None = None,
        order: str | None = None,
        coarse: Length | None = None,
        min_rows: int = 1,
        allowed_lateness: Span | str | None = None,
        emit: Emit = "at_once",
        **others: Never,
    ) -> RollingRows[Flow]:
        """Look back from each row over a period; `.combine(...)` gives each row with aggregates over what it sees.

        The rows of the result have their columns, the results, `event_time` and `diff`. A row that comes late, or is
        retracted, corrects all rows that see it. `uc.rolling` is the same over a table.

        Parameters
        ----------
        period
            The look-back: a length of time, or months, quarters or years in UTC such as "1 month". A dict gives
            several: `{"h1": "1 hour", "ever": None}` gives columns `h1_total` and `ever_total`.
        rows
            Instead of a period: the last so many rows by time, then `order`. A row sees itself.
        by
            The key columns. Without any, all rows are one key.
        closed
            The ends of the period that belong to it. "right", the default, sees a row and all rows of its time.
        every
            Give ticks instead of rows: the multiples of this length since 1970 UTC. There is one for each key and tick
            while something is in the period, and one that says that it is empty again. A tick is shown when the
            watermark has passed it, and its time is `event_time`; the other columns are the keys and the results.
        order
            The column by which rows of one time are sorted; `rows=` needs it.
        coarse
            Cut the first instant of the period down to whole ones of this length.
        min_rows
            The results of fewer rows than this are null.
        allowed_lateness
            The time by which a row may be before the watermark and is still taken. Later rows are in `left_out`.
        emit
            "at_once" gives a row when it comes, and corrects it later. "final" gives it once, when the watermark says
            that nothing can change it. A bounded flow gives each row once.

        Examples
        --------
        >>> import pyarrow as pa, uncombine as uc
        >>> spent = uc.flow(pa.table({"ts": [0, 40_000_000, 70_000_000], "x": [1, 2, 4]}))
        >>> spent.rolling("1 minute").combine(total=uc.Sum("x")).run()["total"].to_pylist()
        [1, 3, 6]
        """
        require_options(others, ROLLING_OPTIONS, "rolling()")
        options = {
            "lookbacks": lookbacks_of(period, rows, closed, coarse),
            "by": column_names(by, "by="),
            "every": None if every is None else int(positive(every, "rolling", "every")),
            "order": None if order is None else column_name(order, "order="),
            "min_rows": min_rows,
            "emit": emit,
        }
        return RollingRows(lambda combiners: self._rolled(combiners, options, allowed_lateness, "rolling()"))

    def window(
        self,
        window: Window | Length,
        trigger: Trigger | str | None = None,
        mode: Mode | None = None,
        **options: Unpack[GroupingOptions],
    ) -> WindowedRows:
        """Put the rows in windows; say when panes are emitted (`trigger`) and how they relate (`mode`).

        A window and a trigger are values, or texts in words: `window("sessions 30 minutes", "early every 1 minute")`.
        A length of time is the size of fixed windows, and "1 month", "1 quarter" and "1 year" are `Calendar` windows.
        Words and values make the same flow.

        Options are those of `Grouping`: allowed_lateness=, on_time=, closing=, only_updated=, eager_retractions=,
        late=, granularity=, timestamp=, allow_finish=. In a later stage the event time is `event_time`, and a
        retraction of the stage before is a retraction there too, unless time= and diff= name other columns. Its
        allowed_lateness is that of the stage before if not given. A mode that is not given is "retracting" if rows can
        be retracted, or if another grouping follows and a window can be shown more than once. Otherwise the mode is
        "accumulating".
        """
        require_options(options, OPTIONS, "window()")
        trigger_value = None if trigger is None else as_trigger(trigger)
        all_options = {"trigger": trigger_value, "mode": mode, **options}
        return WindowedRows(_flow=self, _window=as_window(window, "window()"), _options=all_options)

    def combine(self, by: str | Sequence[str] = (), *unnamed: Never, **combiners: Combiner) -> Flow:
        """Combine all rows of each key to one, at their end, as `window("global").combine(...)` does.

        >>> import uncombine as uc
        >>> rows = uc.flow([{"ts": 0, "x": 5}, {"ts": 1, "x": 9}])
        >>> rows.combine(total=uc.Sum("x")).run()["total"].to_pylist()
        [14]
        """
        if not self._is_bounded:
            raise InvalidArgument(
                "combine() without a window gives its rows at the end of the input, and rows with watermark= are those "
                "of a stream, which has none: write flow.window(...).combine(...)"
            )
        return self.window(Global()).combine(by, *unnamed, **combiners)

    agg = combine

    def join(
        self,
        other: Flow,
        on: Any,
        how: How = "inner",
        within: tuple[Span | str, Span | str] | None = None,
        unmatched: Literal["at_once", "final"] = "at_once",
        suffixes: tuple[str, str] = ("_left", "_right"),
        allowed_lateness: Span | str | None = None,
        keep: Keep = (),
        **others: Never,
    ) -> Flow:
        """Join this flow, which is the left one, with another by key, and by time or by what is there when a row comes.

        Any row of a flow can be corrected, and the result is then corrected too. It has the key columns once, by their
        left names, `window` in a join of windows, the other left and right columns, `event_time` (the later one of a
        pair) and `diff`.

        Parameters
        ----------
        other
            The right flow.
        on
            The key: a column of both flows, several, or pairs of names where they differ (`{"user": "id"}`). Null
            matches nothing.
        how
            "inner", "left", "right", "full", "semi" (left rows with a match) or "anti" (left rows without one).
            "lookup": each left row meets the right rows of its key that are valid when it comes, and later changes of
            these do not correct it; "left_lookup" gives left rows that meet none too, with nulls.
        within
            The least and the greatest right time minus left time of a match; both are included. Without it, `keep` and
            a lookup both flows are grouped by the same window, and panes of one window match.
        unmatched
            For rows without a match: "at_once" emits them when they come, and retracts them when a match comes. "final"
            emits them when the watermark says that no match can come.
        suffixes
            What is added to names that the result would have twice.
        allowed_lateness
            The time by which a row may be before the watermark and is still taken; that of the steps before if not
            given, or else none. Later rows are dropped and counted.
        keep
            Without `within` all rows of a key match, and a row stays so long after its time: a length, a pair for the
            left and the right rows, or a dict by side; None is for ever. Pairs with rows that have left stay as given.

        Examples
        --------
        >>> import pyarrow as pa, uncombine as uc
        >>> views = uc.flow(pa.table({"ts": [0, 9], "ad": ["a", "b"]}))
        >>> clicks = uc.flow(pa.table({"ts": [5], "ad": ["a"], "user": ["u"]}))
        >>> both = views.join(clicks, on="ad", how="left", within=("0 s", "1 minute"))
        >>> both.run().select(["ad", "user", "diff"]).to_pylist()
        [{'ad': 'a', 'user': 'u', 'diff': 1}, {'ad': 'b', 'user': None, 'diff': 1}]
        """
        options = {"on": on, "how": how, "within": within, "unmatched": unmatched, "suffixes": suffixes, "keep": keep}
        options["allowed_lateness"] = allowed_lateness
        _check_join("join", "a.join(b, on)", other, others, JOIN_OPTIONS)
        return self._joined(other, "join()", partial(join_stage, options=options))

    def join_asof(
        self,
        other: Flow,
        *,
        by: Any = (),
        direction: Direction = "backward",
        tolerance: Span | str | None = None,
        allow_exact: bool = True,
        how: Literal["left", "inner"] = "left",
        order: str | Sequence[str] | None = None,
        suffixes: tuple[str, str] = ("_left", "_right"),
        allowed_lateness: Span | str | None = None,
        emit: Literal["at_once", "final"] = "at_once",
        **others: Never,
    ) -> Flow:
        """Join each row of this flow with the one row of another that is nearest in time, of its key.

        Any row of either flow can be late or be retracted, and the result is then corrected. It has the key columns
        once, by their left names, the other left and right columns, `event_time` (that of the left row) and `diff`.

        Parameters
        ----------
        other
            The right flow.
        by
            The key: a column of both flows, several, or pairs of names where they differ (`{"user": "id"}`). Null
            matches nothing. Without it all rows have the same key.
        direction
            "backward": the last right row that is not after the left one. "forward": the first that is not before it.
            "nearest": the one with the smaller distance, and the later one of two that are as far.
        tolerance
            The greatest distance of a match, which is included. Without it any distance will do.
        allow_exact
            False if a right row of the same time is no match.
        how
            "left" gives left rows without a match too, with nulls, and "inner" does not.
        order
            Columns of the right flow that say which of several rows of one time is the last: the one with the greatest
            values, null being least. Where these are equal too, all its columns decide, in their order.
        suffixes
            The texts that are added to names that the result would have twice.
        allowed_lateness
            The time by which a row may be before the watermark and is still taken; that of the steps before if not
            given, or else none. Later rows are dropped and counted.
        emit
            "at_once" emits a left row when it comes, and corrects it when its match changes. "final" emits it when the
            watermark says that its match cannot change, and never corrects it.

        Examples
        --------
        >>> import pyarrow as pa, uncombine as uc
        >>> trades = uc.flow(pa.table({"ts": [3, 9], "stock": ["a", "b"]}))
        >>> quotes = uc.flow(pa.table({"ts": [1, 2, 5], "stock": ["a"] * 3, "bid": [90, 91, 92]}))
        >>> trades.join_asof(quotes, by="stock").run().select(["stock", "bid"]).to_pylist()
        [{'stock': 'a', 'bid': 91}, {'stock': 'b', 'bid': None}]
        """
        options = {"by": by, "direction": direction, "tolerance": tolerance, "allow_exact": allow_exact, "how": how}
        options |= {"order": order, "suffixes": suffixes, "allowed_lateness": allowed_lateness, "emit": emit}
        _check_join("join_asof", "a.join_asof(b, by=...)", other, others, JOIN_ASOF_OPTIONS)
        return self._joined(other, "join_asof()", partial(join_asof_stage, options=options))

    def join_rolling(
        self,
        events: Flow,
        period: Length | Mapping[str, Length | None] | None = None,
        *,
        by: Any = (),
        available: str | None = None,
        closed: Literal["right", "left", "both", "neither"] = "right",
        coarse: Length | None = None,
        min_rows: int = 1,
        allowed_lateness: Span | str | None = None,
        emit: Emit = "at_once",
        **others: Never,
    ) -> RollingRows[Flow]:
        """Look back from each row over the events of another flow; `.combine(...)` adds aggregates of these.

        For features of a model: the rows are the labels, and each sees only events that are not after it, with
        `available` as they were known at its time. The result has the columns of the labels, the results, `event_time`
        and `diff`. An event that comes late, or is retracted, corrects the labels that see it.

        Parameters
        ----------
        events
            The flow of which `combine` reads the columns.
        period
            The look-back, or a dict of several by their names, as in `rolling`; `{"ever": None}` is all that came
            before.
        by
            The key: a column of both flows, several, or pairs of names where they differ (`{"user": "id"}`). Null
            matches nothing. Without it all rows have the same key.
        available
            The column of the events with the time at which each was known. A label sees only events that were known at
            its time. Without it an event is known from its own time on. An event without a value is a bad row.
        closed
            The ends of the period that belong to it. "right", the default, sees events of the label's own time.
        coarse
            Cut the first instant of the period down to whole ones of this length.
        min_rows
            The results of fewer events than this are null.
        allowed_lateness
            The time by which a row may be before the watermark and is still taken. Later rows are in `left_out`.
        emit
            "at_once" gives a label when it comes, and corrects it later. "final" gives it once, when the watermark says
            that nothing can change it. A bounded flow gives each label once.

        Examples
        --------
        >>> import pyarrow as pa, uncombine as uc
        >>> labels = uc.flow(pa.table({"ts": [10, 30], "user": ["ada"] * 2}))
        >>> spent = pa.table({"ts": [5, 20], "user": ["ada"] * 2, "x": [1, 2], "came": [5, 40]})
        >>> spent = spent.set_column(3, "came", spent["came"].cast(pa.timestamp("us")))
        >>> options = {"by": "user", "available": "came"}
        >>> rows = labels.join_rolling(uc.flow(spent), {"ever": None}, **options)
        >>> rows.combine(total=uc.Sum("x")).run()["ever_total"].to_pylist()
        [1, 1]
        """
        _check_join("join_rolling", "labels.join_rolling(events, '7 days', by=...)", events, {}, ())
        require_options(others, JOIN_ROLLING_OPTIONS, "join_rolling()")
        inputs, sides = self._sides(events, "join_rolling()")
        pairs = key_pairs(by, "join_rolling(by=)")
        known = None if available is None else column_name(available, "available=")
        options = {
            "lookbacks": lookbacks_of(period, None, closed, coarse),
            "by": [left for left, _ in pairs],
            "min_rows": min_rows,
            "emit": emit,
            "labels": True,
        }

        def both(combiners: Mapping[str, Combiner]) -> Flow:
            found = labelled(sides[0], sides[1], pairs, known, combiners)
            source = FlowSource(schema=found.schema, inputs=found.fitted(inputs), output=found.rows)
            rows = Flow(source=source, settings=found.settings, source_schema=found.schema)
            return rows._rolled(combiners, options, allowed_lateness, "join_rolling()")

        return RollingRows(both)

    def _rolled(
        self, combiners: Mapping[str, Combiner], options: Mapping[str, Any], lateness: Span | str | None, who: str
    ) -> Flow:
        """The flow with a rolling step after it."""
        check_watermark(options, self.settings, who)
        make = partial(Rolled, combiners, bounded=self._is_bounded, **options)
        return self._stepped(RolledStage, make, {} if lateness is None else {"allowed_lateness": lateness}, who)

    def _sides(self, other: Flow, who: str, names: Sequence[str] = SIDES) -> tuple[tuple[Flow, ...], list[JoinSide]]:
        """This flow and another one, as the inputs of a step, and what such a step looks at."""
        named = [with_name(flow, name) for flow, name in zip((self, other), names, strict=True)]
        inputs = tuple(without_counts(followed_flow(flow)) for flow in named)
        check_sources([leaf for flow in inputs for leaf in leaves_of(flow)], who)
        sides = [JoinSide.of(flow) for flow in inputs]
        return inputs, sides

    def _joined(
        self, other: Flow, who: str, make: Callable[[Sequence[JoinSide]], Joined], names: Sequence[str] = SIDES
    ) -> Flow:
        """The flow of a stage over this flow and another one."""
        inputs, sides = self._sides(other, who, names)
        stage, schema, settings = make(sides)
        source = FlowSource(schema=schema, inputs=inputs, output=stage.output(), stage=stage)
        return Flow(source=source, settings=settings, source_schema=schema, transforms=stage.shown)

    def replay(self, *, close_at_end: bool = False) -> Flow:
        """Play bounded rows in order of their processing time, with all panes that a stream gives for them.

        It comes before the steps that keep state. The source needs `watermark=` and `processing_time=`. Without
        `replay` a bounded flow has the final pane of each window alone. With `close_at_end=True` the watermark moves to
        the end of time after the last row, as if the input had ended; otherwise windows stay open, as in a stream.

        >>> import uncombine as uc
        >>> rows = [{"ts": 0, "seen": 5, "x": 1}, {"ts": 1, "seen": 9, "x": 2}]
        >>> history = uc.flow(rows, watermark="1 minute", processing_time="seen")
        >>> scores = history.replay(close_at_end=True)
        >>> sums = scores.window("1 minute", "early every 1 row").combine(total=uc.Sum("x"))
        >>> sums.run()["total"].to_pylist()
        [1, 3, 3]
        """
        source, settings = self.source.replayed(), replace(self.settings, replay=True, close_at_end=close_at_end)
        if any(not stage.of_source for stage in self.stages):
            raise InvalidArgument("replay() comes before steps that keep state: write it after uc.flow(...)")
        check_replay(settings)
        return replace(self, source=source, settings=settings)

    def explain(self, *, until: Trigger | str | None = None) -> str:
        """A text that says how the flow runs, and why; with `until=`, also what ends a run of it early."""
        if until is None:
            return self.source.engine.explain(self)
        ended, _ = ended_early(self, until)
        lines = [f"    {line}" for line in words_of(job_trigger(until))]
        return "\n".join([ended.explain(), "  files are read one after the other until this fires:", *lines])

    def __repr__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        return self.source.engine.draw(self)

    def _run(self, script: Sequence[Any] | None, start: Seed | str | None = None) -> Result:
        return self.source.engine.run(self, script, start)

    def _answer(self, way: str) -> Result:
        return self.source.engine.answer(self, way)

    def _no_such(self, name: str) -> AttributeError:
        return no_such_step(name)

    def __dir__(self) -> list[str]:
        """The names for users, without the fields, of which engines build a query, and without second names."""
        return sorted(own_names(type(self)) - set(Flow.__dataclass_fields__))

    def _stepped(
        self,
        kind: type[RowStage],
        make: Callable[..., RowOptions],
        written: Mapping[str, Any] = MappingProxyType({}),
        who: str = "",
    ) -> Flow:
        """The flow with a step over single rows after it, with the options that a user has written."""
        if "late" in written:
            raise InvalidArgument(f"{who} has no late=: rows that come too late for it are in left_out")
        require_options(written, ("allowed_lateness",), who)
        flow = without_counts(followed_flow(self))
        rows, number = input_of(flow), stages_of(flow) + 1
        check_kept(rows, flow.schema, f"the flow before stage {number}")
        options: dict[str, Any] = {"time": rows.time, "diff": rows.diff, "max_future": rows.max_future}
        if rows.allowed_lateness is not None:
            options["allowed_lateness"] = rows.allowed_lateness
        step = make(**{**options, **written})
        if rows.allowed_lateness is not None and rows.diff is not None:
            check_lateness(span(step.allowed_lateness), rows.allowed_lateness, f"stage {number}")
        stage = kind(flow.transforms, step)
        changed = replace(flow, stages=(*flow.stages, stage), transforms=stage.shown)
        check_free(changed.schema)
        return changed

    @property
    def _is_bounded(self) -> bool:
        """True if the input of the flow ends."""
        return self.settings.close_at_end if self.settings.replay else not self.source.streaming

    @property
    def _changes(self) -> bool:
        return input_of(followed_flow(self)).diff is not None

    def _then(self, transform: Transform) -> Flow:
        changed = replace(
            self, transforms=(*self.transforms, transform.settled(self.schema, self.source.storable_field))
        )
        check_free(changed.schema)
        if not changed.schema.names:
            raise InvalidArgument(f"{transform!r} leaves no column: keep at least one")
        return changed

    def _check_deterministic(self, step: str, deterministic: bool) -> None:
        if not deterministic and self._changes:
            raise InvalidArgument(
                f"{step}(deterministic=False) over rows that can be retracted would not retract what it gave before: "
                "give remember=True"
            )


@dataclass(frozen=True, eq=False, repr=False)
class WindowedRows(Adviser):
    """Rows in windows, which `combine` turns into panes.

    >>> import pyarrow as pa, uncombine as uc
    >>> rows = uc.flow(pa.schema({"ts": pa.timestamp("us", "UTC"), "score": pa.int64()}))
    >>> rows.window(uc.Global()).combine(best=uc.Max("score")).schema.names
    ['window', 'best', 'event_time', 'diff', 'pane']
    """

    # No name without an underscore but `combine`: a step that comes too early must find the hint.
    _flow: Flow
    _window: Window
    _options: Mapping[str, Any] = field(default_factory=dict)

    def _no_such(self, name: str) -> AttributeError:
        return no_such_step_before_combine(name)

    def __repr__(self) -> str:
        return f"rows in windows of {self._window!r}, which .combine(...) turns into panes"

    def __dir__(self) -> list[str]:
        return sorted(own_names(type(self)))

    def combine(self, by: str | Sequence[str] = (), *unnamed: Never, **combiners: Combiner) -> Flow:
        """Combine the rows of each key and window; the result is a flow of panes.

        `by` names the key columns. Each combiner comes after the name of its result: `n=uc.Count()`.
        """
        check_named("combine()", unnamed)
        flow, signals = with_signals(followed_flow(self._flow), self._options.get("trigger"), Flow)
        settings = flow.settings
        options = {"by": column_names(by, "by="), **self._options}
        written = OpenGrouping(combiners=combiners, window=self._window, options=options)
        number = stages_of(flow) + 1
        [grouping] = settled([written], input_of(flow), flow._is_bounded, settings.each_batch, number)
        grouping.check_trigger(settings.each_batch)
        stage = GroupingStage(flow.transforms, grouping=grouping, open_grouping=written, signals=signals)
        stage.operator(flow.schema)
        return replace(flow, stages=(*flow.stages, stage), transforms=())

    agg = combine


def _check_join(who: str, call: str, other: object, others: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raise for an argument that is no flow, and for options that a join does not have."""
    if not isinstance(other, Flow):
        window = " that ends with window(...): add .combine(...)" if isinstance(other, WindowedRows) else ""
        raise InvalidArgument(f"{who}() takes a flow, not a {type(other).__name__}{window or f': write {call}'}")
    if "late" in others:
        raise InvalidArgument(f"{who}() has no late=: rows that come too late for a join are in flow.left_out")
    require_options(others, names, f"{who}()")


__all__ = [
    "OPTIONS",
    "Flow",
    "FlowSource",
    "WindowedRows",
    "check_filters",
    "followed_flow",
]
