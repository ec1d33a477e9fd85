"""Local runs: a script of elements, watermark reports and clock times through any flow, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..combiners import Combiner
from ..combiners.rows.columns import flat
from ..combiners.rows.plain_types import plain_schema
from ..errors import InvalidArgument, UnknownColumn, require_options
from ..windows import Span, Window, span, time_column, timestamp
from ..windows.times import MAX_TIME, MIN_TIME
from .flow import OPTIONS, Flow, Settings, Stage, flow_of
from .intake import Intake, Taken
from .late_rows import with_late_rows
from .local_result import Result
from .local_source import LocalSource, source
from .operators.grouping.operator import Operator
from .script import Clock, Elements, Entry, Watermark, check_script, instant, reports, tables_of
from .shard.arrivals import Arrival, reports_by_time
from .shard.parcels import MARKS, runs
from .shard.shard import Played, Shard, by_bundle
from .transforms import Select, WithColumns, applied
from .watermark_strategies import IngressTime, Punctuated
from .watermarks import Report, Watermarks


def run(
    script: Sequence[Entry] | None = None,
    flow: Flow | None = None,
    *,
    window: Window | None = None,
    time: str = "ts",
    watermark: str | None = None,
    idle_after: str | Span | None = None,
    schema: pa.Schema | None = None,
    **options: Any,
) -> Result:
    """Run a script through a flow and return the panes in their order.

    Before an entry moves processing time on, every timer that is due by then fires at its own time.

    Parameters
    ----------
    script
        A list of `Elements`, `Watermark` and `Clock`. Without a script the rows of the table of `uc.local.source` come
        as one bundle, and then the input ends.
    flow
        Any flow, of any number of groupings: over `uc.local.source`, or the flow over Spark that is deployed. Its rows
        report watermarks by the flow's own strategy, and a script may report more. A row arrives at the time in the
        flow's `processing_time` column; if it has none there, at the time of its entry.
    window, time, **options
        The short form, instead of a flow of one grouping. Options are those of `Grouping`: trigger=, mode=, by=,
        diff=, allowed_lateness=, on_time=, closing=, only_updated=, eager_retractions=, late=, granularity=,
        timestamp=, allow_finish=, max_future=. Every other name is a result, and its value a combiner. The mode is
        "accumulating" if not given, and "retracting" with diff=.
    watermark
        "each_batch", in the short form: within each bundle the watermark runs from the beginning to the end of time.
    idle_after
        In the short form: a source that reports nothing for this long is idle and no longer holds the watermark back.
    schema
        In the short form: the types of the rows, for a script whose rows do not show them.

    Returns
    -------
    Result
        An Arrow table of the keys, `window`, the results, `event_time`, `diff`, `pane` and `step` (the entry that the
        row came from), with `.table()`, `.counts()`, `.late_rows()`, `.dropped_rows` and `.output_watermarks`.

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
    if flow is None:
        if window is None or script is None:
            if isinstance(script, Flow):
                raise InvalidArgument("local.run() takes the flow after the script: local.run(script, flow)")
            raise InvalidArgument("local.run() takes a script and a flow, or a script, window= and combiners")
        entries = check_script(script)
        flow = _short_form(entries, window, time, watermark, schema, options)
        return _Run(flow, None if idle_after is None else int(span(idle_after))).all(entries)
    if not isinstance(flow, Flow):
        raise InvalidArgument(f"local.run(script, flow) takes a flow, but was given {flow!r}")
    short = {"window": window, "watermark": watermark, "idle_after": idle_after, "schema": schema, **options}
    if given := [name for name, value in short.items() if value is not None] + ["time"] * (time != "ts"):
        raise InvalidArgument(f"local.run(script, flow) takes no {given[0]}=: give it where the flow is built")
    strategy = flow.settings.strategy
    idle = None if strategy is None or strategy.idle is None else int(strategy.idle)
    return _Run(flow, idle).all(_entries(script, flow))


