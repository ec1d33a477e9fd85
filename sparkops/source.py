"""The source of a flow that Spark runs.

Guarded by tests/sparkops/test_flow.py, tests/sparkops/test_left_out.py and tests/sparkops/test_testing.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..errors import InvalidArgument, TypeMismatch
from ..flows.changelog_reading import Reading
from ..flows.description import description
from ..flows.drawing import drawing
from ..flows.engine import Engine, Source
from ..flows.flow import Flow, FlowSource
from ..flows.flow_steps import input_of, without_signals
from ..flows.graph import groupings_of
from ..flows.left_out import LEFT_OUT
from ..flows.result import Result
from ..flows.tuning import LiveQuery, TopicTarget
from ..local.local_inputs import source_tables
from ..local.running import run, run_together
from ..local.script import Elements, Entry
from ..local.topic_output import topic_flow
from ..panes.grouping.grouping import EVENT_TIME
from ..panes.grouping.stage import GroupingStage
from ..panes.join.stage import JoinStage
from ..panes.state.pane_type import PANE
from ..panes.state.seed import Seed
from .batches import write_table
from .checkpoints.positions import in_shards, seed_at_start, started_at
from .files_input import FilesInput
from .inputs import DataFrameInput, Input, column
from .progress_log import listen
from .restarts import checked_route
from .routes import route, route_with_left_out
from .routes.base import Route
from .routes.live import united
from .routes.native_join import native_join
from .routes.native_rows import native_rows, rows_by_spark
from .routes.replay import AtOnce
from .scans.by_spark import by_spark
from .scans.faster import faster
from .sql_types import arrow_type, dataframe_of, spark_schema, spark_type
from .stream_writer import BatchParts, EachBatch, checked_writer
from .tables.live_table import live_table
from .tables.live_topic import live_topic, write_topic
from .time_modes import as_stored, choice_of
from .together.together_streams import TogetherStream, together_route
from .together.together_tables import LiveTables, live_tables
from .tuning.thin_function import thin_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter


_OF_A_STREAM = (
    "write flow.to_table(target, checkpoint=folder), or flow.write_stream(checkpoint=folder); flow.run(script) tries "
    "it out"
)
_BY_SPARK = {
    "collect": "flow.df.collect()",
    "head": "flow.df.head()",
    "show": "flow.df.show()",
    "to_arrow": "flow.df.toArrow()",
    "to_pandas": "flow.df.toPandas()",
    "to_polars": "polars.from_arrow(flow.df.toArrow())",
}
"""The way of Spark for each method that gives rows."""


@dataclass(frozen=True, eq=False)
class SparkSource(Source[Flow], Engine[Flow]):
    """The rows of an input on Spark: a DataFrame, or files. Spark runs flows over them."""

    input: Input

    @cached_property
    def schema(self) -> pa.Schema:
        return self.input.schema

    @property
    def streaming(self) -> bool:  # type: ignore[override]
        return self.input.streaming

    @property
    def reading(self) -> Reading | None:  # type: ignore[override]
        return self.input.reading

    @property
    def planned(self) -> bool:
        """True if the library itself knows which parts of a stream are read."""
        return self.input.planner is not None

    @property
    def texts(self) -> pa.Schema | None:
        """The types that the values of files of text must have, so that their row can be read; None of other inputs."""
        return self.input.texts if isinstance(self.input, FilesInput) else None

    @cached_property
    def route_input(self) -> Input:
        """The input whose rows a route takes: the files of a DataFrame, where that is faster."""
        return faster(self.input)

    def describe(self) -> str:
        return self.route_input.describe()

    def storable_field(self, field: pa.Field) -> pa.Field:
        with suppress(TypeMismatch):  # a column that never goes to Spark may have any type
            return field.with_type(arrow_type(spark_type(field.type, field.name), field.name))
        return field

    @property
    def engine(self) -> Engine[Flow]:
        return self

    def replayed(self) -> Source[Flow]:
        return super().replayed() if self.streaming else replace(self, input=self.input.replayed())

    def run(self, flow: Flow, script: Sequence[Any] | None, start: Seed | str | None = None) -> Result:
        _require_script(flow, script)
        return run(flow, script, start)

    def run_together(self, flows: Sequence[Flow], script: Sequence[Any] | None) -> Sequence[Result]:
        _require_script(flows[0], script)
        return run_together(flows, script)

    def answer(self, flow: Flow, way: str) -> Result:
        if flow.source.streaming:
            raise InvalidArgument(f"{way}() ends with its rows, and those of a stream have no end: {_OF_A_STREAM}")
        raise InvalidArgument(f"{way}() runs a flow in this process, and Spark runs this one: write {_BY_SPARK[way]}")

    def df(self, flow: Flow) -> DataFrame:
        if flow.source.streaming:
            listen(self.input.spark)
        flow = in_spark(whole(without_signals(flow)))
        input = flow.source.input if isinstance(flow.source, SparkSource) else self.input
        plain = not (flow.stages or flow.transforms or isinstance(flow.source, FlowSource))
        if plain and isinstance(input, DataFrameInput) and input.schema == flow.source_schema:
            return input.df.select(*map(column, input.schema.names))
        return route(flow, self._input(flow)).df()

    def left_out(self, flow: Flow) -> DataFrame:
        if flow.source.streaming:
            listen(self.input.spark)
        both = route_with_left_out(flow, self._input(flow)).df()
        return both.where(column(LEFT_OUT).isNotNull()).select(f"{LEFT_OUT}.*")

    def foreach_batch(self, flow: Flow, function: EachBatch) -> DataStreamWriter:
        if not flow.source.streaming:
            raise InvalidArgument(
                "foreach_batch() writes the batches of a stream, and this flow is bounded: write flow.df and "
                "flow.left_out"
            )
        listen(self.input.spark)
        both = route_with_left_out(flow, self._input(flow)).df()
        return checked_writer(both.writeStream, choice_of(flow)).foreachBatch(thin_function(BatchParts(function)))

    def write_stream(
        self, flow: Flow, checkpoint: str, same: Sequence[str], start: Seed | str | None = None
    ) -> DataStreamWriter:
        if not flow.source.streaming:
            raise InvalidArgument(
                "write_stream() writes a stream, and this flow is bounded: write flow.df.write or flow.to_table(target)"
            )
        listen(self.input.spark)
        flow = in_shards(as_stored(flow, self.input.spark, checkpoint), checkpoint)
        seed = seed_at_start(flow, start, self.input.spark, checkpoint)
        route = checked_route(self.route(started_at(flow, seed)), checkpoint, same, seed)
        return checked_writer(route.df().writeStream, choice_of(flow)).option("checkpointLocation", checkpoint)

    def stream_together(self, flows: Mapping[str, Flow], checkpoint: str) -> TogetherStream:
        return TogetherStream(together_route(flows, self.route_input, checkpoint), tuple(flows), checkpoint)

    def tables_together(
        self,
        flows: Mapping[str, Flow],
        targets: Mapping[str, str],
        keys: Mapping[str, str | Sequence[str]],
        query: LiveQuery,
    ) -> LiveTables:
        return live_tables(flows, self.route_input, targets, keys, query)

    def seed(self, flow: Flow, history: Any, until: datetime | str | int | None, folder: str) -> Seed:
        from .checkpoints.history_seeds import seed_of_history  # which opens sources

        return seed_of_history(flow, self._input(flow), history, until, folder)

    def seed_of_accumulators(self, flow: Flow, accumulators: Any, folder: str) -> Seed:
        from .checkpoints.history_seeds import seed_of_accumulators  # which opens sources

        return seed_of_accumulators(flow, self._input(flow), accumulators, folder)

    def draw(self, flow: Flow) -> str:
        return drawing(flow, f"runs on Spark: {'flow.write_stream(checkpoint=...)' if self.streaming else 'flow.df'}")

    def explain(self, flow: Flow) -> str:
        return self.route(flow).explain()

    def to_table(self, flow: Flow, target: str, keys: str | Sequence[str] | None, query: LiveQuery | None) -> Any:
        if flow.source.streaming:
            assert query is not None
            return live_table(flow, self.input.spark, self._routed, target, keys, query)
        if query is not None:
            raise InvalidArgument("to_table() of a bounded flow writes once: leave checkpoint= out")
        write_table(flow, target, keys, self.route)
        return None

    def to_kafka(
        self, flow: Flow, target: TopicTarget, keys: str | Sequence[str] | None, query: LiveQuery | None
    ) -> Any:
        if ".connect." in type(self.input.spark).__module__:
            raise InvalidArgument(
                "to_kafka() does not run over Spark Connect: use a session of Spark itself, or write "
                "flow.df.transform(uc.changelog.to('kafka', keys=...)) with Spark's own connector"
            )
        if flow.source.streaming:
            assert query is not None
            return live_topic(flow, self.input.spark, self._routed, target, keys, query)
        if query is not None:
            raise InvalidArgument("to_kafka() of a bounded flow writes once: leave checkpoint= out")
        settled, output = topic_flow(flow, target, keys)
        output.check()
        beside = output.left_out is not None
        write_topic(route_with_left_out(settled, self._input(settled)).df() if beside else settled.df, output)
        return None

    def _routed(self, flow: Flow, beside: bool) -> Route:
        """The route of a flow, which shows the rows that steps leave out beside the result if it is asked to."""
        return route_with_left_out(flow, self._input(flow)) if beside else self.route(flow)

    def route(self, flow: Flow) -> Route:
        """The route on which Spark runs a flow over this source."""
        flow = in_spark(whole(without_signals(flow)))
        return route(flow, self._input(flow))

    def _input(self, flow: Flow) -> Input:
        return flow.source.route_input if isinstance(flow.source, SparkSource) else self.route_input


def _require_script(flow: Flow, script: object) -> None:
    """Raise if a flow over Spark is run in this process without a script."""
    if script is None and flow.source.streaming:
        raise InvalidArgument(f"run() ends with its rows, and those of a stream have no end: {_OF_A_STREAM}")
    if script is None:
        raise InvalidArgument(
            "run() of a flow over Spark takes a script, whose rows stand for those of Spark: write flow.run(script), "
            "or flow.df for the rows of Spark"
        )


def spark_source(flow: Flow) -> SparkSource | None:
    """The first source of a flow, through unions and joins; None if it is not one of Spark."""
    source = flow.source
    while source.inputs:
        source = source.inputs[0].source
    return source if isinstance(source, SparkSource) else None


def whole(flow: Flow) -> Flow:
    """The flow over one DataFrame, if final results are made of a union or a join of flows; other flows unchanged."""
    source = flow.source
    if not isinstance(source, FlowSource) or source.streaming or flow.settings.replay:
        return flow
    source = replace(source, inputs=tuple(map(in_spark, source.inputs)))
    frames = [frame_of(branch) for branch in source.inputs]
    input = DataFrameInput(united(frames)) if source.stage is None else _joined(flow, source, frames)
    over = SparkSource(replace(input, native=all(map(_native, source.inputs))))
    return replace(flow, source=over, source_schema=over.schema)


def in_spark(flow: Flow) -> Flow:
    """The flow over rows that Spark itself reads, selects and filters, as far as it can; other flows unchanged."""
    source = flow.source
    if not isinstance(source, SparkSource) or source.streaming or flow.settings.replay:
        return flow
    if flow.stages:
        return _selected(flow, source.route_input) if len(groupings_of(flow)) == len(flow.stages) else flow
    needed: frozenset[str] | None = frozenset(flow.schema.names)
    for transform in reversed(flow.transforms):
        needed = transform.before(needed)
    if needed is None:  # a function sees all columns
        return flow
    read = by_spark(source.input, needed) if isinstance(source.input, FilesInput) else source.input
    if not isinstance(read, DataFrameInput) or rows_by_spark(flow, read) is None:
        return flow
    return replace(flow, source=SparkSource(replace(read, files=False)))


def _selected(flow: Flow, input: Input) -> Flow:
    """The flow over a DataFrame of Spark to which the first transforms of the flow are applied."""
    first = flow.stages[0]
    if not isinstance(input, DataFrameInput) or not input.native or not first.transforms:
        return flow
    df, schema, count = input.df, flow.source_schema, 0
    for transform in first.transforms:
        if transform.before(frozenset(schema.names)) is None:  # a function sees all columns
            break
        after = transform.apply(schema.empty_table()).schema
        rows = native_rows(df, (transform,), after)
        if rows is None:
            break
        df, schema, count = rows, after, count + 1
    if count == 0:
        return flow
    over = SparkSource(replace(input, df=df, files=False, instant=None, before=None))
    stages = (replace(first, transforms=first.transforms[count:]), *flow.stages[1:])
    return replace(flow, source=over, source_schema=over.schema, stages=stages)


def _native(flow: Flow) -> bool:
    """True if Spark's own aggregation may run over the rows of a flow."""
    source = flow.source
    if isinstance(source, FlowSource):
        return all(map(_native, source.inputs))
    return not isinstance(source, SparkSource) or getattr(source.input, "native", True)


