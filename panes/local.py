"""Runs a script of elements, watermark moves and clock moves through a pipeline, in milliseconds and without Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..combiners import Combiner
from ..combiners.plain_types import plain_schema
from ..errors import InvalidArgument, UnknownColumn, require_options
from ..triggers import percentiles
from ..windows import Span, Window, span, timestamp
from ..windows.times import MAX_TIME, MIN_TIME
from .grouping import Grouping
from .operator import Operator
from .running import next_timer
from .script import Clock, Elements, Entry, Watermark, check_script, instant, reports, tables_of
from .stages import Asked, check_followed, settled
from .state import OperatorState
from .watermarks import Watermarks

_COUNTS = b"uncombine.counts"
_WATERMARKS = b"uncombine.output_watermarks"
_DROPPED = b"uncombine.dropped_rows"
_OPTIONS = tuple(name for name in Grouping.__dataclass_fields__ if name not in ("combiners", "window", "time"))


def run(
    script: Sequence[Entry],
    *,
    window: Window,
    time: str = "ts",
    watermark: str | None = None,
    idle_after: str | Span | None = None,
    schema: pa.Schema | None = None,
    **options: Any,
) -> pa.Table:
    """The panes that a script gives, in their order.

    Before an entry moves processing time on, every timer that falls due on the way is fired at its own instant.

    Parameters
    ----------
    script
        A list of `Elements`, `Watermark` and `Clock`.
    window, time, **options
        As for `Grouping`: trigger=, mode=, by=, diff=, allowed_lateness=, on_time=, closing=, only_updated=,
        eager_retractions=, late=, granularity=, timestamp=, allow_finish=, max_future=. Every other name is a result,
        and its value a combiner. The mode is "accumulating" if not given, and "retracting" with diff=.
    watermark
        "each_batch": for each bundle the watermark runs from the beginning to the end of time.
    idle_after
        After so much processing time without a word a source no longer holds the watermark back.
    schema
        The types of the rows, where they cannot be told from the script.

    Returns
    -------
    pyarrow.Table
        The keys, `window`, the results, `event_time`, `diff`, `pane` and `step`, the entry that the row came from.

    Examples
    --------
    >>> import uncombine as uc
    >>> script = [
    ...     uc.Elements([{"ts": "2016-01-20T12:00:26Z", "score": 5}]),
    ...     uc.Watermark("2016-01-20T12:02:00Z"),
    ... ]
    >>> panes = uc.local.run(script, window=uc.Fixed("2 minutes"), total=uc.Sum("score"))
    >>> panes.select(["total", "diff", "step"]).to_pylist()
    [{'total': 5, 'diff': 1, 'step': 1}]
    """
    return pipeline([Stage(window, time=time, **options)], script, watermark, idle_after, schema)


class Stage:
    """One grouping of a pipeline, with its options as for `run`; `then` is what to make of its panes for the next.

    What is left open of it is settled by its place in the pipeline (see `pipeline`); `grouping` is the stage alone.

    >>> import uncombine as uc
    >>> Stage = uc.local.Stage
    >>> Stage(uc.Sessions("1 minute"), by="user", n=uc.Count()).grouping.by
    ('user',)
    """

    def __init__(self, window: Window, then: Any = None, **options: Any) -> None:
        combiners = {name: value for name, value in options.items() if isinstance(value, Combiner)}
        settings = {name: value for name, value in options.items() if name not in combiners}
        require_options(settings, [*_OPTIONS, "time"], "a stage")
        self.asked = Asked(combiners, window, settings)
        self.grouping = settled([self.asked])[0]
        self.then = then


@dataclass
class _Running:
    """A stage in the middle of a run."""

    operator: Operator
    state: OperatorState
    watermarks: Watermarks
    percents: tuple[float, ...]


def pipeline(
    stages: Sequence[Stage],
    script: Sequence[Entry],
    watermark: str | None = None,
    idle_after: str | Span | None = None,
    schema: pa.Schema | None = None,
) -> pa.Table:
    """The panes of the last of several stages, each grouping the panes of the one before.

    A stage's panes go to the next as rows, with the output watermark of the stage behind them. `Stage(then=f)` puts the
    rows through a function of Arrow tables. What a stage leaves open is settled as in a flow on Spark: it reads the
    time in `event_time` and, where the stage before it retracts, the weight in `diff`; its `allowed_lateness` is that
    of the stage before; it retracts if a window of it can be shown more than once and another stage follows.

    >>> import uncombine as uc
    >>> script = [uc.Elements([{"ts": 0, "u": "a"}, {"ts": 1, "u": "a"}, {"ts": 2, "u": "b"}]), uc.Watermark(None)]
    >>> per_user = uc.local.Stage(uc.Fixed("1 minute"), by="u", n=uc.Count())
    >>> sizes = uc.local.Stage(uc.Fixed("1 minute"), most=uc.Max("n"))
    >>> uc.local.pipeline([per_user, sizes], script).select(["most", "diff"]).to_pylist()
    [{'most': 2, 'diff': 1}]
    """
    if watermark not in (None, "each_batch"):
        raise InvalidArgument(f"watermark= is {watermark!r}, and it must be None or 'each_batch'")
    if not stages:
        raise InvalidArgument("a pipeline needs at least one stage, such as Stage(Fixed('1 minute'), n=Count())")
    entries = check_script(script)
    schema = None if schema is None else plain_schema(schema)
    tables = tables_of(entries, stages[0].grouping.time, schema)
    known = schema or next((t.schema for t in tables if t is not None and t.num_columns), None)
    if known is None:
        raise UnknownColumn("the script has no rows to tell the columns from: give schema=")
    return _Run(stages, known, watermark == "each_batch", None if idle_after is None else int(span(idle_after))).all(
        entries, tables
    )


class _Run:
    def __init__(self, stages: Sequence[Stage], schema: pa.Schema, each_batch: bool, idle_after: int | None) -> None:
        self.each_batch = each_batch
        self.stages: list[tuple[Stage, _Running]] = []
        groupings = settled([stage.asked for stage in stages], each_batch=each_batch)
        for stage, grouping in zip(stages, groupings, strict=True):
            grouping.check_trigger(each_batch)
            operator = Operator(grouping, schema)
            if grouping is not groupings[-1]:
                check_followed(grouping, schema, each_batch)
            # The stage before a stage is its one source, which says how far it is in every step.
            marks = Watermarks(idle_after=None if self.stages else idle_after)
            self.stages.append((stage, _Running(operator, operator.initial(), marks, percentiles(grouping.asked))))
            schema = _passed_on(stage, operator.output_schema.empty_table()).schema
        self.now = MIN_TIME
        self.out: list[pa.Table] = []
        self.late: list[list[pa.Table]] = [[] for _ in stages]
        self.output_watermarks: list[int] = []
        self.dropped: list[tuple[int, int]] = []

    def all(self, entries: list[Entry], tables: list[pa.Table | None]) -> pa.Table:
        empty = self.stages[0][1].operator.schema.empty_table()
        for step, (entry, table) in enumerate(zip(entries, tables, strict=True)):
            self._wait_until(self._clock_of(entry), step)
            rows = empty if table is None else table
            self._report(entry)
            self._step(rows, step, batch=self.each_batch and isinstance(entry, Elements))
            self.output_watermarks.append(self.stages[-1][1].state.output_watermark)
        return self._result()

    def _clock_of(self, entry: Entry) -> int:
        match entry:
            case Clock(t):
                return timestamp(t)
            case Elements(at=at) | Watermark(at=at):
                return instant(at, self.now)

    def _wait_until(self, now: int, step: int) -> None:
        """Let processing time run on to `now`, stopping at every timer on the way."""
        empty = self.stages[0][1].operator.schema.empty_table()
        while True:
            timers = [next_timer(running.state, running.watermarks) for _, running in self.stages]
            due = min((timer for timer in timers if timer is not None), default=MAX_TIME)
            if due > now or due == MAX_TIME:
                break
            self.now = max(self.now, due)
            self._step(empty, step, batch=False)
        self.now = max(self.now, now)

    def _report(self, entry: Entry) -> None:
        running = self.stages[0][1]
        given = [(report.source, instant(report.t, MAX_TIME)) for report in reports(entry)]
        running.watermarks = running.watermarks.told(given, self.now)

    def _step(self, rows: pa.Table, step: int, batch: bool) -> None:
        for i, (stage, running) in enumerate(self.stages):
            running.watermarks = running.watermarks.at(self.now)
            marks = running.watermarks
            stepped = running.operator.step(
                running.state, rows, marks.least, self.now, marks.percentiles(running.percents), batch
            )
            running.state = stepped.state
            self.late[i].append(stepped.late_rows)
            if i == 0:
                self.dropped += [(step, int(place)) for place in stepped.dropped_places]
            if i + 1 < len(self.stages):
                rows = _passed_on(stage, stepped.panes)
                following = self.stages[i + 1][1]
                following.watermarks = following.watermarks.advanced(None, stepped.output_watermark, self.now)
        if stepped.panes.num_rows:
            self.out.append(stepped.panes.append_column("step", pa.array(np.full(stepped.panes.num_rows, step))))

    def _result(self) -> pa.Table:
        schema = self.stages[-1][1].operator.output_schema.append(pa.field("step", pa.int64()))
        states = [running.state for _, running in self.stages]
        metadata = {
            _DROPPED: json.dumps(self.dropped).encode(),
            _COUNTS: json.dumps([{**asdict(state.counts), "held": len(state.windows)} for state in states]).encode(),
            _WATERMARKS: json.dumps(self.output_watermarks).encode(),
        }
        for number, ((_, running), tables) in enumerate(zip(self.stages, self.late, strict=True), 1):
            late = pa.concat_tables([running.operator.schema.empty_table(), *tables])
            if late.num_rows:
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, late.schema) as writer:
                    writer.write_table(late)
                metadata[_late_of(number)] = sink.getvalue().to_pybytes()
        return pa.concat_tables([schema.empty_table(), *self.out]).replace_schema_metadata(metadata)


def counts(result: pa.Table, stage: int | None = None) -> dict[str, int]:
    """How many rows gave no result, by the reason, and how many windows are held at the end.

    Of one stage of a pipeline, counted from 1, or of all together.

    >>> import uncombine as uc
    >>> script = [uc.Elements([{"ts": 0, "x": 1}]), uc.Watermark("1970-01-02")]
    >>> uc.local.counts(uc.local.run(script, window=uc.Fixed("1 minute"), n=uc.Count()))
    {'dropped': 0, 'finished': 0, 'unassigned': 0, 'bad': 0, 'held': 0}
    """
    found: list[dict[str, int]] = json.loads(_metadata(result)[_COUNTS])
    if stage is not None:
        return found[_place(stage, len(found))]
    return {name: sum(of_stage[name] for of_stage in found) for name in found[0]}


def dropped(result: pa.Table) -> int:
    """How many rows came too late for their window.

    >>> import uncombine as uc
    >>> script = [uc.Watermark("1970-01-02"), uc.Elements([{"ts": 0, "x": 1}])]
    >>> uc.local.dropped(uc.local.run(script, window=uc.Fixed("1 minute"), n=uc.Count()))
    1
    """
    return counts(result)["dropped"]


def dropped_rows(result: pa.Table) -> list[tuple[int, int]]:
    """Which rows came too late for their window: the entry of the script and the row's place in it.

    >>> import uncombine as uc
    >>> script = [uc.Watermark("1970-01-02"), uc.Elements([{"ts": 0, "x": 1}])]
    >>> uc.local.dropped_rows(uc.local.run(script, window=uc.Fixed("1 minute"), n=uc.Count()))
    [(1, 0)]
    """
    return [(step, place) for step, place in json.loads(_metadata(result)[_DROPPED])]


def output_watermarks(result: pa.Table) -> list[int]:
    """The output watermark after each entry of the script, microseconds.

    >>> import uncombine as uc
    >>> script = [uc.Elements([{"ts": 0}]), uc.Watermark("1970-01-01T00:00:01Z")]
    >>> uc.local.output_watermarks(uc.local.run(script, window=uc.Fixed("1 minute"), n=uc.Count()))[-1]
    1000000
    """
    found: list[int] = json.loads(_metadata(result)[_WATERMARKS])
    return found


def late_rows(result: pa.Table, stage: int = 1) -> pa.Table | None:
    """The rows of a stage that came after their window's expiry and that `late="emit"` gave back, or None.

    Stages are counted from 1; the rows of a later one are panes of the stage before it.

    >>> import uncombine as uc
    >>> script = [uc.Watermark("1970-01-02"), uc.Elements([{"ts": 0, "x": 1}])]
    >>> result = uc.local.run(script, window=uc.Fixed("1 minute"), late="emit", n=uc.Count())
    >>> uc.local.late_rows(result)["x"].to_pylist()
    [1]
    """
    metadata = _metadata(result)
    _place(stage, len(json.loads(metadata[_COUNTS])))
    stored = metadata.get(_late_of(stage))
    return None if stored is None else pa.ipc.open_stream(stored).read_all()


def _late_of(stage: int) -> bytes:
    return f"uncombine.late_rows.{stage}".encode()


def _place(stage: int, stages: int) -> int:
    if isinstance(stage, bool) or not isinstance(stage, int) or not 1 <= stage <= stages:
        raise InvalidArgument(f"stage= is {stage!r}, and the stages of this run are counted from 1 to {stages}")
    return stage - 1


def _metadata(result: pa.Table) -> dict[bytes, bytes]:
    metadata = result.schema.metadata or {}
    if _COUNTS not in metadata:
        raise InvalidArgument("this table is not (or no longer) what uc.local.run gave: ask before you transform it")
    return dict(metadata)


def _passed_on(stage: Stage, panes: pa.Table) -> pa.Table:
    return panes if stage.then is None else stage.then(panes)


__all__ = ["Stage", "counts", "dropped", "dropped_rows", "late_rows", "output_watermarks", "pipeline", "run"]
