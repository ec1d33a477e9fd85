"""`uncombine run`: runs a flow of the user's module, and prints its panes, writes them, or keeps them in a table.

Guarded by tests/cli/test_run.py.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from ..errors import InvalidArgument
from ..flows.flow import Flow
from ..flows.flow_steps import last_groupings, weight_of
from ..flows.result import Result, flat_panes
from ..panes.grouping.grouping import DIFF
from ..tables import target_of
from ..tables.interrupts import PATIENCE, interrupts
from .failures import failures_of
from .module_names import flow_at
from .parser import Parser
from .results import INTERRUPTED, add_final, in_zone, notes_of, result_so_far, rows_of
from .row_output import add_output, check_output, check_rows, give

_OF_STREAMS = ("checkpoint", "available_now", "every", "same", "query_name", "left_out", "quiet")


def add_run(parser: Parser) -> None:
    """The command, with its options."""
    run = parser.command("run", _run, "run a flow of a module, in this process or on Spark")
    run.add_argument("flow", metavar="MODULE:NAME", help="a flow, or a function that makes one, also of spark")
    add_final(run)
    add_output(run)
    run.add_argument(
        "--until", metavar="TRIGGER", help="of files, without Spark: end early, such as '90%% of files or 10 minutes'"
    )
    run.add_argument("--table", metavar="URL", help="keep the result in a table, such as duckdb:shop.db#totals")
    run.add_argument(
        "--key", action="append", metavar="COLUMN", help="a column of the key of the table; may be repeated"
    )
    run.add_argument("--checkpoint", metavar="FOLDER", help="of a stream: the folder in which it keeps its progress")
    run.add_argument(
        "--available-now", action="store_true", help="of a stream: end when the table has all rows that are there"
    )
    run.add_argument("--every", metavar="TIME", help="of a stream: the time between two batches, such as '10 seconds'")
    run.add_argument(
        "--same", action="append", metavar="STEP", help="of a stream: as for `uncombine check`; may be repeated"
    )
    run.add_argument("--query-name", metavar="NAME", help="of a stream: the name of its query in the log")
    run.add_argument("--left-out", metavar="URL", help="of a stream: keep the rows that are left out in a second table")
    run.add_argument("--quiet", action="store_true", help="of a stream: no line for each batch on stderr")


def _run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    check_output(arguments)
    flow = flow_at(arguments.flow, "run")
    endless = flow.source.streaming and flow.source.engine.has_streams
    if arguments.table is not None:
        return _keep(flow, arguments) if endless else _write_table(flow, arguments)
    if endless:
        raise InvalidArgument(
            f"the rows of {arguments.flow} have no end: keep the result in a table with --table and --checkpoint, such "
            "as --table duckdb:totals.db#totals --checkpoint checkpoint"
        )
    check_rows(arguments, in_zone(flat_panes(flow.schema.empty_table()), None).schema)
    code = 0
    try:
        with failures_of(arguments.flow):
            result = _result(flow, arguments.until)
    except KeyboardInterrupt as interrupt:
        result, code = result_so_far(interrupt), INTERRUPTED
    give(rows_of(result, arguments.final), arguments, notes_of(result))
    return code


def _check(arguments: argparse.Namespace) -> None:
    """Raise for options that do not go together."""
    if arguments.table is None:
        for name in ("key", *_OF_STREAMS):
            if getattr(arguments, name):
                raise InvalidArgument(f"--{name.replace('_', '-')} is for a table: give --table URL")
        return
    target_of(arguments.table)
    if arguments.output is not None:
        raise InvalidArgument("--table and --output are two places for the result: give one of them")
    if arguments.final:
        raise InvalidArgument(
            "--final is for rows that are shown or written into a file, and a table has what is left at the end "
            "without it: leave --final out"
        )


def _result(flow: Flow, until: str | None) -> Result:
    """The result of a flow that ends, perhaps before all of its files are read."""
    if until is not None or not flow.source.engine.has_streams:
        return flow.run(until=until)
    groupings = last_groupings(flow)
    return Result(
        flow.df.toArrow(),
        of_stages=[{}] * len(groupings),
        last=groupings[0] if groupings else None,
        weight=weight_of(flow) or DIFF,
    )


def _write_table(flow: Flow, arguments: argparse.Namespace) -> int:
    for name in _OF_STREAMS:
        if getattr(arguments, name):
            raise InvalidArgument(f"--{name.replace('_', '-')} is for a stream, and the rows of {arguments.flow} end")
    for name, is_said in (
        ("limit", arguments.limit is not None),
        ("json", arguments.json),
        ("sort", bool(arguments.sort)),
        ("having", bool(arguments.having)),
    ):
        if is_said:
            raise InvalidArgument(
                f"--{name} is for rows that are shown, and those of {arguments.flow} go into the table: leave it out"
            )
    with failures_of(arguments.flow):
        seen = flow.to_table(arguments.table, arguments.key, until=arguments.until)
    of_what = "" if seen is None else f"; {seen.words}"
    print(f"wrote {target_of(arguments.table)!r}{of_what}", file=sys.stderr)
    return 0


def _keep(flow: Flow, arguments: argparse.Namespace) -> int:
    """Keep the result of a stream in a table, until it ends or the user ends it; then show the table."""
    if arguments.checkpoint is None:
        raise InvalidArgument(
            f"the rows of {arguments.flow} have no end: give --checkpoint, the folder of its progress"
        )
    code, trigger = 0, trigger_of(arguments)
    with failures_of(arguments.flow), nullcontext() if arguments.quiet else _log_on_stderr():
        live = flow.to_table(
            arguments.table,
            arguments.key,
            checkpoint=arguments.checkpoint,
            trigger=trigger,
            same=arguments.same or (),
            query_name=arguments.query_name,
            left_out=arguments.left_out,
            until=arguments.until,
        )
        with live, interrupts() as interrupted:
            if not arguments.available_now:
                print(f"{live!r} follows its input; Ctrl-C ends it", file=sys.stderr)
            while not live.awaitTermination(PATIENCE):
                if interrupted():
                    code = INTERRUPTED
                    break
        rows = live.arrow()
    give(rows, arguments)
    return code


@contextmanager
def _log_on_stderr() -> Iterator[None]:
    """Show the log of queries on stderr in the block: a line for each batch, and warnings."""
    from ..sparkops.progress_log import shown_lines

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    with shown_lines(handler):
        yield


def trigger_of(arguments: argparse.Namespace) -> Mapping[str, Any] | None:
    """The trigger that the options of a stream name; None for that of Spark."""
    if arguments.available_now and arguments.every:
        raise InvalidArgument("--available-now ends, and --every goes on with later rows: give one of them")
    if arguments.available_now:
        return {"availableNow": True}
    return {"processingTime": arguments.every} if arguments.every else None


__all__ = ["add_run", "trigger_of"]


def __dir__() -> list[str]:
    return __all__