def _short_form(
    entries: list[Entry],
    window: Window,
    time: str,
    watermark: str | None,
    schema: pa.Schema | None,
    options: Mapping[str, Any],
) -> Flow:
    """Build the flow of one grouping that the short form of `run` describes."""
    if watermark not in (None, "each_batch"):
        raise InvalidArgument(f"watermark= must be None or 'each_batch', but is {watermark!r}")
    combiners = {name: value for name, value in options.items() if isinstance(value, Combiner)}
    given = {name: value for name, value in options.items() if name not in combiners}
    require_options(given, [*OPTIONS, "by"], "local.run()")
    by, diff = given.pop("by", ()), given.pop("diff", None)
    if schema is None:
        tables = tables_of(entries, [time])
        schema = next((table.schema for table in tables if table is not None and table.num_columns), None)
    if schema is None:
        raise UnknownColumn("the script has no rows, so its columns are unknown: give schema=")
    rows = LocalSource(plain_schema(schema), streaming=False)
    settings = Settings(time, diff=diff, each_batch=watermark == "each_batch")
    return flow_of(rows, settings).window(window, **given).combine(by=by, **combiners)


def _entries(script: Sequence[Entry] | None, flow: Flow) -> list[Entry]:
    """The entries of the script. Without a script, the rows of the source's table as one entry."""
    if script is not None:
        return check_script(script)
    rows = getattr(flow.source, "rows", None)
    if rows is None:
        raise InvalidArgument("local.run() needs a script, since the source of the flow has columns and no rows")
    return [Elements(rows), Watermark(None)]


@dataclass(frozen=True)
class _Part:
    """The rows of an entry that arrive at one processing time, and their places among the rows of the grouping."""

    arrival: Arrival
    places: np.ndarray


