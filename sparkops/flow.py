"""Flows: what to do with the rows of a source, as a value; `df` is what Spark makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..combiners import Combiner
from ..combiners.expressions import Expr
from ..errors import InvalidArgument, TypeMismatch, require_column, require_options
from ..panes import Grouping, Operator
from ..panes.stages import Asked, check_followed, settled
from ..panes.strategies import IngressTime, Strategy, strategy_of
from ..triggers import Trigger, uses_processing_time
from ..windows import Window
from .naming import check_name
from .sources import DataFrameSource, Source, check_processing_time
from .tasks import LATE, late_type
from .transforms import Map, Select, Transform, Where, WithColumns, applied, function_of, predicate_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OPTIONS = tuple(name for name in Grouping.__dataclass_fields__ if name not in ("combiners", "window", "by", "bounded"))


@dataclass(frozen=True)
class Stage:
    """A grouping and the transforms before it."""

    transforms: tuple[Transform, ...]
    grouping: Grouping
    asked: Asked
    """What the user said of the grouping; what is left open is settled anew when another grouping follows."""


def flow(
    df: DataFrame,
    time: str = "ts",
    watermark: Strategy | str | None = None,
    *,
    diff: str | None = None,
    processing_time: str | None = None,
    replay: bool = False,
    close_at_end: bool = False,
    wake: bool = True,
    shards: int | None = None,
    name: str | None = None,
) -> Flow:
    """A flow over the rows of a DataFrame, bounded or streaming.

    Parameters
    ----------
    df
        Any DataFrame; a streaming one gives a streaming flow.
    time
        The event time column.
    watermark
        How rows tell how far event time has come: `BoundedLag`, `PerSource`, `Punctuated`, `Monotonic`, `IngressTime`,
        or a length of time, which is a `BoundedLag`. A bounded flow that is not replayed needs none.
    diff
        The weight column of a changelog, or None.
    processing_time
        The column with each row's processing time, so that a backfill gives the panes that a stream has given; None is
        the time of each batch.
    replay
        On a bounded DataFrame: give all the panes that a stream would have given, row by row in order of
        `processing_time`, and not only the last of each window.
    close_at_end
        In a replay: let the watermark go to the end of time when the history is over.
    wake
        Whether a stream with processing-time triggers runs batches without data when something is due. A query with
        `trigger(availableNow=True)` would never end so: give wake=False for one, and what is due comes with the data.
    shards
        Into how many parts the keys are divided; as many as Spark has shuffle partitions if not given.
    name
        The name under which `progress` and `watch` show the flow, where a query has several. It may change between two
        runs from a checkpoint.

    Examples
    --------
    >>> import uncombine as uc
    >>> spark = uc.session()
    >>> scores = spark.sql("SELECT timestamp'2016-01-20 12:00:26' AS ts, 'dan' AS user, 5 AS score")
    >>> totals = uc.flow(scores).window(uc.Fixed("2 minutes")).combine(by="user", total=uc.Sum("score"))
    >>> totals.df.select("user", "window.start", "total").show()
    +----+-------------------+-----+
    |user|              start|total|
    +----+-------------------+-----+
    | dan|2016-01-20 12:00:00|    5|
    +----+-------------------+-----+
    <BLANKLINE>
    """
    if not hasattr(df, "isStreaming"):
        raise TypeMismatch(f"flow() takes a DataFrame of Spark's, not {type(df).__name__}: see spark.createDataFrame")
    settings = Settings(time, watermark, diff, processing_time, replay, close_at_end, wake, shards, name)
    return flow_of(DataFrameSource(df), settings)


@dataclass(frozen=True)
class Settings:
    """How a flow reads its source."""

    time: str
    watermark: Strategy | str | None = None
    diff: str | None = None
    processing_time: str | None = None
    replay: bool = False
    close_at_end: bool = False
    wake: bool = True
    shards: int | None = None
    name: str | None = None

    @cached_property
    def strategy(self) -> Strategy | None:
        """What `watermark` means."""
        return None if self.watermark is None else strategy_of(self.watermark)


def flow_of(source: Source, settings: Settings) -> Flow:
    """A flow over any source, its settings checked against the schema."""
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
        check_processing_time(processing_time, schema)
    if strategy is not None:
        strategy.check(schema)
    if source.streaming and strategy is None:
        raise InvalidArgument("a streaming flow needs watermark=, such as uc.BoundedLag('10 minutes')")
    if source.streaming and replay:
        raise InvalidArgument("replay=True is for a bounded DataFrame: a stream gives its panes as they come")
    if replay and (strategy is None or processing_time is None):
        missing = "watermark=" if strategy is None else "processing_time="
        raise InvalidArgument(f"replay=True needs {missing}, from which the panes of a stream are told")
    if ingress and not (source.streaming or replay):
        raise InvalidArgument("watermark=IngressTime() is of a stream: give replay=True and processing_time=, or time=")
    if settings.close_at_end and not replay:
        raise InvalidArgument("close_at_end=True belongs to replay=True: any other bounded flow is closed at its end")
    if shards is not None and (not isinstance(shards, int) or isinstance(shards, bool) or shards < 1):
        raise InvalidArgument(f"shards= takes a whole number from 1 on, not {shards!r}")
    if ingress and time not in schema.names:
        schema = schema.append(pa.field(time, pa.timestamp("us", "UTC")))
    return Flow(source, settings, schema)


@dataclass(frozen=True, eq=False)
class Flow:
    """What to do with rows, step by step; every method gives a new flow and leaves this one as it is.

    Rows between two groupings, and before the first, are Arrow tables: `map` takes a function of a table, and
    expressions are made with `uc.col`.

    >>> import uncombine as uc
    >>> spark = uc.session()
    >>> df = spark.sql("SELECT timestamp'2016-01-20 12:00:26' AS ts, 5 AS score")
    >>> uc.flow(df).where(uc.col("score") > 9).window(uc.Fixed("1 minute")).combine(n=uc.Count()).df.count()
    0
    """

    source: Source
    settings: Settings
    source_schema: pa.Schema
    stages: tuple[Stage, ...] = ()
    transforms: tuple[Transform, ...] = ()
    """Behind the last grouping."""

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the flow as it stands, as Arrow has them."""
        schema = self.source_schema
        for stage in self.stages:
            schema = self._after(stage.transforms, schema)
            before, schema = schema, Operator(stage.grouping, schema).output_schema
            if stage.grouping.late == "emit":
                schema = schema.append(pa.field(LATE, late_type(before)))
        return self._after(self.transforms, schema)

    @property
    def _input(self) -> pa.Schema:
        """The columns that come to the last grouping."""
        last = self.stages[-1]
        return replace(self, stages=self.stages[:-1], transforms=last.transforms).schema

    def _after(self, transforms: Sequence[Transform], schema: pa.Schema) -> pa.Schema:
        return applied(transforms, schema.empty_table()).schema

    def map(self, function: Callable[[pa.Table], Any]) -> Flow:
        """Rows through a function of an Arrow table that gives an Arrow table or a pandas DataFrame.

        It is called with tables of any size, once without rows to learn the columns of its result.
        """
        if not callable(function):
            raise InvalidArgument(f"map() takes a function of an Arrow table, not {function!r}")
        return self._then(Map(function))

    def where(self, predicate: Expr | Callable[[pa.Table], Any]) -> Flow:
        """Only the rows for which an expression, or a function of an Arrow table, is true."""
        return self._then(Where(predicate_of(predicate)))

    def select(self, *names: str) -> Flow:
        """Only some of the columns, in this order."""
        return self._then(Select(names))

    def with_columns(self, **columns: Expr | Callable[[pa.Table], Any]) -> Flow:
        """More columns, or others in their place, each an expression or a function of an Arrow table."""
        return self._then(WithColumns({n: function_of(value, f"with_columns({n}=)") for n, value in columns.items()}))

    def _then(self, transform: Transform) -> Flow:
        changed = replace(self, transforms=(*self.transforms, transform.settled(self.schema)))
        if not changed.schema.names:
            raise InvalidArgument(f"nothing is left of the columns after {transform!r}")
        return changed

    def window(
        self, window: Window, trigger: Trigger | None = None, mode: str | None = None, **options: Any
    ) -> Windowed:
        """The rows in windows: where in event time they are grouped, when panes are emitted, and how they relate.

        Options are those of `Grouping`: allowed_lateness=, on_time=, closing=, only_updated=, eager_retractions=,
        late=, granularity=, timestamp=, allow_finish=, max_future=. In a later stage event time is `event_time`, and
        what the stage before it retracts is retracted there too, unless time= and diff= name other columns; its
        allowed_lateness is that of the stage before if not given. A mode that is not given is "retracting" where rows
        can be retracted, or where another grouping follows and a window can be shown more than once; else it is
        "accumulating".
        """
        require_options(options, OPTIONS, "window()")
        return Windowed(self, window, {"trigger": trigger, "mode": mode, **options})

    @property
    def df(self) -> DataFrame:
        """The panes, as a DataFrame: streaming if the source is."""
        from .routes import route  # a flow is built without knowing how it runs

        return route(self).df()

    def explain(self) -> str:
        """How the flow will run, and why so."""
        from .routes import route

        return route(self).explain()


