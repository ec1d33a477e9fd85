"""An engine: it runs flows in the ways out that it has, over sources, which are rows of a known schema.

Guarded by tests/local/test_local_flows.py and tests/sparkops/test_flow.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow as pa

from ..errors import InvalidArgument
from ..panes.stage import Stage, StageInput
from ..triggers import Trigger
from .changelog_reading import Reading
from .early_end.job_triggers import job_trigger
from .early_end.seen import Seen
from .result import Result
from .tuning import LiveQuery, TopicTarget

if TYPE_CHECKING:
    from ..panes.state.seed import Seed

FlowT = TypeVar("FlowT")
"""A flow, which is built over what is here."""


class Source(ABC, Generic[FlowT]):
    """Rows of a known schema."""

    schema: pa.Schema
    streaming: bool
    inputs: tuple[FlowT, ...] = ()
    """The flows whose rows these are, if the source is made of flows."""
    stage: Stage | None = None
    """The step over the rows of `inputs`, with a port for each; None if these rows are those of the source."""
    output: StageInput | None = None
    """The rows, as the first stage after them gets them, if the source is made of flows."""
    ports: tuple[int, ...] = ()
    """For each of `inputs`, the port of the first stage of the flow to which its rows go, if the stage has several."""
    reading: Reading | None = None
    """The way in which messages of a changelog become these rows, if the engine reads messages."""

    @property
    @abstractmethod
    def engine(self) -> Engine[FlowT]:
        """The engine that runs a flow over these rows."""

    @property
    def has_rows(self) -> bool:
        """True for a source that has rows of its own."""
        return True

    @abstractmethod
    def describe(self) -> str:
        """A text that names the source."""

    @abstractmethod
    def storable_field(self, field: pa.Field) -> pa.Field:
        """The column in the type in which the engine of this source returns it."""

    def replayed(self) -> Source[FlowT]:
        """The source for a replay, which plays its rows in order; raises if they have no end."""
        raise InvalidArgument(f"replay() plays bounded rows, and {self.describe()} has no end: leave replay() out")


class Engine(ABC, Generic[FlowT]):
    """Runs a flow in one of the ways out of it. An engine has no way that a method here refuses."""

    has_streams = True
    """True if it can run a flow whose rows never end."""

    @abstractmethod
    def run(self, flow: FlowT, script: Sequence[Any] | None, start: Seed | str | None = None) -> Result:
        """The result of a flow in this process, over the rows of a script if one is given, from a seed if one is."""

    @abstractmethod
    def run_together(self, flows: Sequence[FlowT], script: Sequence[Any] | None) -> Sequence[Result]:
        """The results of several flows in this process, in which equal steps are one."""

    @abstractmethod
    def answer(self, flow: FlowT, way: str) -> Result:
        """The result of a flow in this process, for a method of this name; raises if another engine has the rows."""

    @abstractmethod
    def df(self, flow: FlowT) -> Any:
        """The panes of a flow, as a DataFrame of Spark."""

    @abstractmethod
    def left_out(self, flow: FlowT) -> Any:
        """The rows that the steps of a flow leave out, as a DataFrame of Spark."""

    @abstractmethod
    def foreach_batch(self, flow: FlowT, function: Any) -> Any:
        """A writer of a stream that gives each batch of panes, and the rows left out in it, to a function."""

    @abstractmethod
    def write_stream(self, flow: FlowT, checkpoint: str, same: Sequence[str], start: Seed | str | None = None) -> Any:
        """A writer of the stream of panes, whose checkpoint is that of this flow, and may begin with a seed."""

    def stream_together(self, flows: Mapping[str, FlowT], checkpoint: str) -> Any:
        """The stream of several flows as one query."""
        raise InvalidArgument("these flows run without Spark, so they have no stream to write: write run(script)")

    def tables_together(
        self,
        flows: Mapping[str, FlowT],
        targets: Mapping[str, str],
        keys: Mapping[str, str | Sequence[str]],
        query: LiveQuery,
    ) -> Any:
        """Start the query that keeps the results of several flows in tables."""
        raise InvalidArgument(
            "these flows run without Spark, so no query keeps their tables: write to_table(target) of each flow"
        )

    @abstractmethod
    def seed(self, flow: FlowT, history: Any, until: datetime | str | int | None, folder: str) -> Seed:
        """Write the state of a flow after the rows of its past as a seed."""

    def seed_of_accumulators(self, flow: FlowT, accumulators: Any, folder: str) -> Seed:
        """Write the state of a flow whose past is stored accumulators as a seed."""
        raise InvalidArgument(
            "accumulators= are columns of uc.Accumulator, which are on Spark: give uc.flow() spark=, or the rows of "
            "the past as history"
        )

    @abstractmethod
    def to_table(self, flow: FlowT, target: str, keys: str | Sequence[str] | None, query: LiveQuery | None) -> Any:
        """Write the result of a bounded flow into a table, or start the `query` that keeps that of a stream in it."""

    @abstractmethod
    def to_kafka(
        self, flow: FlowT, target: TopicTarget, keys: str | Sequence[str] | None, query: LiveQuery | None
    ) -> Any:
        """Write the result of a bounded flow into a topic, or start the `query` that writes each batch of a stream."""

    def read_until(self, flow: FlowT, until: Trigger) -> tuple[FlowT, Callable[[], Seen | None]]:
        """The flow over files that are read until a trigger fires, and what was seen of them when it has run."""
        raise InvalidArgument(
            "until= ends the reading of files in this process, and Spark reads those of this flow side by side: leave "
            "spark= of uc.flow() out, or give it fewer files"
        )

    @abstractmethod
    def explain(self, flow: FlowT) -> str:
        """A text that says how the engine runs a flow, and why."""

    @abstractmethod
    def draw(self, flow: FlowT) -> str:
        """A picture of the steps of a flow, as HTML."""


@dataclass(frozen=True, eq=False)
class FlowSource(Source[FlowT]):
    """The rows that a union or a join of several flows gives, in the columns of `schema`."""

    schema: pa.Schema
    inputs: tuple[FlowT, ...]
    output: StageInput
    stage: Stage | None = None
    ports: tuple[int, ...] = ()

    @property
    def streaming(self) -> bool:  # type: ignore[override]
        return any(flow.source.streaming for flow in self._flows)

    @property
    def engine(self) -> Engine[FlowT]:
        return self._flows[0].source.engine

    def describe(self) -> str:
        if self.ports:
            return "rows, and the signals of the trigger of the next stage"
        return f"a union of {len(self.inputs)} flows" if self.stage is None else self.stage.describe()[0]

    def storable_field(self, field: pa.Field) -> pa.Field:
        return self._flows[0].source.storable_field(field)

    def replayed(self) -> Source[FlowT]:
        raise InvalidArgument(f"replay() comes before {self.describe()}: write it after each uc.flow(...)")

    @property
    def _flows(self) -> tuple[Any, ...]:
        return self.inputs


def ended_early(flow: Any, until: Trigger | str) -> tuple[Any, Callable[[], Seen | None]]:
    """A flow whose files are read until a trigger fires, and what was seen of them when it has run."""
    trigger, engine = job_trigger(until), flow.source.engine
    if flow.source.streaming and engine.has_streams:
        raise InvalidArgument(
            "until= ends a job that has an end, and the rows of a stream have none: to_table(target, checkpoint=, "
            'trigger={"availableNow": True}) ends when all rows that are there are in the table'
        )
    return engine.read_until(flow, trigger)


__all__ = ["Engine", "FlowSource", "Source", "ended_early"]
