"""`uncombine replay`: plays the rows of a file through windows and a trigger, without Spark.

Guarded by tests/cli/test_replay.py.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from .. import Elements, Watermark
from ..doors import flow
from ..local.script_run import LocalRun
from ..local.sources import LocalSource
from ..plot import picture_file
from ..tables import target_of
from ..triggers import TRIGGER_WORDS, as_trigger
from ..windows import WINDOW_WORDS, as_window
from .failures import failures_of
from .file_rows import add_reading, read_rows, reading_files
from .parser import Parser
from .progress_bar import progress_bar
from .results import INTERRUPTED, add_final, notes_of, result_so_far, rows_of
from .row_output import add_output, check_output, give
from .words import add_by, add_combine, combiners_of

MOST_BUNDLES = 2000
"""The most entries that a replay has; rows of a larger file arrive together."""


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
        "--lateness", default="0 seconds", help="how long windows accept late rows (default: 0 seconds)"
    )
    replay.add_argument("--diff", metavar="COLUMN", help="the weight column of a changelog")
    modes = ["accumulating", "discarding", "retracting"]
    replay.add_argument(
        "--mode", choices=modes, default="retracting", help="how panes of a window relate (default: retracting)"
    )
    add_final(replay)
    add_output(replay)
    replay.add_argument("--table", metavar="URL", help="write what is left into a table too: duckdb:shop.db#totals")
    replay.add_argument(
        "--plot", metavar="FILE", help="draw the panes: an .html file plays them, .png or .svg is a picture"
    )


def _replay(arguments: argparse.Namespace) -> int:
    with reading_files(arguments):
        return _replayed(arguments)


def _replayed(arguments: argparse.Namespace) -> int:
    window, trigger = as_window(arguments.window, "--window"), as_trigger(arguments.trigger, "--trigger")
    results = combiners_of(arguments.combine)
    check_output(arguments)
    if arguments.plot:
        picture_file.check_path(arguments.plot, "--plot")
    if arguments.table is not None:
        target_of(arguments.table)
    with progress_bar(f"reading {arguments.file}"):
        rows = read_rows(arguments)
    arguments.time = rows.time
    stream = flow(rows.table.schema, time=rows.time, watermark=arguments.lag, diff=arguments.diff)
    assert isinstance(stream.source, LocalSource)
    # A file has an end, where a window of all time is shown.
    source = replace(stream, source=replace(stream.source, streaming=False))
    options = {"mode": arguments.mode, "allowed_lateness": arguments.lateness}
    panes = source.window(window, trigger, **options).combine(by=arguments.by, **results)
    script = _script(rows.table, arguments.processing_time)
    code = 0
    try:
        with progress_bar("replaying", len(script)) as done:
            result = LocalRun(panes).all(script, done)
    except KeyboardInterrupt as interrupt:
        result, code = result_so_far(interrupt), INTERRUPTED
    give(rows_of(result, arguments.final), arguments, [*rows.notes, *notes_of(result)])
    if code == 0 and arguments.table is not None:
        with failures_of(arguments.table):
            result.to_table(arguments.table)
        print(f"wrote {target_of(arguments.table)!r}", file=sys.stderr)
    if arguments.plot:
        with progress_bar(f"drawing {arguments.plot}", picture_file.STEPS) as done:
            title = f"{arguments.file}: {arguments.window}"
            picture_file.save(arguments.plot, result, script, title=title, time=arguments.time, done=done)
        print(f"wrote {arguments.plot}", file=sys.stderr)
    return code


def _script(rows: pa.Table, at: str | None) -> list[Elements | Watermark]:
    """The rows as entries in the order of their arrival, and then the end of the input."""
    size = max(1, -(-rows.num_rows // MOST_BUNDLES))
    script: list[Elements | Watermark] = []
    shows = sys.stderr.isatty()
    for start in range(0, rows.num_rows, size):
        some = rows.slice(start, size)
        script.append(Elements(some, None if at is None else pc.max(some[at]).as_py()))
    if shows and size > 1:
        print(f"{rows.num_rows:,} rows in {len(script):,} bundles of {size}", file=sys.stderr)
    return [*script, Watermark(None)]


__all__ = ["add_replay"]


def __dir__() -> list[str]:
    return __all__