@dataclass(frozen=True, eq=False)
class Windowed:
    """Rows in windows, waiting to be combined.

    >>> import uncombine as uc
    >>> df = uc.session().sql("SELECT timestamp'2016-01-20 12:00:26' AS ts, 5 AS score")
    >>> uc.flow(df).window(uc.Global()).combine(n=uc.Count()).df.first().n
    1
    """

    flow: Flow
    window: Window
    options: Mapping[str, Any] = field(default_factory=dict)

    def combine(self, by: str | Sequence[str] = (), **combiners: Combiner) -> Flow:
        """The panes of the combined rows of each key and window."""
        flow = self.flow
        settings = flow.settings
        streamed = flow.source.streaming or settings.replay
        if flow.stages and flow.stages[-1].grouping.late == "emit":
            raise InvalidArgument("late='emit' gives rows that nothing can be done with: use it in the last stage")
        bounded = not flow.source.streaming and not (settings.replay and not settings.close_at_end)
        asked = [*(stage.asked for stage in flow.stages), Asked(combiners, self.window, {"by": by, **self.options})]
        *before, grouping = settled(asked, settings.time, settings.diff, bounded)
        if grouping.late == "emit" and LATE in (*grouping.by, *combiners):
            raise InvalidArgument(
                f"{LATE!r} is the column of late rows under late='emit': name the key or result otherwise"
            )
        Operator(grouping, flow.schema)
        if before:
            check_followed(before[-1], flow._input)
        if streamed and settings.processing_time is None and uses_processing_time(grouping.asked) and settings.replay:
            raise InvalidArgument("a trigger with processing time needs processing_time= in a replay")
        stages = [replace(stage, grouping=settled) for stage, settled in zip(flow.stages, before, strict=True)]
        return replace(flow, stages=(*stages, Stage(flow.transforms, grouping, asked[-1])), transforms=())
