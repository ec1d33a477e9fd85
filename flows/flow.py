"""A flow: the steps that the rows of a source go through, as a value that knows no engine.

A source knows how to run a flow. `uc.local.run` runs any flow without Spark.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Never

import pyarrow as pa

from ..advice import Advised, no_such_step, no_such_step_before_combine
from ..combiners import Combiner
from ..combiners.column_names import check_named, column_names
from ..combiners.expressions.expr import Expr
from ..errors import InvalidArgument, require_options
from ..panes.grouping.grouping import Grouping
from ..panes.join.join import SIDES
from ..panes.rows.options import RowOptions
from ..panes.transforms import Select, Transform, Where, applied
from ..panes.watermarks.watermark_strategies import IngressTime
from ..triggers import Trigger
from ..windows import Span, Window, span
from .chain import before, last_groupings, leaves_of, stages_of, windows_of
from .join_step import Joined, join_stage
from .left_out import LATE, late_type
from .outputs import Outputs
from .reading import Reading
from .row_steps import RowSteps
from .settings import Settings, check_free, check_kept, check_name, check_settings, check_sources
from .settle import DIFF, Asked, Before, check_followed, check_lateness, followed, settled
from .steps import GroupingStage, RowStage, Stage

JOIN_OPTIONS = ("on", "how", "within", "unmatched", "suffixes", "allowed_lateness")
OPTIONS = tuple(name for name in Grouping.__dataclass_fields__ if name not in ("combiners", "window", "by", "bounded"))


class Source(ABC):
    """Rows of a known schema, and how to run a flow over them."""

    schema: pa.Schema
    streaming: bool
    inputs: tuple[Flow, ...] = ()
    """The flows whose rows these are, if the source is made of flows."""
    stage: Stage | None = None
    """The step over the rows of `inputs`, with a port for each; None if these rows are those of the source."""
    before: Before | None = None
    """The demands of the steps of these flows on the first grouping after them."""
    reading: Reading | None = None
    """The way in which messages of a changelog become these rows, if the engine reads messages."""
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
    def left_out(self, flow: Flow) -> Any:
        """The rows that the steps of a flow leave out, as a DataFrame of the engine."""

    @abstractmethod
    def foreach_batch(self, flow: Flow, function: Any) -> Any:
        """A writer of a stream that gives each batch of panes, and the rows left out in it, to a function."""

    @abstractmethod
    def write_stream(self, flow: Flow, checkpoint: str, same: Sequence[str]) -> Any:
        """A writer of the stream of panes, whose checkpoint is that of this flow."""

    @abstractmethod
    def explain(self, flow: Flow) -> str:
        """A text that says how the engine runs a flow over this source, and why."""

    @abstractmethod
    def to_table(self, flow: Flow, target: str, keys: str | Sequence[str] | None) -> None:
        """Write the result of a bounded flow over this source into a table."""


@dataclass(frozen=True, eq=False)
class Combined(Source):
    """The rows that a union or a join of several flows gives, in the columns of `schema`."""

    schema: pa.Schema
    inputs: tuple[Flow, ...]
    before: Before
    stage: Stage | None = None

    @property
    def streaming(self) -> bool:  # type: ignore[override]
        return any(given.source.streaming for given in self.inputs)

    @property
    def late_column(self) -> bool:  # type: ignore[override]
        return self.inputs[0].source.late_column

    def describe(self) -> str:
        return f"a union of {len(self.inputs)} flows" if self.stage is None else self.stage.describe()[0]

    def held(self, field: pa.Field) -> pa.Field:
        return self.inputs[0].source.held(field)

    def df(self, flow: Flow) -> Any:
        return self.inputs[0].source.df(flow)

    def left_out(self, flow: Flow) -> Any:
        return self.inputs[0].source.left_out(flow)

    def foreach_batch(self, flow: Flow, function: Any) -> Any:
        return self.inputs[0].source.foreach_batch(flow, function)

    def write_stream(self, flow: Flow, checkpoint: str, same: Sequence[str]) -> Any:
        return self.inputs[0].source.write_stream(flow, checkpoint, same)

    def explain(self, flow: Flow) -> str:
        return self.inputs[0].source.explain(flow)

    def to_table(self, flow: Flow, target: str, keys: str | Sequence[str] | None) -> None:
        self.inputs[0].source.to_table(flow, target, keys)


def flow_of(source: Source, settings: Settings) -> Flow:
    """Build a flow over any source and check its settings against the schema."""
    schema = source.schema
    check_settings(settings, schema, source.streaming)
    if isinstance(settings.strategy, IngressTime) and settings.time not in schema.names:
        schema = schema.append(pa.field(settings.time, pa.timestamp("us", "UTC")))
    return Flow(source, settings, schema)


@dataclass(frozen=True, eq=False, repr=False)
class Flow(RowSteps, Outputs, Advised):
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
            if stage.shows_late and self.source.late_column:
                schema = schema.append(pa.field(LATE, late_type(before)))
        return self._after(self.transforms, schema)

    def _after(self, transforms: Sequence[Transform], schema: pa.Schema) -> pa.Schema:
        return applied(transforms, schema.empty_table()).schema

    def _stepped(self, make: Callable[..., RowOptions], given: Mapping[str, Any] | None = None, who: str = "") -> Flow:
        """The flow with a step over single rows after it."""
        require_options(given or {}, ("allowed_lateness", "late"), who)
        flow = without_counts(followed_flow(self))
        known = before(flow)
        check_kept(known, flow.schema, f"the flow before stage {stages_of(flow) + 1}")
        options: dict[str, Any] = {"time": known.time, "diff": known.diff}
        if known.panes:
            options["max_future"] = None
        if known.allowed_lateness is not None:
            options["allowed_lateness"] = known.allowed_lateness
        step = make(**{**options, **(given or {})})
        if known.allowed_lateness is not None and known.diff is not None:
            check_lateness(span(step.allowed_lateness), known.allowed_lateness, f"stage {stages_of(flow) + 1}")
        stage = RowStage(flow.transforms, step)
        changed = replace(flow, stages=(*flow.stages, stage), transforms=())
        check_free(changed.schema)
        return changed

    @property
    def _is_bounded(self) -> bool:
        """True if the input of the flow ends."""
        return not self.source.streaming and not (self.settings.replay and not self.settings.close_at_end)

    @property
    def _changes(self) -> bool:
        return before(followed_flow(self)).diff is not None

    @property
    def _time(self) -> str:
        return before(self).time

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

    def join(
        self,
        other: Flow,
        on: Any,
        how: str = "inner",
        within: tuple[Span | str, Span | str] | None = None,
        unmatched: str = "at_once",
        suffixes: tuple[str, str] = ("_left", "_right"),
        allowed_lateness: Span | str | None = None,
        **others: Never,
    ) -> Flow:
        """Join this flow, which is the left one, with another by key and time.

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
        within
            The least and the greatest right time minus left time of a match; both are included. Without it both flows
            are grouped by the same window, and panes of one window match.
        unmatched
            For rows without a match: "at_once" emits them when they come, and retracts them when a match comes. "final"
            emits them when the watermark says that no match can come.
        suffixes
            What is added to names that the result would have twice.
        allowed_lateness
            The time by which a row may be before the watermark and is still taken; that of the steps before if not
            given, or else none. Later rows are dropped and counted.

        Examples
        --------
        >>> import pyarrow as pa, uncombine as uc
        >>> views = uc.local.source(pa.table({"ts": [0, 9], "ad": ["a", "b"]}))
        >>> clicks = uc.local.source(pa.table({"ts": [5], "ad": ["a"], "user": ["u"]}))
        >>> both = views.join(clicks, on="ad", how="left", within=("0 s", "1 minute"))
        >>> uc.local.run(flow=both).select(["ad", "user", "diff"]).to_pylist()
        [{'ad': 'a', 'user': 'u', 'diff': 1}, {'ad': 'b', 'user': None, 'diff': 1}]
        """
        if not isinstance(other, Flow):
            window = " that ends with window(...): add .combine(...)" if isinstance(other, Windowed) else ""
            raise InvalidArgument(
                f"join() takes a flow, not a {type(other).__name__}{window or ': write a.join(b, on)'}"
            )
        if "late" in others:
            raise InvalidArgument("join() has no late=: rows that come too late for a join are in flow.left_out")
        require_options(others, JOIN_OPTIONS, "join()")
        named = [with_name(flow, name) for flow, name in zip((self, other), SIDES, strict=True)]
        inputs = tuple(without_counts(followed_flow(flow)) for flow in named)
        check_sources([leaf for flow in inputs for leaf in leaves_of(flow)], "join()")
        sides = [Joined(f.schema, before(f), windows_of(f), last_groupings(f), f.settings) for f in inputs]
        options = {"on": on, "how": how, "within": within, "unmatched": unmatched, "suffixes": suffixes}
        stage, schema, settings = join_stage(sides, {**options, "allowed_lateness": allowed_lateness})
        return Flow(Combined(schema, inputs, stage.before(), stage), settings, schema)

    def __repr__(self) -> str:
        return self.explain()

    def _no_such(self, name: str) -> AttributeError:
        return no_such_step(name)


def with_name(flow: Flow, name: str | None) -> Flow:
    """The flow with a name for its source, if it is a source without one."""
    check_name(name)
    if flow.settings.name is not None or flow.source.inputs:
        return flow
    return replace(flow, settings=replace(flow.settings, name=name))


def without_counts(flow: Flow) -> Flow:
    """The flow without the column `diff` of panes that are never retracted, each of which counts as one row."""
    known, schema = before(flow), flow.schema
    if known.panes and known.diff is None and DIFF in schema.names:
        left = Select(tuple(name for name in schema.names if name != DIFF))
        return replace(flow, transforms=(*flow.transforms, left))
    return flow


def followed_flow(flow: Flow) -> Flow:
    """The flow with its last stage settled for another one after it; raises if none can follow."""
    flow = _followed(flow)
    check_filters(flow)
    return flow


def check_filters(flow: Flow) -> None:
    """Raise if rows are filtered by their weights after the last step."""
    weight = before(flow).diff
    for step in flow.transforms:
        if isinstance(step, Where) and isinstance(step.predicate, Expr) and weight in step.predicate.columns:
            raise InvalidArgument(
                f"where() on {weight!r}, the weights of rows that can be retracted, would keep rows and drop their "
                "retractions: filter by another column, or after the last step"
            )


def _followed(flow: Flow) -> Flow:
    if not flow.stages:
        return flow
    *first, last = flow.stages
    last = replace(last, followed=True)
    if not isinstance(last, GroupingStage):
        return replace(flow, stages=(*first, last))
    each_batch = flow.settings.each_batch
    grouping = followed(last.grouping, last.asked, stages_of(flow), each_batch)
    check_followed(grouping, replace(flow, stages=tuple(first), transforms=last.transforms).schema, each_batch)
    return replace(flow, stages=(*first, replace(last, grouping=grouping)))


@dataclass(frozen=True, eq=False, repr=False)
class Windowed(Advised):
    """Rows in windows, which `combine` turns into panes.

    >>> import pyarrow as pa, uncombine as uc
    >>> rows = uc.local.source(pa.schema({"ts": pa.timestamp("us", "UTC"), "score": pa.int64()}))
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

    def combine(self, by: str | Sequence[str] = (), *unnamed: Never, **combiners: Combiner) -> Flow:
        """Combine the rows of each key and window; the result is a flow of panes.

        `by` names the key columns. Each combiner comes after the name of its result: `n=uc.Count()`.
        """
        check_named("combine()", unnamed)
        flow, settings = followed_flow(self._flow), self._flow.settings
        asked = Asked(combiners, self._window, {"by": column_names(by, "by="), **self._options})
        number = stages_of(flow) + 1
        [grouping] = settled([asked], before(flow), flow._is_bounded, settings.each_batch, number)
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


__all__ = ["LATE", "OPTIONS", "Combined", "Flow", "Source", "Windowed", "check_filters", "flow_of", "followed_flow"]
