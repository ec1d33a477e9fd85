"""A source without an engine: the columns of rows that come from a script or a table."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pyarrow as pa

from ..changelogs.base import Changelog
from ..changelogs.flows import changed_flow, reading_of, warn_of_changes
from ..combiners.aggregate import as_table
from ..combiners.rows.plain_types import plain_schema, plain_table, plain_type
from ..errors import InvalidArgument, TypeMismatch
from ..flows.description import description
from ..flows.flow import Flow, Source, flow_of
from ..flows.graph import graph_of
from ..flows.reading import Reading
from ..flows.settings import Settings
from ..panes.watermarks.watermark_strategies import WatermarkStrategy
from ..tables import write_result
from .final_run import are_many, in_slices, why_not_final
from .given_rows import GivenRows
from .script import with_times
from .script_run import LocalRun


class WithoutSpark(Source, GivenRows):
    """A source of local runs."""

    mixes = True
    made_by: ClassVar[str]
    """The function that makes the source, in messages."""

    @property
    @abstractmethod
    def has_rows(self) -> bool:
        """True for a source that has rows of its own, so that it needs no script."""

    @property
    def call(self) -> str:
        """The call that runs a flow over the source, in messages."""
        return "uc.local.run(flow=flow)" if self.has_rows else "uc.local.run(script, flow)"

    def held(self, field: pa.Field) -> pa.Field:
        return field.with_type(plain_type(field.type))

    def df(self, flow: Flow) -> Any:
        raise InvalidArgument(
            f"a flow over {self.made_by} has no DataFrame: run it with {self.call}, or build the same flow over "
            "uc.flow(df)"
        )

    def to_table(self, flow: Flow, target: str, keys: str | Sequence[str] | None) -> None:
        write_result(flow, target, keys, lambda settled: LocalRun(settled).of_tables().panes)

    def left_out(self, flow: Flow) -> Any:
        raise InvalidArgument(f"the rows that a local run leaves out are in its result: write {self.call}.left_out")

    def foreach_batch(self, flow: Flow, function: Any) -> Any:
        raise InvalidArgument(
            f"a flow over {self.made_by} has no stream to write: run it with {self.call}, whose result has the panes "
            "and left_out"
        )

    def write_stream(self, flow: Flow, checkpoint: str, same: Sequence[str]) -> Any:
        raise InvalidArgument(
            f"a flow over {self.made_by} has no stream to write: run it with {self.call}, whose result has the panes"
        )

    def explain(self, flow: Flow) -> str:
        lines = [f"A local run, without Spark: {self.call}.", *description(flow)]
        if self.has_rows:
            reason = why_not_final(graph_of(flow))
            if not self.many:
                reason = "more of them save nothing with so few rows"
            given = "threads, as many as pyarrow.cpu_count()" if reason is None else f"one thread, because {reason}"
            lines.append(f"  rows are combined in {given}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class LocalSource(WithoutSpark):
    """The columns of a source, and its rows if it was made of a table."""

    schema: pa.Schema
    streaming: bool
    rows: pa.Table | None = None
    reading: Reading | None = None
    made_by = "uc.local.source()"

    def describe(self) -> str:
        columns = ", ".join(f"{field.name} {field.type}" for field in self.schema)
        if self.reading is not None:
            columns += f", read by {self.reading.words}"
        return f"local rows ({columns})" if self.rows is None else f"a table of {self.rows.num_rows} rows ({columns})"

    @property
    def whole(self) -> pa.Table | None:
        return self.rows

    @property
    def has_rows(self) -> bool:
        return self.rows is not None

    @property
    def many(self) -> bool:
        return self.rows is not None and are_many(self.rows)

    def readers(self, columns: Sequence[str], coded: frozenset[str] = frozenset()) -> list[Iterator[pa.Table]]:
        return [] if self.rows is None else [in_slices([self.rows.select(list(columns))])]


def source(
    schema_or_table: Any,
    time: str = "ts",
    watermark: WatermarkStrategy | str | None = None,
    *,
    diff: str | None = None,
    changelog: Changelog | None = None,
    processing_time: str | None = None,
    name: str | None = None,
) -> Flow:
    """Start a flow over the rows of a local run, for tests and for work without Spark.

    Parameters
    ----------
    schema_or_table
        The columns as an Arrow schema; or a table (Arrow, or pandas), whose rows `uc.local.run(flow=...)` reads too.
    time, watermark, diff, changelog, processing_time
        As for `uc.flow`. Without `watermark` only the script reports watermarks.
    name
        The name of the source, for `Elements(input=...)`.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> scores = uc.local.source(pa.schema({"ts": pa.timestamp("us", "UTC"), "user": pa.string(), "score": pa.int64()}))
    >>> totals = scores.window(uc.Fixed("2 minutes")).combine(by="user", total=uc.Sum("score"))
    >>> script = [uc.Elements([{"ts": "2016-01-20T12:00:26Z", "user": "dan", "score": 5}]), uc.Watermark(None)]
    >>> uc.local.run(script, totals).select(["user", "total"]).to_pylist()
    [{'user': 'dan', 'total': 5}]
    """
    settings = Settings(time, watermark, diff, processing_time, name=name)
    streaming = settings.strategy is not None
    if isinstance(schema_or_table, pa.Schema):
        if changelog is not None:
            reading = reading_of(changelog, plain_schema(schema_or_table), settings, strict=False)
            return changed_flow(LocalSource(reading.schema, streaming, reading=reading), settings, reading)
        warn_of_changes(schema_or_table.names, settings)
        return flow_of(LocalSource(plain_schema(schema_or_table), streaming), settings)
    try:
        table = as_table(schema_or_table)
    except TypeMismatch:
        if hasattr(schema_or_table, "__arrow_c_stream__"):  # its values are of different types
            raise
        raise TypeMismatch(
            f"local.source() takes an Arrow schema, an Arrow table or a pandas DataFrame, but was given "
            f"{schema_or_table!r}"
        ) from None
    times = [time] if processing_time is None else [time, processing_time]
    if changelog is not None:
        messages = plain_table(table)
        reading = reading_of(changelog, messages.schema, settings, strict=True)
        rows = plain_table(with_times(reading(messages), times))
        source = LocalSource(rows.schema, streaming, rows, replace(reading, strict=False))
        return changed_flow(source, settings, reading)
    warn_of_changes(table.column_names, settings)
    rows = plain_table(with_times(table, times))
    return flow_of(LocalSource(rows.schema, streaming, rows), settings)


__all__ = ["LocalSource", "source"]