def _joined(flow: Flow, source: FlowSource[Flow], frames: Sequence[DataFrame]) -> DataFrameInput:
    """The rows of a step over two flows: by Spark where its own join has the same result, otherwise by the operator."""
    stage = source.stage
    assert stage is not None
    words = stage.describe()[0]
    frames = [_fitted(branch.schema, frame) for branch, frame in zip(source.inputs, frames, strict=True)]
    plan = native_join(stage, source.inputs, frames) if isinstance(stage, JoinStage) else "it is none"
    inputs = []
    for branch, frame in zip(source.inputs, frames, strict=True):
        over = SparkSource(DataFrameInput(frame))
        rows = input_of(branch)
        settings = replace(branch.settings, time=rows.time, diff=rows.diff, watermark=None)
        inputs.append(Flow(source=over, settings=settings, source_schema=over.schema))
    lines = [f"  {line}" for branch in source.inputs for line in description(branch)]
    if not isinstance(plan, str):
        return DataFrameInput(plan, text="\n".join([f"Spark's own {words}", *lines]))
    joined = Flow(
        source=replace(source, inputs=tuple(inputs)),
        settings=replace(flow.settings, time=EVENT_TIME),
        source_schema=source.schema,
    )
    df = AtOnce(joined, DataFrameInput(frames[0])).df()
    why = f", in Python, not Spark's own join: {plan}" if isinstance(stage, JoinStage) else ""
    return DataFrameInput(df, text="\n".join([f"{words}{why}", *lines]))


