"""The inputs of a run in this process: what each source of a flow makes of the entries of a script.

Guarded by tests/local/test_local.py and tests/flows/test_union.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..combiners.rows.columns import flat
from ..errors import InvalidArgument
from ..flows.changelog_reading import Reading
from ..flows.engine import Source
from ..flows.event_time import EventTime
from ..flows.flow import Flow
from ..flows.graph import Feed, Leaf, Step
from ..flows.settings import Settings
from ..panes.parcels import MARKS, runs
from ..panes.selection import Rename, Select
from ..panes.shard.arrivals import Arrival, reports_by_time
from ..panes.transforms import WithColumns, applied
from ..panes.watermarks.intake import Intake, TimedRows
from ..panes.watermarks.watermark_strategies import IngressTime, Punctuated
from ..panes.watermarks.watermarks import Report, Watermarks
from ..windows import time_column
from ..windows.times import MAX_TIME, MIN_TIME
from .script import Elements, Entry, Watermark, instant, reports, tables_of


@dataclass(frozen=True)
class Part:
    """The rows of an entry that arrive at one processing time, and their places among the rows for the step."""

    arrival: Arrival
    places: np.ndarray


@dataclass(frozen=True)
class LocalInput:
    """The rows of a source on their way to a step."""

    leaf: Leaf
    feed: Feed
    step: Step

    def parts(self, place: int, entry: Entry, rows: pa.Table, now: int, marks: Watermarks) -> dict[int, Part]:
        """The bundles of an entry, by their processing time; `place` is that of the entry in the script."""
        settings = self.leaf.settings
        timed_rows = self._timed_rows(place, entry, rows, now)
        reports_at = reports_by_time(timed_rows.reports)
        places = dict(_places(timed_rows.at, timed_rows.rows.num_rows))
        script_reports: list[Report] = [(report.source, instant(report.t, MAX_TIME)) for report in reports(entry)]
        if settings.strategy is not None and (None, MAX_TIME) in script_reports:  # the end of every source
            heard = {*marks.sources, *(source for some in reports_at.values() for source, _ in some)}
            script_reports += [(source, MAX_TIME) for source in heard]
        if script_reports or settings.processing_time is None or not isinstance(entry, Elements):
            last = max([now, *reports_at, *places])  # the script's reports come after the last of the rows
            reports_at[last] = [*reports_at.get(last, []), *script_reports]
        whole = settings.each_batch and isinstance(entry, Elements)
        out = {}
        for at in {*reports_at, *places}:
            here = places.get(at, np.zeros(0, np.int64))
            some = timed_rows.rows if len(here) == timed_rows.rows.num_rows else timed_rows.rows.take(pa.array(here))
            out[at] = Part(Arrival([some], reports=reports_at.get(at, ()), whole=whole), here)
        return out

    def _timed_rows(self, place: int, entry: Entry, rows: pa.Table, now: int) -> TimedRows:
        settings, transforms = self.leaf.settings, self.feed.transforms
        if not isinstance(entry, Elements):
            return TimedRows(rows=self.feed.output_schema.empty_table(), at=now, reports=MARKS.empty_table())
        plain = settings.strategy is None and settings.processing_time is None
        plain = plain and settings.until is None and settings.latest is None
        if plain and not self.step.guards:
            return TimedRows(rows=applied(transforms, rows), at=now, reports=MARKS.empty_table())
        times = self._times(rows, now)
        if isinstance(settings.strategy, IngressTime) and (times == MIN_TIME).any():
            raise InvalidArgument(
                f"entry {place} of the script brings rows before the clock has started, and watermark=IngressTime() "
                "takes their times from it: give at=, or a Clock before them"
            )
        return Intake(
            max_future=settings.max_future,
            time=settings.time,
            strategy=settings.strategy,
            transforms=transforms,
            guards=self.step.guards,
            until=settings.until,
            latest=settings.latest,
            step_time=self.step.stage.time,
        )(rows, times)

    def _times(self, rows: pa.Table, now: int) -> np.ndarray:
        """The processing time of each row: from its column, or from its entry if the column is null or not named."""
        name = self.leaf.settings.processing_time
        if name is None:
            return np.full(rows.num_rows, now)
        times, valid = time_column(flat(rows[name]))
        return np.where(valid, times, now)

    @property
    def keeps_rows(self) -> bool:
        """True if every row of an entry comes to the step."""
        whole = all(isinstance(transform, Rename | Select | WithColumns) for transform in self.feed.transforms)
        return whole and not isinstance(self.leaf.settings.strategy, Punctuated)


class InputNames:
    """The names of the sources of a flow, by which entries of a script say where they go."""

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self.names = [leaf.settings.name for leaf in leaves]
        self.sources = [id(leaf.source) for leaf in leaves]

    def goes_to(self, place: int, entry: Entry) -> list[bool]:
        """For each source, whether the entry goes to it. A flow can read one source in several places."""
        input_name = entry.input if isinstance(entry, Elements | Watermark) else None
        if input_name is None:
            if isinstance(entry, Elements) and not self._one:
                raise InvalidArgument(f"entry {place} of the script does not say for which source it is: {self._hint}")
            return [True for _ in self.names]
        named = {source for name, source in zip(self.names, self.sources, strict=True) if name == input_name}
        if len(named) > 1:
            raise InvalidArgument(
                f"entry {place} of the script is for input={input_name!r}, and {len(named)} sources have this name: "
                "give each source its own name="
            )
        if not named:
            raise InvalidArgument(f"entry {place} of the script is for input={input_name!r}, and {self._hint}")
        return [source in named for source in self.sources]

    @property
    def _one(self) -> bool:
        return len(set(self.sources)) == 1

    @property
    def _hint(self) -> str:
        if self._one:
            name = self.names[0]
            return f"the one source {'has no name' if name is None else f'is {name!r}'}"
        if None in self.names:
            return "a source of the flow has no name: give name= to uc.flow(), or names to uc.union()"
        names = list(dict.fromkeys(self.names))
        return f"the sources are {names}: name one of them in input="


def times_read(settings: Settings) -> list[str]:
    """The columns of a source that have times, be they texts or numbers, which are no business of an expression."""
    time = settings.time if settings.event_time is None else None
    return [name for name in (time, settings.processing_time) if name is not None]


def source_tables(source: Source[Flow], settings: Settings, entries: Sequence[Entry]) -> list[pa.Table | None]:
    """The rows of a source that the entries of a script bring, None for an entry without rows."""
    times = times_read(settings)
    rows_before: tuple[pa.Schema, Reading | EventTime] | None = None
    if (reading := source.reading) is not None:
        rows_before = reading.message_schema, reading
    elif settings.event_time is not None:
        rows_before = settings.event_time.rows, settings.event_time
    if rows_before is None:
        return tables_of(entries, times, source.schema)
    schema, read = rows_before
    tables = tables_of(entries, times, schema)
    read_entries = [
        entry if table is None else Elements(read(table)) for entry, table in zip(entries, tables, strict=True)
    ]
    return tables_of(read_entries, times, source.schema)


def turns(
    parts: Mapping[Feed, Mapping[int, Part]], now: int, most: int
) -> Iterator[tuple[int, Mapping[Feed, Mapping[int, Part]]]]:
    """The bundles of an entry in turns, each with the processing time at its end; `now` is that of the entry."""
    times = sorted({at for some in parts.values() for at in some})
    size = max(1, -(-len(times) // most))
    if len(times) <= size:
        yield now, parts
        return
    for first in range(0, len(times), size):
        here = times[first : first + size]
        chosen = {feed: {at: some[at] for at in here if at in some} for feed, some in parts.items()}
        yield now if first + size >= len(times) else here[-1], chosen


def _places(at: int | np.ndarray, count: int) -> Iterator[tuple[int, np.ndarray]]:
    """Each processing time, and the places of its rows."""
    if count == 0:
        return
    if isinstance(at, int):
        yield at, np.arange(count)
        return
    if (at == at[0]).all():
        yield int(at[0]), np.arange(count)
        return
    order, cuts = runs(at)
    for time, first, stop in cuts:
        yield time, order[first:stop]


__all__ = ["InputNames", "LocalInput", "Part", "source_tables", "times_read", "turns"]
