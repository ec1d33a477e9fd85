"""A flow: the steps that the rows of a source go through, as a value that knows no engine.

A source knows how to run a flow. `uc.local.run` runs any flow without Spark.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import pyarrow as pa

from ..combiners import Combiner
from ..combiners.expressions.expr import Expr
from ..errors import InvalidArgument, require_options
from ..triggers import Trigger
from ..windows import Span, Window, span
from .column_names import column_name, column_names
from .grouping import Grouping
from .hints import no_such_step, no_such_step_before_combine
from .late_rows import LATE, late_type
from .operators.distinct.distinct import Distinct
from .operators.order.in_order import InOrder
from .operators.process.process import Process
from .operators.remember.remember import Remember
from .operators.rows.options import RowOptions
from .settings import Settings, check_free, check_settings
from .stage import GroupingStage, RowStage, Stage
from .stages import DIFF, Asked, Before, check_followed, check_lateness, followed, settled
from .transforms import Map, Select, Transform, Where, WithColumns, applied, function_of, predicate_of
from .watermark_strategies import IngressTime
from .with_time import with_time

OPTIONS = tuple(name for name in Grouping.__dataclass_fields__ if name not in ("combiners", "window", "by", "bounded"))


class Source(ABC):
    """Rows of a known schema, and how to run a flow over them."""

    schema: pa.Schema
    streaming: bool
    inputs: tuple[Flow, ...] = ()
    """The flows whose rows these are, if the source is made of flows."""
    before: Before | None = None
    """The demands of the steps of these flows on the first grouping after them."""
    late_column = True
    """True if late rows stand among the panes of the last grouping, in the column `late`."""

    @abstractmethod
    def describe(self) -> str:
        """A text that names the source."""

    @abstractmethod
    def held(self, field: pa.Field) -> pa.Field:
        """The column in the type in which the engine of this source returns it."""

    @abstractmethod
    def df(self, flow: Flow) -> Any:
        """The panes of a flow over this source, as a DataFrame of the engine."""

    @abstractmethod
    def explain(self, flow: Flow) -> str:
        """A text that says how the engine runs a flow over this source, and why."""


def flow_of(source: Source, settings: Settings) -> Flow:
    """Build a flow over any source and check its settings against the schema."""
    schema = source.schema
    check_settings(settings, schema, source.streaming)
    if isinstance(settings.strategy, IngressTime) and settings.time not in schema.names:
        schema = schema.append(pa.field(settings.time, pa.timestamp("us", "UTC")))
    return Flow(source, settings, schema)


@dataclass(frozen=True, eq=False, repr=False)
class Flow:
    """The steps that rows go through, as a value: every method returns a new flow and leaves this one as it is.

    Between two groupings, and before the first, rows are Arrow tables. `map` takes a function of a table, and
    `uc.col` makes expressions. The repr of a flow explains how it runs.

    >>> import pyarrow as pa, uncombine as uc
    >>> source = uc.local.source(pa.table({"ts": ["2016-01-20T12:00:26Z"], "score": [5]}))
    >>> high = source.where(uc.col("score") > 9).window(uc.Fixed("1 minute")).combine(n=uc.Count())
    >>> uc.local.run([], high).num_rows
    0
    """

    source: Source
    settings: Settings
    source_schema: pa.Schema
    stages: tuple[Stage, ...] = ()
    transforms: tuple[Transform, ...] = ()
    """The transforms after the last grouping."""

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the flow, as an Arrow schema."""
        schema = self.source_schema
        for stage in self.stages:
            schema = self._after(stage.transforms, schema)
            before, schema = schema, stage.operator(schema).output_schema
            if stage.late == "emit" and self.source.late_column:
                schema = schema.append(pa.field(LATE, late_type(before)))
        return self._after(self.transforms, schema)

    def _after(self, transforms: Sequence[Transform], schema: pa.Schema) -> pa.Schema:
        return applied(transforms, schema.empty_table()).schema

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
            return self._stepped(partial(Remember, function))
        self._check_deterministic("map", deterministic)
        return self._then(Map(function))

    def flat_map(
        self, function: Callable[[pa.Table], Any], *, remember: bool = False, deterministic: bool = True
    ) -> Flow:
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

    def distinct(self, *by: str, within: Span | str | None = None, **options: Any) -> Flow:
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
        return self._stepped(partial(Distinct, names, within=within, bounded=is_bounded(self)), options, "distinct()")

    def in_order(self, by: str | Sequence[str] = (), **options: Any) -> Flow:
        """Hold rows until the watermark passes them, and give them in order of event time for each key.

        Options are allowed_lateness= and late=, as for `window`. The result has `event_time` and `diff`, and no
        retractions: a row that is retracted while it waits is not given.

        >>> import pyarrow as pa, uncombine as uc
        >>> log = uc.local.source(pa.table({"ts": [3, 1, 2], "user": ["a", "a", "a"]}))
        >>> [row.microsecond for row in uc.local.run(flow=log.in_order(by="user"))["ts"].to_pylist()]
        [1, 2, 3]
        """
        return self._stepped(partial(InOrder, column_names(by, "by=")), options, "in_order()")

    def process(self, by: str | Sequence[str] = (), *, function: Any, **options: Any) -> Flow:
        """Run a computation with state and timers for each key, which emits rows.

        `function` is an object, or a class of objects, as `KeyFunction` describes it. One Python call is made for each
        row. Options are allowed_lateness= and late=, as for `window`. The result has the key, the columns that the
        function names, `event_time` and `diff`.
        """
        return self._stepped(partial(Process, function, column_names(by, "by=")), options, "process()")

    def _check_deterministic(self, step: str, deterministic: bool) -> None:
        if not deterministic and before(followed_flow(self)).diff is not None:
            raise InvalidArgument(
                f"{step}(deterministic=False) over rows that can be retracted would not retract what it gave before: "
                "give remember=True"
            )

    def _stepped(self, make: Callable[..., RowOptions], given: Mapping[str, Any] | None = None, who: str = "") -> Flow:
        """The flow with a step over single rows after it."""
        require_options(given or {}, ("allowed_lateness", "late"), who)
        flow = followed_flow(self)
        known = before(flow)
        options: dict[str, Any] = {"time": known.time, "diff": known.diff}
        transforms = flow.transforms
        if known.panes:
            options["max_future"] = None
            if known.diff is None and DIFF in flow.schema.names:  # every pane counts as one row
                transforms = (*transforms, Select(tuple(name for name in flow.schema.names if name != DIFF)))
        if known.allowed_lateness is not None:
            options["allowed_lateness"] = known.allowed_lateness
        step = make(**{**options, **(given or {})})
        if known.allowed_lateness is not None and known.diff is not None:
            check_lateness(span(step.allowed_lateness), known.allowed_lateness, stages_of(flow) + 1)
        stage = RowStage(transforms, step)
        changed = replace(flow, stages=(*flow.stages, stage), transforms=())
        check_free(changed.schema)
        return changed

    def where(self, predicate: Expr | Callable[[pa.Table], Any]) -> Flow:
        """Keep the rows for which an expression, or a function of an Arrow table, is true."""
        return self._then(Where(predicate_of(predicate)))

    def select(self, *names: str) -> Flow:
        """Keep these columns, in this order."""
        return self._then(Select(tuple(column_name(name, "select()") for name in names)))

    def with_columns(self, **columns: Expr | Callable[[pa.Table], Any]) -> Flow:
        """Add or replace columns; the value of each is an expression or a function of an Arrow table."""
        return self._then(WithColumns({n: function_of(value, f"with_columns({n}=)") for n, value in columns.items()}))

    def with_time(self, value: Expr | Callable[[pa.Table], Any], at_most_back: Span | str = "0 seconds") -> Flow:
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
        return self._then(with_time(before(self).time, value, at_most_back))

    def _then(self, transform: Transform) -> Flow:
        changed = replace(self, transforms=(*self.transforms, transform.settled(self.schema, self.source.held)))
        check_free(changed.schema)
        if not changed.schema.names:
            raise InvalidArgument(f"{transform!r} leaves no column: keep at least one")
        return changed

    def window(
        self, window: Window, trigger: Trigger | None = None, mode: str | None = None, **options: Any
    ) -> Windowed:
        """Put the rows in windows; say when panes are emitted (`trigger`) and how they relate (`mode`).

        Options are those of `Grouping`: allowed_lateness=, on_time=, closing=, only_updated=, eager_retractions=,
        late=, granularity=, timestamp=, allow_finish=, max_future=. In a later stage the event time is `event_time`,
        and a retraction of the stage before is a retraction there too, unless time= and diff= name other columns. Its
        allowed_lateness is that of the stage before if not given. A mode that is not given is "retracting" if rows can
        be retracted, or if another grouping follows and a window can be shown more than once. Otherwise the mode is
        "accumulating".
        """
        require_options(options, OPTIONS, "window()")
        if not isinstance(window, Window):
            raise InvalidArgument(f"window() takes a window such as uc.Fixed('1 minute'), but was given {window!r}")
        return Windowed(self, window, {"trigger": trigger, "mode": mode, **options})

    @property
    def df(self) -> Any:
        """The panes, as a DataFrame of the source's engine. It is streaming if the source is."""
        return self.source.df(self)

    def explain(self) -> str:
        """A text that says how the flow runs, and why."""
        return self.source.explain(self)

    def __repr__(self) -> str:
        return self.explain()

    def __getattr__(self, name: str) -> Any:
        if hasattr(Flow, name):
            # A property that raises an AttributeError leads here. Read again, it shows its own error.
            return object.__getattribute__(self, name)
        raise no_such_step(name)


