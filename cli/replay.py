"""`uncombine replay`: plays the rows of a file through windows and a trigger, without Spark.

Guarded by tests/cli/test_replay.py.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import Elements, Watermark
from ..combiners.rows.columns import flat
from ..doors import flow
from ..errors import InvalidArgument, TableMismatch
from ..flows.result import Result, flat_panes
from ..local.script_run import LocalRun
from ..local.sources import LocalSource
from ..plot import picture_file
from ..tables import new_table, target_of
from ..triggers import TRIGGER_WORDS, as_trigger
from ..triggers.properties import uses_processing_time
from ..windows import WINDOW_WORDS, Fixed, Span, Window, as_window, span, time_column
from .failures import failures_of
from .file_rows import FileRows, add_reading, read_rows
from .named_files import reading_files
from .parser import Parser, count_of
from .plot_options import add_plot, check_plot, plot_scope, scope_words
from .progress_bar import progress_bar
from .results import INTERRUPTED, add_final, in_zone, notes_of, result_so_far, rows_of
from .row_output import add_output, check_output, check_rows, give, write_file
from .words import add_by, add_combine, combiners_of

STEPS = 2000
"""The most steps of a replay, unless --steps says another number."""

_HOUR = 3_600_000_000


def add_replay(parser: Parser) -> None:
    """The command, with its options."""
    replay = parser.command("replay", _replay, "replay a file of events through windows and a trigger, without Spark")
    add_reading(replay)
    add_by(replay)
    replay.add_argument("--window", required=True, help=WINDOW_WORDS)
    replay.add_argument("--trigger", default="watermark", help=f"{TRIGGER_WORDS} (default: watermark)")
    add_combine(replay)
    replay.add_argument(
        "--lag", default="0 seconds", help="the watermark is the latest event time less this (default: 0 seconds)"
    )
    replay.add_argument(
        "--in-order", action="store_true", help="replay the rows in the order of their times, so that none is late"
    )
    replay.add_argument(
        "--lateness", default="0 seconds", help="how long windows accept late rows (default: 0 seconds)"
    )
    replay.add_argument("--diff", metavar="COLUMN", help="the weight column of a changelog")
    modes = ["accumulating", "discarding", "retracting"]
    replay.add_argument(
        "--mode", choices=modes, default="retracting", help="how panes of a window relate (default: retracting)"
    )
    add_final(replay)
    replay.add_argument(
        "--steps",
        type=count_of,
        default=STEPS,
        metavar="N",
        help=f"the most steps of the replay: rows of a larger file arrive several at a time (default: {STEPS})",
    )
    replay.add_argument(
        "--left-out", metavar="FILE", help="write the rows that were left out, with the reason of each, into a new file"
    )
    add_output(replay)
    replay.add_argument("--table", metavar="URL", help="write what is left into a new table: duckdb:shop.db#totals")
    add_plot(replay)
    replay.remedies["--changelog"] = (
        "for a changelog of another system write a flow in Python, uc.flow('events.csv', changelog=...), and run it by "
        "uncombine run"
    )


def _replay(arguments: argparse.Namespace) -> int:
    with reading_files(arguments):
        return _replayed(arguments)


def _replayed(arguments: argparse.Namespace) -> int:
    window, trigger = as_window(arguments.window, "--window"), as_trigger(arguments.trigger, "--trigger")
    results = combiners_of(arguments.combine)
    if arguments.in_order and arguments.processing_time is not None:
        raise InvalidArgument("--in-order and --processing-time both say in which order rows arrive: give one of them")
    check_output(arguments, {"--left-out": arguments.left_out}, arguments.table is not None)
    check_plot(arguments)
    if arguments.table is not None:
        target_of(arguments.table)
    with progress_bar(f"reading {arguments.file}"):
        rows = read_rows(arguments, results, arguments.diff)
    if arguments.in_order:
        rows = replace(rows, table=rows.table.sort_by(arguments.time))
    stream = flow(rows.table.schema, time=arguments.time, watermark=arguments.lag, diff=arguments.diff)
    assert isinstance(stream.source, LocalSource)
    # A file has an end, where a window of all time is shown.
    source = replace(stream, source=replace(stream.source, streaming=False))
    options = {"mode": arguments.mode, "allowed_lateness": arguments.lateness}
    panes = source.window(window, trigger, **options).combine(by=rows.by, **results)
    check_rows(arguments, in_zone(flat_panes(panes.schema.empty_table()), arguments.time_zone).schema)
    if arguments.table is not None and not arguments.overwrite:
        with _advised():
            new_table(panes, arguments.table, None)
    # Of rows in their order what is left at the end is the same in any steps.
    at_once = arguments.in_order and arguments.final and arguments.trigger == "watermark" and not arguments.plot
    script = _script(rows.table, arguments.processing_time, 1 if at_once else arguments.steps)
    code = 0
    try:
        with progress_bar("replaying", len(script)) as done:
            result = LocalRun(panes).all(script, done)
    except KeyboardInterrupt as interrupt:
        result, code = result_so_far(interrupt), INTERRUPTED
    of_result = notes_of(result, more=bool(rows.notes))
    bundled = [] if at_once else _bundled(rows.table.num_rows, arguments.steps)
    notes = [*bundled, *rows.notes, *of_result, *_late(result, rows, arguments), *_of_clock(window, arguments)]
    if uses_processing_time(trigger) and arguments.processing_time is None:
        notes.append(
            f"no time passes between rows without --processing-time COLUMN, so the parts of --trigger "
            f"{arguments.trigger!r} that wait for it never fire"
        )
    give(rows_of(result, arguments.final, arguments.time_zone), arguments, notes)
    if arguments.left_out is not None:
        write_file(_left_out(result, rows), arguments.left_out)
        print(f"wrote the rows that were left out into {arguments.left_out}", file=sys.stderr)
    if code == 0 and arguments.table is not None:
        with failures_of(arguments.table):
            new_table(panes, arguments.table, None, drop=arguments.overwrite)
            result.to_table(arguments.table)
        print(f"wrote {target_of(arguments.table)!r}", file=sys.stderr)
    if arguments.plot:
        with progress_bar(f"drawing {arguments.plot}", picture_file.STEPS) as done:
            title = ", ".join([f"{arguments.file}: {arguments.window}", *scope_words(arguments)])
            scope = plot_scope(arguments, rows.table.schema)
            picture_file.save(arguments.plot, result, script, time=arguments.time, **scope, title=title, done=done)
        print(f"wrote {arguments.plot}", file=sys.stderr)
    return code


@contextmanager
def _advised() -> Iterator[None]:
    """Say how a table that is there is replaced, in the words of the command."""
    try:
        yield
    except TableMismatch as error:
        raise InvalidArgument(f"{str(error).replace('drop it', 'give --overwrite')}") from None


def _script(rows: pa.Table, at: str | None, steps: int) -> list[Elements | Watermark]:
    """The rows as entries in the order of their arrival, and then the end of the input."""
    size = _bundle(rows.num_rows, steps)
    script: list[Elements | Watermark] = []
    for start in range(0, rows.num_rows, size):
        some = rows.slice(start, size)
        script.append(Elements(some, None if at is None else pc.max(some[at]).as_py()))
    return [*script, Watermark(None)]


def _bundle(rows: int, steps: int) -> int:
    """The number of rows that arrive together."""
    return max(1, -(-rows // max(1, steps)))


def _bundled(rows: int, steps: int) -> list[str]:
    """That rows arrive together, which decides when panes are shown.

    >>> _bundled(5000, 2000)
    ['rows arrived 3 at a time, which can make other rows late: --steps 5000 replays each alone, some 4 ms a row']
    """
    size = _bundle(rows, steps)
    if size == 1:
        return []
    told = f"rows arrived {size} at a time, which can make other rows late"
    return [f"{told}: --steps {rows} replays each alone, some 4 ms a row"]


def _late(result: Result, rows: FileRows, arguments: argparse.Namespace) -> list[str]:
    """The reason that a row is late, if some were left out as late, and that files came in another order than times."""
    notes = []
    behind, most = _disorder(rows.table[arguments.time], int(span(arguments.lag)))
    by_name = arguments.file_order == "name" and arguments.processing_time is None and not arguments.in_order
    if rows.files > 1 and by_name and behind * 10 > rows.table.num_rows:
        notes.append(
            f"{behind:,} of {rows.table.num_rows:,} rows came after later ones, and {rows.files:,} files were read by "
            "their names: --file-order time reads them by their times"
        )
    if "why" in result.left_out.column_names and "late" in result.left_out["why"].to_pylist():
        notes.append(
            f"a row is late if its window ended before the latest time so far less --lag {arguments.lag!r} and "
            f"--lateness {arguments.lateness!r}: make one as long as the disorder of the file, which is "
            f"{Span(most)}, or give --in-order"
        )
    return notes


def _of_clock(window: Window, arguments: argparse.Namespace) -> list[str]:
    """That windows of days begin in UTC, where the times of the result are those of another clock.

    >>> _of_clock(as_window("1 day"), argparse.Namespace(time_zone="Europe/Paris", window="1 day"))
    ["windows of '1 day' begin by the clock of UTC: --window 'calendar day Europe/Paris' has those of Europe/Paris"]
    """
    zone, size = arguments.time_zone, window.size if isinstance(window, Fixed) else 0
    if zone in (None, "UTC") or size <= _HOUR:
        return []
    remedy = f": --window 'calendar day {zone}' has those of {zone}" if size == 24 * _HOUR else ""
    return [f"windows of {arguments.window!r} begin by the clock of UTC{remedy}"]


def _disorder(times: pa.ChunkedArray, lag: int) -> tuple[int, int]:
    """The rows that come more than a lag after a later one, and the most microseconds by which one does.

    >>> _disorder(pa.chunked_array([pa.array([0, 90, 30, 80], pa.timestamp("us", "UTC"))]), 20)
    (1, 60)
    """
    found, valid = time_column(flat(times))
    found = found[valid]
    delays = np.maximum.accumulate(found) - found
    return int((delays > lag).sum()), int(delays.max(initial=0))


def _left_out(result: Result, rows: FileRows) -> pa.Table:
    """The rows without a result: those of steps, and those that could not be read, with their file and line."""
    tables = [
        result.left_out,
        *(some.append_column("why", pa.array(["unreadable"] * len(some))) for some in rows.unreadable),
    ]
    return pa.concat_tables([table for table in tables if table.num_columns], promote_options="permissive")


__all__ = ["add_replay"]


def __dir__() -> list[str]:
    return __all__
