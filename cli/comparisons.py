"""`uncombine compare`: the net difference of two flows or tables, and a verdict as its exit code.

It ends with 0 if both are the same, 1 if they differ, and 2 for any error, also one in a flow of the user. Two streams
are compared after each batch, and the verdict is that of the last one.

Guarded by tests/cli/test_comparisons.py.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..comparing import compare
from ..errors import UncombineError
from ..flows.flow import Flow
from ..tables.comparison.comparison import Comparison
from ..tables.interrupts import PATIENCE, interrupts
from ..tables.targets import is_target
from .failures import Failed, failures_of
from .module_names import flow_at
from .named_files import add_format, files_of, reading_files
from .parser import Parser, count_of
from .row_texts import json_lines
from .run import trigger_of

_NAME = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")
"""A module of the user and a name in it."""


def add_compare(parser: Parser) -> None:
    """The command, with its options."""
    command = parser.command("compare", _compare, "say in which rows two flows or tables differ")
    for name in ("old", "new"):
        command.add_argument(
            name, metavar=name.upper(), help="a file, folder or pattern, or MODULE:NAME of a flow, also of spark"
        )
    command.add_argument(
        "--keys", metavar="COLUMN,...", help="the columns that identify a row; whole rows if not given"
    )
    command.add_argument("--diff", metavar="COLUMN", help="the weights of a changelog (default: diff, if it is there)")
    command.add_argument(
        "--tolerance", type=_tolerance, metavar="X", help="floats x and y may differ by X * max(1, |x|, |y|)"
    )
    command.add_argument(
        "--examples", type=count_of, default=10, metavar="N", help="the most rows that are shown (default: 10)"
    )
    command.add_argument(
        "--available-now", action="store_true", help="of streams: end when all rows that are there are compared"
    )
    command.add_argument("--every", metavar="TIME", help="of streams: the time between two batches, as '10 seconds'")
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    command.add_argument(
        "--columns", type=lambda text: text.split(","), metavar="COLUMN,...", help="of files: compare these columns"
    )
    command.add_argument("--time-zone", metavar="ZONE", help="the clock of times in csv and json that say no zone")
    add_format(command)


def _compare(arguments: argparse.Namespace) -> int:
    try:
        sides = [_side(text, arguments) for text in (arguments.old, arguments.new)]
        options: dict[str, Any] = {
            "keys": None if arguments.keys is None else arguments.keys.split(","),
            **{name: getattr(arguments, name) for name in ("diff", "tolerance", "examples")},
        }
        with failures_of("compare", (UncombineError, OSError)), reading_files(arguments):
            result = _result(sides, options, arguments)
    except Failed as error:  # 1 is for sides that differ
        raise UncombineError(str(error)) from error
    print(json.dumps(_facts(result)) if arguments.json else result)
    return 0 if result.same else 1


def _result(sides: Sequence[Any], options: Mapping[str, Any], arguments: argparse.Namespace) -> Comparison:
    """The comparison, of streams when they end or the user ends it."""
    old, new = sides
    trigger = trigger_of(arguments)
    if trigger is None and not all(map(_is_stream, sides)):
        return compare(old, new, **options)

    def show(result: Comparison, number: int) -> None:
        told = json.dumps({"batch": number, **_facts(result)}) if arguments.json else f"batch {number}: {result}"
        print(told, flush=True)

    live = compare(old, new, **options, trigger=trigger or {"processingTime": "0 seconds"}, on_batch=show)
    with live, interrupts() as interrupted:
        if not arguments.available_now:
            print("the comparison follows both streams; Ctrl-C ends it", file=sys.stderr)
        while not live.awaitTermination(PATIENCE) and not interrupted():
            pass
    return live.comparison


def _is_stream(side: Any) -> bool:
    return isinstance(side, Flow) and side.source.streaming and side.source.engine.has_streams


def _side(text: str, arguments: argparse.Namespace) -> Any:
    """The flow that a text names, or files; a live table is left to be refused."""
    if is_target(text):
        return text
    if _NAME.fullmatch(text) and not Path(text).exists():
        return flow_at(text, "compare")
    return files_of(text, arguments)


def _facts(result: Comparison) -> dict[str, Any]:
    """The result as JSON has it."""
    names = ("same", "equal", "changed", "only_old", "only_new", "changed_columns")
    examples = [json.loads(line) for line in json_lines(result.examples)]
    return {**{name: getattr(result, name) for name in names}, "examples": examples}


def _tolerance(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number such as 1e-9, but is {text!r}") from None


__all__ = ["add_compare"]


def __dir__() -> list[str]:
    return __all__
