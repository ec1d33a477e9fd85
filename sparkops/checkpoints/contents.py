"""The contents of a checkpoint of a query, read from Spark's state store while the query runs or after it.

The idea: a checkpoint is opened as a value that only looks. Each shard is read by a task of its own, and what leaves
the tasks is in the words of a user: keys, windows, what was shown, what each window waits for.

Guarded by tests/sparkops/checkpoints/test_contents.py and tests/cli/test_command_line.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import cached_property
from os import PathLike, fspath
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from ...errors import InvalidArgument
from ...flows.evolution.deletion import Condition, Deletion
from ...flows.evolution.former_marks import input_name
from ...flows.fingerprint.differences import number_of, words_of
from ...panes.state.manifest import Manifest, bytes_of, extra_of
from ...panes.state.operator_state import Counts, OperatorState
from ...panes.state.seed import Seed
from ...panes.watermarks.stored_watermarks import OF_A_STEP, is_idle, read_extra, stored_inputs
from ...windows.times import MIN_TIME
from ..query_log import last_commit
from ..session import session
from ..sql_types import spark_schema
from .deleted import delete_rows
from .instants import instant_of, timestamps_of
from .rows import PARTS, part_named, shown_state
from .seeds import operators, positions, seed_of_checkpoint
from .shards import StoredShards
from .unended import require_folder, unended

_SOURCES = pa.schema(
    {"step": pa.int64(), "input": pa.int64(), "source": pa.string()}
    | dict.fromkeys(("watermark", "last_report"), pa.timestamp("us", "UTC"))
    | dict.fromkeys(("holds", "idle"), pa.bool_())
    | dict.fromkeys(("offset", "end"), pa.int64())
)


class KeepsCheckpoint(Protocol):
    """A live table, whose query keeps a checkpoint."""

    @property
    def checkpoint(self) -> str:
        """The folder of the checkpoint."""


@dataclass(frozen=True)
class StoredStep:
    """A step of a flow as a checkpoint holds it, over all its shards."""

    number: int
    words: str
    """The step in a few words."""
    rows: Mapping[str, int]
    """The number of rows of each part of its state."""
    bytes: int
    """The bytes of its state, as they are stored."""
    shards: int
    watermark: datetime | None
    """The least watermark of all shards; None before the first and at the end of time."""
    output_watermark: datetime | None
    """The time before which the step gives no row any more."""
    counts: Mapping[str, int]
    """The numbers of rows without a result since the query first started, by the reason."""
    since: Mapping[str, datetime | None]
    """For each combiner that was added without a history: the start of the first windows of which it has all rows."""
    made_by: Mapping[str, Any] = field(repr=False)
    """The parts of the flow on which the state depends."""

    def __str__(self) -> str:
        parts = ", ".join(f"{count:,} {name}" for name, count in self.rows.items()) or "no rows"
        mark = "none" if self.watermark is None else f"{self.watermark:%Y-%m-%d %H:%M:%S}"
        left_out = ", ".join(f"{count:,} {why}" for why, count in self.counts.items() if count)
        more = f"; left out: {left_out}" if left_out else ""
        return f"step {self.number}, {self.words}: {parts} in {self.bytes:,} bytes, watermark {mark}{more}"


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint of a streaming query, to be looked into. Its query may be running; nothing of it is changed.

    `uc.checkpoint(path)` makes it.

    >>> import tempfile, uncombine as uc
    >>> spark, folder = uc.session(), tempfile.mkdtemp()
    >>> rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    >>> rows = uc.flow(rates, time="timestamp", watermark="1 minute")
    >>> once = rows.distinct("value", within="1 hour")
    >>> query = once.write_stream(checkpoint=folder).format("noop").trigger(once=True).start()
    >>> query.awaitTermination()
    >>> uc.checkpoint(folder).steps[0].rows, uc.checkpoint(folder).counts()["dropped"]
    ({'ids': 10}, 0)
    """

    path: str
    batch: int
    """The batch after which it is looked at."""
    spark: SparkSession = field(repr=False)

    def at(self, batch: int) -> Checkpoint:
        """The same checkpoint after an earlier batch, as long as Spark keeps its state: for 100 batches, if not set."""
        if not 0 <= batch <= self.batch:
            raise InvalidArgument(f"the checkpoint has batches 0 to {self.batch}, and at({batch}) is none of them")
        return replace(self, batch=batch)

    @property
    def steps(self) -> list[StoredStep]:
        """The steps that keep state, in their order. A step whose sources have had no rows is not there yet.

        Those of a query of several flows are counted through, the first step of each flow before all second ones.
        """
        return [one.step for one in self._stored]

    def counts(self, step: int | None = None) -> dict[str, int]:
        """The numbers of rows without a result since the query first started, by the reason, of one step or of all."""
        if step is None and not operators(self.spark, self.path):
            raise InvalidArgument(
                f"the query of {self.path!r} has no step that keeps state, so its checkpoint has no counts: "
                "uc.progress(query) and the log have those of each batch"
            )
        some = self.steps if step is None else [self._step(step).step]
        return {name: sum(one.counts[name] for one in some) for name in asdict(Counts())}

    def sources(self) -> pa.Table:
        """The sources of each step: the watermark that each has reached, and the processing time of its last report.

        `holds` is true for the one that holds the watermark of its step, because none has a lesser time; `idle` for one
        that has been silent for `idle_after=`, and holds it no more. A partition of Kafka has its next `offset`, and
        the `end` that it had when the batch was planned.
        A source without parts of its own has the name of its flow, where a step has several inputs.
        """
        rows = [row for one in self._stored for row in one.sources()]
        times = {name: timestamps_of([row[name] for row in rows]) for name in ("watermark", "last_report")}
        plain = {name: [row[name] for row in rows] for name in _SOURCES.names if name not in times}
        return pa.table({**plain, **times}).select(_SOURCES.names).cast(_SOURCES)

    def df(self, step: int = 1, part: str | None = None) -> DataFrame:
        """The rows of the state of a step, as a DataFrame.

        They have the keys, the window, how many rows it has, whether some are new since its last pane, the `results` of
        all its rows (not of combiners of your own), the panes that are `shown` and not retracted, the watermark or the
        processing time at which it is needed next, the watermark at which it `expires`, and its bytes.
        `part` names one of several parts, as `steps` has them: `"left rows"` of a join.
        """
        df = self._rows(step, part)
        if df is None:
            raise InvalidArgument(f"step {step} of the checkpoint {self.path!r} keeps no {part or 'rows'} now")
        return df

    def rows(self, step: int = 1, part: str | None = None) -> pa.Table:
        """The rows of the state of a step, as an Arrow table; see `df`."""
        return self.df(step, part).toArrow()

    def largest(self, step: int = 1, n: int = 20, part: str | None = None) -> pa.Table:
        """The `n` rows of the state of a step that have the most bytes, which are in the column `bytes`."""
        self._step(step, f": write largest(1, {step!r}) for {step!r} rows of step 1")
        return self.df(step, part).orderBy(F.col("bytes").desc()).limit(n).toArrow()

    def changes(self, first: int, last: int, step: int = 1, part: str | None = None) -> DataFrame:
        """The rows of the state of a step that changed from after one batch to after another, as a DataFrame.

        They are those of `df`, with a column `diff`: -1 for a row as it was, and 1 for one as it became.
        """
        earlier, later = self.at(first), self.at(last)
        there = any(one.number == step for one in earlier.steps)
        before, now = earlier._rows(step, part) if there else None, later._rows(step, part)
        if before is None and now is None:
            raise InvalidArgument(
                f"step {step} of the checkpoint {self.path!r} keeps no {part or 'rows'} after batch {first} or {last}"
            )
        sides = [
            (one if other is None else one.exceptAll(other)).withColumn("diff", F.lit(weight))
            for one, other, weight in ((before, now, -1), (now, before, 1))
            if one is not None
        ]
        return sides[0] if len(sides) == 1 else sides[0].unionByName(sides[1])

    def seed(self, to: str | PathLike[str]) -> Seed:
        """Write the state as a seed into a new folder, from which another query or a run begins.

        It has the rows of each step, the watermarks, and the positions of the sources (`seed.positions`), and no number
        of shards: `flow.write_stream(checkpoint=new, start=seed)` divides it among as many as the session has.
        """
        return seed_of_checkpoint(self.spark, self.path, fspath(to), self.batch)

    def delete(self, *, where: Condition | None = None, to: str | PathLike[str], **key: Any) -> Deletion:
        """Make a new checkpoint without the rows for which a condition on their keys is true, as of one person.

        `user="ada"` is `where=uc.col("user") == "ada"`; `where={1: ..., 2: ...}` has a condition for some of the steps,
        where they know a person by other columns. The rows leave each step that keeps these columns, and panes that
        have been shown of them are retracted when the query starts from the new checkpoint: from a live table before
        its first batch, else with it; later steps take them out of their contents. The query must have ended, and this
        checkpoint stays as it is. The result says what has left and, for it must be known, which places still have
        values of these rows.
        """
        return delete_rows(self.spark, self.path, self.batch, where, key, fspath(to))

    @property
    def positions(self) -> tuple[str, ...]:
        """The place to which each source has been read, as the text in which Spark notes it."""
        return positions(self.spark, self.path, self.batch)

    @cached_property
    def _stored(self) -> list[_StoredShards]:
        every = (StoredShards(self.spark, self.path, number, self.batch) for number in operators(self.spark, self.path))
        some = [_StoredShards(shards, manifests) for shards in every for manifests in shards.steps()]
        some = sorted(some, key=lambda one: one.step.number)
        numbers = [one.step.number for one in some]
        if len(set(numbers)) == len(numbers):
            return some
        # A query of several flows has a first step for each, so they are counted through.
        return [replace(one, counted=place) for place, one in enumerate(some, 1)]

    def _rows(self, step: int, part: str | None) -> DataFrame | None:
        """The rows of the state of a step; None if it has none."""
        one = self._step(step)
        name = part_named(part, one.stores, f"step {step}")
        columns = _Rows(name, one.step.made_by, columns_alone=True)
        sample = one.shards.mapped(columns, "schema binary", one.manifests).take(1)
        if not sample:
            return None
        schema = spark_schema(pa.ipc.read_schema(pa.py_buffer(bytes(sample[0]["schema"]))))
        return one.shards.mapped(_Rows(name, one.step.made_by), schema, one.manifests)

    def _step(self, number: int, remedy: str = "") -> _StoredShards:
        found = {one.step.number: one for one in self._stored}
        if number not in found:
            raise InvalidArgument(
                f"the checkpoint {self.path!r} has state of the steps {sorted(found)}, and not of {number!r}{remedy}"
            )
        return found[number]

    def __str__(self) -> str:
        return "\n".join([f"{self.path} after batch {self.batch}", *map(str, self.steps)])