def groupings_of(flow: Flow) -> list[Grouping]:
    """The groupings of a flow, without its other stages."""
    return [stage.grouping for stage in flow.stages if isinstance(stage, GroupingStage)]


def stages_of(flow: Flow) -> int:
    """The number of stages of a flow, with those of the flows that its source is made of."""
    return len(flow.stages) + sum(map(stages_of, flow.source.inputs))


def is_bounded(flow: Flow) -> bool:
    """True if the input of a flow ends."""
    return not flow.source.streaming and not (flow.settings.replay and not flow.settings.close_at_end)


def before(flow: Flow) -> Before:
    """The input that a flow is for its next stage."""
    if flow.stages:
        return flow.stages[-1].before()
    return flow.source.before or Before(flow.settings.time, flow.settings.diff)


def followed_flow(flow: Flow) -> Flow:
    """The flow with its last stage settled for another one after it; raises if none can follow."""
    if not flow.stages:
        return flow
    *first, last = flow.stages
    if last.late == "emit" and flow.source.late_column:
        raise InvalidArgument(
            "late='emit' puts late rows among the panes, which only the last stage of a flow may do: use late='drop' "
            "in the stages before it"
        )
    if not isinstance(last, GroupingStage):
        return flow
    each_batch = flow.settings.each_batch
    grouping = followed(last.grouping, last.asked, stages_of(flow), each_batch)
    check_followed(grouping, replace(flow, stages=tuple(first), transforms=last.transforms).schema, each_batch)
    return replace(flow, stages=(*first, replace(last, grouping=grouping)))


