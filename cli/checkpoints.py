"""`uncombine checkpoint` and `uncombine check`: the contents of a checkpoint, and what a restart from it would do.

Guarded by tests/cli/test_command_line.py and tests/sparkops/test_restart_checks.py.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from ..errors import InvalidArgument, UncombineError
from ..evolution import evolve
from ..panes.showing import TablePreview, shown_rows
from .module_names import flow_at
from .parser import Parser

if TYPE_CHECKING:
    import pyarrow as pa

    from ..flows.flow import Flow
    from ..sparkops.checkpoints.contents import Checkpoint


def add_checkpoint(parser: Parser) -> None:
    """The command `checkpoint`, with its options."""
    checkpoint = parser.command("checkpoint", _checkpoint, "show what a checkpoint holds (starts Spark)")
    checkpoint.add_argument("path", metavar="FOLDER", help="the folder of the checkpoint")
    checkpoint.add_argument(
        "--rows", type=int, metavar="STEP", help="the rows of the state of a step: keys, windows, panes shown"
    )
    checkpoint.add_argument("--largest", type=int, metavar="N", help="the N largest rows of the state of each step")
    checkpoint.add_argument("--sources", action="store_true", help="each source, its watermark and its last report")
    checkpoint.add_argument(
        "--counts", action="store_true", help="the rows without a result since the start, by the reason"
    )
    checkpoint.add_argument("--part", help="with --rows: a part of the state, such as 'left rows' of a join")
    checkpoint.add_argument("--batch", type=int, metavar="N", help="after an earlier batch instead of the last one")
    checkpoint.add_argument("--json", action="store_true", help="print the result as JSON")


def add_check(parser: Parser) -> None:
    """The command `check`, with its options."""
    check = parser.command("check", _check, "say what a restart of a flow from a checkpoint would do (starts Spark)")
    check.add_argument("flow", metavar="MODULE:NAME", help="a streaming flow, or a function that makes one")
    check.add_argument("--checkpoint", required=True, metavar="FOLDER", help="the folder of the checkpoint")
    check.add_argument(
        "--same",
        action="append",
        default=[],
        metavar="STEP",
        help="a step that is written otherwise and computes the same, such as 'map 2'; may be repeated",
    )
    check.add_argument("--json", action="store_true", help="print the result as JSON")


def _check(arguments: argparse.Namespace) -> int:
    from ..sparkops.checkpoints.before_restart import check_restart

    flow = flow_at(arguments.flow, "check")
    restart = check_restart(flow, arguments.checkpoint, arguments.same)
    if arguments.json:
        steps = [
            {"stage": one.number, "step": one.words, "refused": [c.text for c in one.changes], "free": list(one.free)}
            for one in restart.steps
        ]
        print(json.dumps({"goes_on": restart.refusal is None, "steps": steps, "unknown": list(restart.unknown)}))
    else:
        lines = [line for one in restart.steps for line in one.lines()]
        lines += [f"not noted in the checkpoint, and taken for unchanged: {part}" for part in restart.unknown]
        print("\n".join(lines) or f"{arguments.checkpoint} has no state: the query starts from nothing")
        if restart.refusal is not None:
            print(f"\n{restart.refusal}\n\n{_evolution(arguments.checkpoint, flow)}")
    return 0 if restart.refusal is None else 1


def _evolution(checkpoint: str, flow: Flow) -> str:
    """The way of a new checkpoint for a changed flow, with a line for each step."""
    try:
        change = evolve(checkpoint, flow, history=(), dry_run=True)
    except UncombineError as error:
        return f"uc.evolve({checkpoint!r}, ...) is refused: {error}"
    more = ", history=..." if change.plan.computed else ""
    return f"uc.evolve({checkpoint!r}, flow, to=...{more}) would make a new checkpoint:\n{change}"


def _checkpoint(arguments: argparse.Namespace) -> int:
    from ..sparkops.checkpoints.contents import opened_checkpoint

    with opened_checkpoint(arguments.path) as found:
        print(_asked(found if arguments.batch is None else found.at(arguments.batch), arguments))
    return 0


def _asked(found: Checkpoint, arguments: argparse.Namespace) -> str:
    """The part of a checkpoint that was asked for, as text; its steps if none was."""
    if sum(map(bool, (arguments.rows, arguments.largest, arguments.sources, arguments.counts))) > 1:
        raise InvalidArgument("checkpoint shows one thing: give one of --rows, --largest, --sources and --counts")
    if arguments.rows is not None:
        return _told(found.rows(arguments.rows, arguments.part), arguments.json)
    if arguments.largest is not None:
        every = [found.largest(step.number, arguments.largest) for step in found.steps]
        return "\n\n".join(_told(table, arguments.json) for table in every)
    if arguments.sources:
        return _told(found.sources(), arguments.json)
    if arguments.counts:
        counts = {f"step {step.number}": dict(step.counts) for step in found.steps}
        if arguments.json:
            return json.dumps(counts)
        lines = [[name, why, f"{count:,}"] for name, some in counts.items() for why, count in some.items()]
        return TablePreview(rows=lines, numbers=[False, False, True]).text()
    if arguments.json:
        steps = [{**asdict(step), "made_by": dict(step.made_by)} for step in found.steps]
        return json.dumps({"path": found.path, "batch": found.batch, "steps": steps}, default=str)
    return str(found)


def _told(table: pa.Table, as_json: bool) -> str:
    return json.dumps(table.to_pylist(), default=str) if as_json else shown_rows(table, title="", whole=True).text()


__all__ = ["add_check", "add_checkpoint"]


def __dir__() -> list[str]:
    return __all__