@dataclass(frozen=True)
class _StoredShards:
    """The shards of a step, with their manifests."""

    shards: StoredShards
    manifests: Mapping[int, bytes]
    counted: int | None = None
    """The number of the step in a query of several flows."""

    @cached_property
    def states(self) -> list[OperatorState]:
        """The states without the rows of their stores."""
        return [Manifest.read(manifest).state for manifest in self.manifests.values()]

    @cached_property
    def extra(self) -> Mapping[str, Any]:
        """The values that a shard keeps beside its rows; what is asked of them is the same in all."""
        return read_extra(extra_of(next(iter(self.manifests.values()))))

    @property
    def stores(self) -> list[str]:
        """The names of the stores that the step has."""
        return [name for name, store in self.states[0].stores.items() if store is not None]

    @cached_property
    def step(self) -> StoredStep:
        made_by, counts, rows = self.extra["made_by"], Counts(), dict[str, int]()
        for state, manifest in zip(self.states, self.manifests.values(), strict=True):
            counts += state.counts
            for name, chunks in Manifest.read(manifest).stored.items():
                alive = sum(chunk.alive for chunk in chunks or ())
                rows[PARTS.get(name, name)] = rows.get(PARTS.get(name, name), 0) + alive
        return StoredStep(
            number=self.counted or number_of(made_by),
            words=words_of(made_by),
            rows={name: count for name, count in rows.items() if count},
            bytes=sum(map(bytes_of, self.manifests.values())),
            shards=len(self.manifests),
            watermark=instant_of(min(state.watermark for state in self.states)),
            output_watermark=instant_of(min(state.output_watermark for state in self.states)),
            counts=asdict(counts),
            since={name: instant_of(start) for name, start in self.states[0].since.items()},
            made_by=made_by,
        )

    def _sources(self, place: int, sources: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        """The sources of an input; the shards of the step before are one."""
        strategies = self.extra.get("strategies", [self.extra.get("strategy")])
        if strategies[place] != OF_A_STEP or not sources:
            return sources
        return [("the step before", min(time for _, time, _ in sources), max(last for *_, last in sources))]

    def sources(self) -> Iterator[dict[str, Any]]:
        """The sources of each input of the step."""
        extra = self.extra
        inputs, now = stored_inputs(extra), extra["marks"]["now"]
        awake = [time for one in inputs for name, time, last in one["sources"] if not is_idle(one, name, last, now)]
        least = min(awake, default=MIN_TIME)
        texts = extra["made_by"].get("inputs")
        for place, one in enumerate(inputs, 1):
            reads = {name: read for name, *read in one.get("reads", ())}
            own = None if texts is None else input_name(texts[place - 1])
            own = None if own == "source" else own  # the word for one without a name
            for source, time, last in self._sources(place - 1, one["sources"]):
                idle, read = is_idle(one, source, last, now), reads.get(source, (None, None))
                yield {
                    "step": self.step.number,
                    "input": place,
                    "source": own if source is None else source,
                    "watermark": time,
                    "last_report": last,
                    "holds": time == least and not idle,
                    "idle": idle,
                    "offset": read[0],
                    "end": read[1],
                }


@contextmanager
def opened_checkpoint(path: str, starts: Callable[[], object] = bool) -> Iterator[Checkpoint]:
    """The checkpoint in a folder, for a program that looks once: a session that it had to start ends with it.

    `starts` is called before a session is started.
    """
    running = SparkSession.getActiveSession()
    if running is None:
        require_folder(path)
        starts()
    spark = running or session("uncombine checkpoint", cores=2)
    try:
        yield checkpoint(path, spark=spark)
    finally:
        if running is None:
            spark.stop()


@dataclass(frozen=True)
class _Rows:
    """The rows of a shard in the words of a user, or only their columns, which are those of all shards."""

    name: str
    made_by: Mapping[str, Any]
    columns_alone: bool = False

    def __call__(self, shard: int, state: OperatorState, manifest: bytes) -> Iterator[pa.RecordBatch]:
        table = shown_state(self.name, state, self.made_by)
        if table.num_rows and self.columns_alone:
            yield pa.RecordBatch.from_pydict({"schema": [table.schema.serialize().to_pybytes()]})
        elif table.num_rows:
            yield from table.combine_chunks().to_batches(max_chunksize=10_000)


def checkpoint(path: str | PathLike[str] | KeepsCheckpoint, *, spark: SparkSession | None = None) -> Checkpoint:
    """Open the checkpoint of a streaming query, to look into it; the query may be running, and nothing is changed.

    Parameters
    ----------
    path
        The folder of the checkpoint, or a live table.
    spark
        The session that reads it; the one that is running if not given, or else a new one.

    Examples
    --------
    >>> import tempfile, uncombine as uc
    >>> spark, folder = uc.session(), tempfile.mkdtemp()
    >>> rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    >>> hours = uc.flow(rates, time="timestamp", watermark="1 minute").window("1 hour")
    >>> counts = hours.combine(n=uc.Count())
    >>> query = counts.write_stream(checkpoint=folder).format("noop").trigger(once=True).start()
    >>> query.awaitTermination()
    >>> found = uc.checkpoint(folder)
    >>> found.steps[0].rows, found.rows(1)["rows"].to_pylist()
    ({'windows': 1}, [10])
    """
    path = fspath(path if isinstance(path, str | PathLike) else path.checkpoint)
    found = spark or SparkSession.getActiveSession() or session("uncombine checkpoint", cores=1)
    batch = last_commit(found, path)
    if batch < 0:
        raise unended(found, path)
    return Checkpoint(path=path, batch=batch, spark=found)


__all__ = ["Checkpoint", "StoredStep", "checkpoint", "opened_checkpoint"]