@dataclass(frozen=True, eq=False)
class Windowed:
    """Rows in windows, which `combine` turns into panes.

    >>> import pyarrow as pa, uncombine as uc
    >>> rows = uc.local.source(pa.schema({"ts": pa.timestamp("us", "UTC"), "score": pa.int64()}))
    >>> rows.window(uc.Global()).combine(best=uc.Max("score")).schema.names
    ['window', 'best', 'event_time', 'diff', 'pane']
    """

    flow: Flow
    window: Window
    options: Mapping[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        raise no_such_step_before_combine(name)

    def combine(self, by: str | Sequence[str] = (), **combiners: Combiner) -> Flow:
        """Combine the rows of each key and window; the result is a flow of panes."""
        flow, settings = followed_flow(self.flow), self.flow.settings
        asked = Asked(combiners, self.window, {"by": column_names(by, "by="), **self.options})
        number = stages_of(flow) + 1
        [grouping] = settled([asked], before(flow), is_bounded(flow), settings.each_batch, number)
        if grouping.late == "emit" and LATE in (*grouping.by, *combiners):
            raise InvalidArgument(
                f"late='emit' gives late rows in column {LATE!r}: give the key or result of that name another one"
            )
        grouping.check_trigger(settings.each_batch)
        stage = GroupingStage(flow.transforms, grouping, asked)
        stage.operator(flow.schema)
        if stage.wakes and settings.replay and settings.processing_time is None:
            raise InvalidArgument("a replay with a trigger of processing time needs processing_time=: name the column")
        return replace(flow, stages=(*flow.stages, stage), transforms=())


__all__ = ["LATE", "OPTIONS", "Flow", "Source", "Windowed", "before", "flow_of", "followed_flow", "groupings_of"]