class _Run:
    """A flow in the middle of a run: a shard for each grouping, and the output so far."""

    def __init__(self, flow: Flow, idle_after: int | None) -> None:
        self.flow = flow
        self.shards: list[Shard] = []
        schema = flow.source_schema
        for stage in flow.stages:
            schema = applied(stage.transforms, schema.empty_table()).schema
            # The only source of a later grouping is the grouping before it, which reports in every step.
            operator = Operator(stage.grouping, schema)
            self.shards.append(Shard.start(operator, Watermarks(idle_after=None if self.shards else idle_after)))
            schema = operator.output_schema
        self.schema = flow.schema if flow.transforms or not flow.stages else schema
        self.now = MIN_TIME
        self.out: list[pa.Table] = []
        self.late: list[list[pa.Table]] = [[] for _ in flow.stages]
        self.dropped: list[tuple[int, int]] = []
        self.output_watermarks: list[int] = []

    def all(self, entries: list[Entry]) -> Result:
        settings, schema = self.flow.settings, self.flow.source.schema
        if "step" in self.schema.names:
            raise InvalidArgument(
                "a local run adds the column 'step', but the flow has a column of that name too: rename it, or "
                "leave it out with select()"
            )
        times = [name for name in (settings.time, settings.processing_time) if name is not None]
        for step, (entry, table) in enumerate(zip(entries, tables_of(entries, times, schema), strict=True)):
            self._check_input(step, entry)
            self.now = max(self.now, self._clock_of(entry))
            rows = schema.empty_table() if table is None else table
            if self.shards:
                self._step(step, self._parts(step, entry, rows))
                self.output_watermarks.append(self.shards[-1].state.output_watermark)
            else:
                self._show(step, applied(self.flow.transforms, rows))
        return self._result()

    def _check_input(self, step: int, entry: Entry) -> None:
        name = self.flow.settings.name
        if isinstance(entry, Elements) and entry.input is not None and entry.input != name:
            known = "has no name" if name is None else f"is {name!r}"
            raise InvalidArgument(
                f"entry {step} of the script is for input={entry.input!r}, but the only source {known}: use its name"
            )

    def _clock_of(self, entry: Entry) -> int:
        match entry:
            case Clock(t):
                return timestamp(t)
            case Elements(at=at) | Watermark(at=at):
                return instant(at, self.now)

    def _parts(self, step: int, entry: Entry, rows: pa.Table) -> dict[int, _Part]:
        """The bundles of an entry for the first grouping, by their processing time."""
        first, settings = self.flow.stages[0], self.flow.settings
        given: list[Report] = [(report.source, instant(report.t, MAX_TIME)) for report in reports(entry)]
        if not isinstance(entry, Elements):
            taken = Taken(self.shards[0].operator.schemas[0].empty_table(), self.now, MARKS.empty_table())
        elif settings.strategy is None and settings.processing_time is None:
            taken = Taken(applied(first.transforms, rows), self.now, MARKS.empty_table())
        else:
            times = self._times(rows)
            if isinstance(settings.strategy, IngressTime) and (times == MIN_TIME).any():
                raise InvalidArgument(
                    f"entry {step} of the script has rows before the clock has started, but watermark=IngressTime() "
                    "takes their times from the clock: give at=, or a Clock before them"
                )
            taken = Intake(first.grouping, settings.time, settings.strategy, first.transforms)(rows, times)
        found = reports_by_time(taken.reports)
        places = dict(_places(taken.at, taken.rows.num_rows))
        if settings.strategy is not None and (None, MAX_TIME) in given:  # the end of every source
            known = {
                *self.shards[0].watermarks.inputs[0].sources,
                *(source for some in found.values() for source, _ in some),
            }
            given += [(source, MAX_TIME) for source in known]
        if given or settings.processing_time is None or not isinstance(entry, Elements):
            last = max([self.now, *found, *places])  # the script's reports come after the last of the rows
            found[last] = [*found.get(last, []), *given]
        whole = settings.each_batch and isinstance(entry, Elements)
        out = {}
        for at in {*found, *places}:
            here = places.get(at, np.zeros(0, np.int64))
            out[at] = _Part(Arrival([taken.rows.take(pa.array(here))], reports=found.get(at, ()), whole=whole), here)
        return out

    def _times(self, rows: pa.Table) -> np.ndarray:
        """The processing time of each row: from its column, or from its entry if the column is null or not named."""
        name = self.flow.settings.processing_time
        if name is None:
            return np.full(rows.num_rows, self.now)
        times, valid = time_column(flat(rows[name]))
        return np.where(valid, times, self.now)

    def _step(self, step: int, parts: Mapping[int, _Part]) -> None:
        played: list[Played] = []
        for at, part in sorted(parts.items()):
            self.now = max(self.now, at)
            self.shards[0], steps = self.shards[0].take(at, part.arrival)
            self.dropped += [(step, int(part.places[place])) for place in steps[-1].stepped.dropped_places]
            played += steps
        for i, stage in enumerate(self.flow.stages):
            if i:
                self.shards[i], played = self.shards[i].play(_passed_on(stage, played))
            self.shards[i], timers = self.shards[i].wait(self.now)
            played += timers
            self.late[i] += [done.stepped.late_rows for done in played]
        for done in played:
            self._show(step, self._shown(done))

    def _shown(self, done: Played) -> pa.Table:
        if not self.flow.transforms:
            return done.panes
        panes = done.panes
        if self.flow.source.late_column and self.flow.stages[-1].grouping.late == "emit":
            panes = with_late_rows(panes, done.stepped.late_rows, self.shards[-1].operator.schemas[0])
        return applied(self.flow.transforms, panes)

    def _show(self, step: int, rows: pa.Table) -> None:
        if rows.num_rows:
            self.out.append(rows.append_column("step", pa.array(np.full(rows.num_rows, step))))

    def _result(self) -> Result:
        panes = pa.concat_tables([self.schema.append(pa.field("step", pa.int64())).empty_table(), *self.out])
        counts = [{**asdict(s.state.counts), "held": s.operator.held(s.state)} for s in self.shards]
        late = [
            pa.concat_tables([shard.operator.schemas[0].empty_table(), *tables])
            for shard, tables in zip(self.shards, self.late, strict=True)
        ]
        return Result(panes, counts, late, self.dropped, self.output_watermarks, self._keeps_rows())

    def _keeps_rows(self) -> bool:
        steps = self.flow.stages[0].transforms if self.flow.stages else ()
        return all(isinstance(step, Select | WithColumns) for step in steps) and not isinstance(
            self.flow.settings.strategy, Punctuated
        )


def _places(at: int | np.ndarray, count: int) -> Iterator[tuple[int, np.ndarray]]:
    """Each processing time, and the places of its rows."""
    if count == 0:
        return
    if isinstance(at, int):
        yield at, np.arange(count)
        return
    order, cuts = runs(at)
    for time, first, stop in cuts:
        yield time, order[first:stop]


def _passed_on(stage: Stage, played: Sequence[Played]) -> dict[int, Arrival]:
    """The panes of a grouping as bundles for the next one, each with the output watermark after it."""
    return {
        at: Arrival(
            [applied(stage.transforms, done.panes) for done in steps],
            reports=[(None, done.output_watermark) for done in steps],
            whole=any(done.whole for done in steps),
        )
        for at, steps in by_bundle(played).items()
    }


__all__ = ["Result", "run", "source"]