def _fitted(schema: pa.Schema, frame: DataFrame) -> DataFrame:
    """The columns of a flow in its own types: fields inside Spark's columns can be of a type without nulls."""
    own = DataFrameInput(frame).schema
    fields = [field for field in schema if not (field.name == "pane" and field.type == PANE)]
    columns = [
        column(field.name)
        if own.field(field.name).type == field.type
        else column(field.name).cast(spark_type(field.type, field.name)).alias(field.name)
        for field in fields
    ]
    return frame.select(*columns)


def frame_of(flow: Flow) -> DataFrame:
    """The rows of a flow for another one, or a comparison: a grouping of all rows gives none for no rows."""
    if not flow.stages or not isinstance(flow.stages[-1], GroupingStage):
        return flow.df
    panes = replace(flow, transforms=()).df
    source = SparkSource(DataFrameInput(panes.where(column(EVENT_TIME).isNotNull())))
    return Flow(
        source=source,
        settings=replace(flow.settings, time=EVENT_TIME),
        source_schema=source.schema,
        stages=(),
        transforms=flow.transforms,
    ).df


def replayed(spark: SparkSession, flow: Flow, script: Sequence[Entry]) -> pa.Table:
    """The rows that a replay on Spark gives for the rows of a script; the input ends after the last of them."""
    return _on_spark(spark, flow, script, {}).df.toArrow()


def _on_spark(spark: SparkSession, flow: Flow, script: Sequence[Entry], sources: dict[int, SparkSource]) -> Flow:
    """The flow with the rows of the script as its sources."""
    settings = replace(flow.settings, replay=True, close_at_end=True)
    if flow.source.inputs:
        inputs = tuple(_on_spark(spark, branch, script, sources) for branch in flow.source.inputs)
        return replace(flow, source=replace(flow.source, inputs=inputs), settings=settings)  # type: ignore[type-var]
    if id(flow.source) not in sources:
        schema, name = flow.source.schema, flow.settings.name
        own = [entry for entry in script if isinstance(entry, Elements) and entry.input in (None, name)]
        tables = [table for table in source_tables(flow.source, flow.settings, own) if table is not None]
        rows = pa.concat_tables([schema.empty_table(), *tables])
        sources[id(flow.source)] = SparkSource(DataFrameInput(dataframe_of(spark, rows, spark_schema(schema))))
    return replace(flow, source=sources[id(flow.source)], settings=settings)
