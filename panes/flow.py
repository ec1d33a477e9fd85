"""A flow: the steps that the rows of a source go through, as a value that knows no engine.

A source knows how to run a flow. `uc.local.run` runs any flow without Spark.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from ..combiners import Combiner
from ..combiners.expressions.expr import Expr
from ..errors import InvalidArgument, TypeMismatch, require_column, require_options
from ..triggers import Trigger, uses_processing_time
from ..windows import Window
from .grouping import Grouping
from .hints import no_such_step, no_such_step_before_combine
from .late_rows import LATE, late_type
from .operators.grouping.operator import Operator
from .shard.parcels import AT
from .stages import Asked, Before, check_followed, settled
from .transforms import Map, Select, Transform, Where, WithColumns, applied, function_of, predicate_of
from .watermark_strategies import IngressTime, Strategy, strategy_of

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


@dataclass(frozen=True)
class Settings:
    """The options with which a flow reads its source."""

    time: str
    watermark: Strategy | str | None = None
    diff: str | None = None
    processing_time: str | None = None
    replay: bool = False
    close_at_end: bool = False
    wake: bool = True
    shards: int | None = None
    name: str | None = None
    each_batch: bool = False
    """True if the watermark runs from the beginning to the end of time in each bundle."""

    @cached_property
    def strategy(self) -> Strategy | None:
        """The strategy that `watermark` names."""
        return None if self.watermark is None else strategy_of(self.watermark)


@dataclass(frozen=True)
class Stage:
    """A grouping and the transforms before it."""

    transforms: tuple[Transform, ...]
    grouping: Grouping
    asked: Asked
    """The options that the user gave. Options left open are settled again when another grouping follows."""


def flow_of(source: Source, settings: Settings) -> Flow:
    """Build a flow over any source and check its settings against the schema."""
    schema = source.schema
    strategy, time, replay = settings.strategy, settings.time, settings.replay
    processing_time, shards = settings.processing_time, settings.shards
    ingress = isinstance(strategy, IngressTime)
    check_name(settings.name)
    if not ingress:
        require_column(time, schema.names, "time=")
    for name, what in ((settings.diff, "diff="), (processing_time, "processing_time=")):
        if name is not None:
            require_column(name, schema.names, what)
    if processing_time is not None:
        _check_processing_time(processing_time, schema)
    _check_free(schema)
    if strategy is not None:
        strategy.check(schema)
    if source.streaming and strategy is None:
        raise InvalidArgument("a streaming flow needs watermark=, such as uc.BoundedLag('10 minutes')")
    if source.streaming and replay:
        raise InvalidArgument("replay=True plays a bounded DataFrame, but this source is a stream: leave replay= out")
    if replay and (strategy is None or processing_time is None):
        missing = "watermark=" if strategy is None else "processing_time="
        raise InvalidArgument(f"replay=True needs {missing}, because the panes of a stream depend on it")
    if ingress and not (source.streaming or replay):
        raise InvalidArgument(
            "watermark=IngressTime() needs a stream or a replay: give replay=True and processing_time=, or use time="
        )
    if settings.close_at_end and not replay:
        raise InvalidArgument(
            "close_at_end=True needs replay=True: leave it out, because any other bounded flow closes at its end"
        )
    if shards is not None and (not isinstance(shards, int) or isinstance(shards, bool) or shards < 1):
        raise InvalidArgument(f"shards= must be a whole number of at least 1, but is {shards!r}")
    if ingress and time not in schema.names:
        schema = schema.append(pa.field(time, pa.timestamp("us", "UTC")))
    return Flow(source, settings, schema)


def _check_free(schema: pa.Schema) -> None:
    """Raise if a column has the name of that which carries processing times."""
    if AT in schema.names:
        raise InvalidArgument(f"the library keeps processing times in column {AT!r}: give your column another name")


def check_name(name: object) -> None:
    """Raise unless the value is a valid name of a flow."""
    if name is None:
        return
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or "#" in name:
        raise InvalidArgument(f"name= must be a text without '#' and line breaks, such as 'clicks', but is {name!r}")


def _check_processing_time(name: str, schema: pa.Schema) -> None:
    """Raise unless the column has a type that a processing time can have."""
    kind = schema.field(name).type
    if not pa.types.is_timestamp(kind):
        raise TypeMismatch(f"processing_time= takes a timestamp column, but {name!r} is {kind}: cast it first")


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
            before, schema = schema, Operator(stage.grouping, schema).output_schema
            if stage.grouping.late == "emit" and self.source.late_column:
                schema = schema.append(pa.field(LATE, late_type(before)))
        return self._after(self.transforms, schema)

    @property
    def _input(self) -> pa.Schema:
        """The columns that the last grouping reads."""
        last = self.stages[-1]
        return replace(self, stages=self.stages[:-1], transforms=last.transforms).schema

    def _after(self, transforms: Sequence[Transform], schema: pa.Schema) -> pa.Schema:
        return applied(transforms, schema.empty_table()).schema

    def map(self, function: Callable[[pa.Table], Any]) -> Flow:
        """Apply a function of an Arrow table that returns an Arrow table or a pandas DataFrame.

        The function is called with tables of any size, and once without rows to learn the columns of its result.
        """
        if not callable(function):
            raise InvalidArgument(f"map() takes a function of an Arrow table, but was given {function!r}")
        return self._then(Map(function))

    def where(self, predicate: Expr | Callable[[pa.Table], Any]) -> Flow:
        """Keep the rows for which an expression, or a function of an Arrow table, is true."""
        return self._then(Where(predicate_of(predicate)))

    def select(self, *names: str) -> Flow:
        """Keep these columns, in this order."""
        return self._then(Select(tuple(column_name(name, "select()") for name in names)))

    def with_columns(self, **columns: Expr | Callable[[pa.Table], Any]) -> Flow:
        """Add or replace columns; the value of each is an expression or a function of an Arrow table."""
        return self._then(WithColumns({n: function_of(value, f"with_columns({n}=)") for n, value in columns.items()}))

    def _then(self, transform: Transform) -> Flow:
        changed = replace(self, transforms=(*self.transforms, transform.settled(self.schema, self.source.held)))
        _check_free(changed.schema)
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
        flow = self.flow
        settings = flow.settings
        streamed = flow.source.streaming or settings.replay
        if flow.stages and flow.stages[-1].grouping.late == "emit" and flow.source.late_column:
            raise InvalidArgument(
                "late='emit' puts late rows among the panes, which only the last grouping of a flow may do: "
                "use late='drop' in the groupings before it"
            )
        bounded = not flow.source.streaming and not (settings.replay and not settings.close_at_end)
        keys = column_names(by, "by=")
        asked = [*(stage.asked for stage in flow.stages), Asked(combiners, self.window, {"by": keys, **self.options})]
        source = flow.source.before or Before(settings.time, settings.diff)
        *before, grouping = settled(asked, source, bounded, settings.each_batch)
        if grouping.late == "emit" and LATE in (*grouping.by, *combiners):
            raise InvalidArgument(
                f"late='emit' gives late rows in column {LATE!r}: give the key or result of that name another one"
            )
        grouping.check_trigger(settings.each_batch)
        Operator(grouping, flow.schema)
        if before:
            check_followed(before[-1], flow._input, settings.each_batch)
        if streamed and settings.processing_time is None and uses_processing_time(grouping.asked) and settings.replay:
            raise InvalidArgument("a replay with a trigger of processing time needs processing_time=: name the column")
        stages = [replace(stage, grouping=settled) for stage, settled in zip(flow.stages, before, strict=True)]
        return replace(flow, stages=(*stages, Stage(flow.transforms, grouping, asked[-1])), transforms=())


def column_names(by: Any, what: str) -> Any:
    """The names of columns. A bare column of `uc.col` or of Spark's `F.col` stands for its name."""
    if isinstance(by, Iterable) and not isinstance(by, str | Expr) and not _is_of_spark(by):
        return tuple(column_name(name, what) for name in by)
    return column_name(by, what)


def column_name(value: Any, what: str) -> Any:
    """The name of a bare column; other values unchanged."""
    if isinstance(value, Expr):
        if value.op == "col":
            return value.args[0]
        raise InvalidArgument(
            f"{what} takes names of columns, but was given {value!r}: make it a column with with_columns()"
        )
    if _is_of_spark(value):
        found = re.fullmatch(r"Column<'`?(\w+)`?'>", str(value))
        if found is None:
            raise InvalidArgument(
                f"{what} takes names of columns, but was given {value}: make it a column of df before uc.flow(df)"
            )
        return found[1]
    return value


def _is_of_spark(value: object) -> bool:
    """True for a column of Spark's `F.col`, which this module knows without importing pyspark."""
    kind = type(value)
    return kind.__name__ == "Column" and kind.__module__.startswith("pyspark.")


__all__ = ["LATE", "Flow", "Settings", "Source", "Stage", "Windowed", "flow_of"]
