"""Sources in this process: the rows of a script or of a table, and the ways out of a flow over them.

Guarded by tests/local/test_local_flows.py and tests/test_doors.py.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from ..combiners.rows.plain_types import plain_type
from ..errors import InvalidArgument
from ..files.reading import LeaveOut, ignore
from ..flows.changelog_reading import Reading
from ..flows.description import description
from ..flows.drawing import drawing
from ..flows.early_end.seen import Seen
from ..flows.engine import Engine, Source
from ..flows.flow import Flow
from ..flows.flow_steps import leaves_of
from ..flows.graph import graph_of
from ..flows.result import Result
from ..flows.tuning import LiveQuery, TopicTarget
from ..panes.state.seed import Seed
from ..tables import write_result
from ..triggers import Trigger
from .files_until import ReadUntil
from .final_run import are_many, in_slices, why_not_final
from .running import run, run_together
from .script import Entry
from .source_rows import SourceRows
from .topic_output import write_topic


class WithoutSpark(Source[Flow], Engine[Flow], SourceRows):
    """A source in this process, which runs its flows too."""

    has_streams = False

    @property
    @abstractmethod
    def has_rows(self) -> bool:
        """True for a source that has rows of its own, so that it needs no script."""

    @property
    def call(self) -> str:
        """The call that runs a flow over the source, in messages."""
        return "flow.run()" if self.has_rows else "flow.run(script)"

    @property
    def engine(self) -> Engine[Flow]:
        return self

    def run(self, flow: Flow, script: Sequence[Any] | None, start: Seed | str | None = None) -> Result:
        return run(flow, script, start)

    def run_together(self, flows: Sequence[Flow], script: Sequence[Any] | None) -> Sequence[Result]:
        return run_together(flows, script)

    def answer(self, flow: Flow, way: str) -> Result:
        return run(flow, None)

    def replayed(self) -> Source[Flow]:
        if self.has_rows:
            return self
        raise InvalidArgument(
            "replay() plays the rows of a source, and this one has none: run(script) plays a script, entry by entry"
        )

    def storable_field(self, field: pa.Field) -> pa.Field:
        return field.with_type(plain_type(field.type))

    def df(self, flow: Flow) -> Any:
        raise InvalidArgument(
            f"this flow runs without Spark, so it has no DataFrame of Spark: write {self.call}.to_pandas(flat=True), "
            "or give uc.flow() a DataFrame of Spark, or spark="
        )

    def to_table(self, flow: Flow, target: str, keys: str | Sequence[str] | None, query: LiveQuery | None) -> None:
        if query is not None:
            raise InvalidArgument(
                "to_table() of a flow without Spark writes once: leave checkpoint= out, or give uc.flow() spark= and "
                "streaming=True"
            )
        write_result(flow, target, keys, lambda settled: run(settled, None).panes)

    def to_kafka(
        self, flow: Flow, target: TopicTarget, keys: str | Sequence[str] | None, query: LiveQuery | None
    ) -> None:
        if query is not None:
            raise InvalidArgument(
                "to_kafka() of a flow without Spark writes once: leave checkpoint= out, or give uc.flow() spark= and "
                "streaming=True"
            )
        write_topic(flow, target, keys)

    def left_out(self, flow: Flow) -> Any:
        raise InvalidArgument(
            f"the rows that a run in this process leaves out are in its result: write {self.call}.left_out"
        )

    def foreach_batch(self, flow: Flow, function: Any) -> Any:
        raise InvalidArgument(
            f"this flow runs without Spark, so it has no stream to write: write {self.call}, whose result has the "
            "panes and left_out"
        )

    def write_stream(self, flow: Flow, checkpoint: str, same: Sequence[str], start: Seed | str | None = None) -> Any:
        raise InvalidArgument(
            f"this flow runs without Spark, so it has no stream to write: write {self.call}, whose result has the panes"
        )

    def seed(self, flow: Flow, history: Any, until: datetime | str | int | None, folder: str) -> Seed:
        from .history_seeds import seed_of_history  # which opens sources

        return seed_of_history(flow, history, until, folder)

    def draw(self, flow: Flow) -> str:
        return drawing(flow, f"runs in this process: {self.call}")

    def read_until(self, flow: Flow, until: Trigger) -> tuple[Flow, Callable[[], Seen | None]]:
        reading = ReadUntil(until)
        files: dict[int, Source[Flow]] = {}
        for source, _ in leaves_of(flow):
            ended = source.ended_by(reading) if isinstance(source, SourceRows) else None
            if ended is None:
                raise InvalidArgument(
                    f"until= ends the reading of files, and this flow reads {source.describe()}: give it fewer rows, "
                    "and leave until= out"
                )
            files.setdefault(id(source), ended)
        if len(files) > 1:
            raise InvalidArgument(
                f"until= ends the reading of one source of files, and this flow has {len(files)}: read them as one, "
                "such as uc.Files([a, b]), or give each fewer files and leave until= out"
            )

        def over(one: Flow) -> Flow:
            source = one.source
            if source.inputs:
                return replace(one, source=replace(source, inputs=tuple(map(over, source.inputs))))  # type: ignore[type-var]
            return replace(one, source=files.get(id(source), source))

        return over(flow), lambda: reading.seen

    def explain(self, flow: Flow) -> str:
        lines = [f"A run in this process, without Spark: {self.call}.", *description(flow)]
        if self.has_rows:
            reason = why_not_final(graph_of(flow))
            if not self.many:
                reason = "more of them save nothing with so few rows"
            workers = "threads, as many as pyarrow.cpu_count()" if reason is None else f"one thread, because {reason}"
            lines.append(f"  rows are combined in {workers}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class LocalSource(WithoutSpark):
    """The columns of a source, and its rows if it was made of a table or of a script."""

    schema: pa.Schema
    streaming: bool
    rows: pa.Table | None = None
    reading: Reading | None = None
    script: Sequence[Entry] | None = None
    """The entries that the rows come in, if the source was made of a script."""

    def describe(self) -> str:
        columns = ", ".join(f"{field.name} {field.type}" for field in self.schema)
        if self.reading is not None:
            columns += f", read by {self.reading.words}"
        if self.script is not None:
            return f"a script of {len(self.script)} entries ({columns})"
        words = "rows of a script" if self.rows is None else f"a table of {self.rows.num_rows} rows"
        return f"{words} ({columns})"

    def whole(self, needed: frozenset[str] | None = None, leave_out: LeaveOut = ignore) -> pa.Table | None:
        return self.rows

    @property
    def has_rows(self) -> bool:
        return self.rows is not None or self.script is not None

    @property
    def many(self) -> bool:
        return self.rows is not None and are_many(self.rows)

    def readers(
        self,
        columns: Sequence[str],
        coded: frozenset[str] = frozenset(),
        needed: frozenset[str] | None = None,
        leave_out: LeaveOut = ignore,
    ) -> list[Iterator[pa.Table]]:
        return [] if self.rows is None else [in_slices([self.rows.select(list(columns))])]


__all__ = ["LocalSource", "WithoutSpark"]
