"""`uncombine checkpoint`, `why` and `check`: the contents of a checkpoint, and what a restart from it would do.

Guarded by tests/cli/test_command_line.py and tests/sparkops/test_restart_checks.py.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..combiners.rows.type_names import type_named
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
    _add_batch(checkpoint)
    checkpoint.add_argument("--json", action="store_true", help="print the result as JSON")


def add_why(parser: Parser) -> None:
    """The command `why`, with its options."""
    why = parser.command("why", _why, "say why a window of a query has not been shown (starts Spark)")
    why.add_argument("path", metavar="FOLDER", help="the folder of the checkpoint")
    why.add_argument(
        "--window", metavar="TIME", help="its start, or a moment in it; without it the one that waits longest"
    )
    why.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a column of the key of the window, and its value; may be repeated",
    )
    why.add_argument("--row", metavar="JSON", help="in place of a window: a row, of which it says what would become")

    _add_batch(why)


def _add_batch(command: argparse.ArgumentParser) -> None:
    command.add_argument("--batch", type=int, metavar="N", help="after an earlier batch instead of the last one")


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


def _why(arguments: argparse.Namespace) -> int:
    pairs = [text.partition("=") for text in arguments.key]
    if wrong := [name for name, sign, _ in pairs if not sign]:
        raise InvalidArgument(f"--key names a column and its value, such as --key user=ada, but is {wrong[0]!r}")
    row = None if arguments.row is None else _row(arguments.row)
    if row is not None and (pairs or arguments.window is not None):
        raise InvalidArgument("why takes --window and --key, or --row, which has both: leave the others out")
    from ..sparkops.checkpoints.contents import opened_checkpoint
    from ..sparkops.reasons import why

    with opened_checkpoint(arguments.path, _tell) as found:
        found = found if arguments.batch is None else found.at(arguments.batch)
        kinds = {name: kind for step in found.steps for name, kind in step.made_by.get("by", ())}
        key = {name: _value(name, text, kinds.get(name)) for name, _, text in pairs}
        print(why(found, window=arguments.window, row=row, **key))
        print(f"uncombine: as of the end of batch {found.batch}", file=sys.stderr)
    return 0


def _tell() -> None:
    print("uncombine: starting Spark, which reads the checkpoint", file=sys.stderr)


def _row(text: str) -> Mapping[str, Any]:
    try:
        row = json.loads(text)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise InvalidArgument(
            f"""--row is a row as JSON, such as '{{"ts": "2026-05-01 12:00", "user": "ada"}}', not {text!r}"""
        )
    return row


def _value(name: str, text: str, kind: str | None) -> Any:
    """The value of a key, whose text is read in the type that its column has."""
    import pyarrow as pa

    to = None if kind is None else type_named(kind)
    try:
        return text if to is None else pa.scalar(text).cast(to).as_py()
    except pa.ArrowException:
        raise InvalidArgument(f"the key {name!r} is {kind}, and {text!r} is none") from None


def _checkpoint(arguments: argparse.Namespace) -> int:
    from ..sparkops.checkpoints.contents import opened_checkpoint

    with opened_checkpoint(arguments.path, _tell) as found:
        print(_asked(found if arguments.batch is None else found.at(arguments.batch), arguments))
    if arguments.counts:
        print("uncombine: unreadable rows of files are in no checkpoint: flow.left_out has them", file=sys.stderr)
    return 0


def _asked(found: Checkpoint, arguments: argparse.Namespace) -> str:
    """The parts of a checkpoint that were asked for, as text; its steps if none was."""
    parts = dict(_parts(found, arguments))
    if not parts:
        steps = [{**asdict(step), "made_by": dict(step.made_by)} for step in found.steps]
        contents = {"path": found.path, "batch": found.batch, "steps": steps}
        return json.dumps(contents, default=str) if arguments.json else str(found)
    if arguments.json:
        values = {name: part if isinstance(part, dict) else part.to_pylist() for name, part in parts.items()}
        return json.dumps(values if len(values) > 1 else next(iter(values.values())), default=str)
    texts = {name: _text(part) for name, part in parts.items()}
    return "\n\n".join(f"{name}:\n{text}" if len(texts) > 1 else text for name, text in texts.items())


def _parts(found: Checkpoint, arguments: argparse.Namespace) -> Iterator[tuple[str, pa.Table | dict[str, Any]]]:
    if arguments.rows is not None:
        yield f"rows of step {arguments.rows}", found.rows(arguments.rows, arguments.part)
    if arguments.largest is not None:
        for step in found.steps:
            yield f"largest rows of step {step.number}", found.largest(step.number, arguments.largest)
    if arguments.sources:
        yield "sources", found.sources()
    if arguments.counts:
        yield "counts", {f"step {step.number}": dict(step.counts) for step in found.steps}


def _text(part: pa.Table | dict[str, Any]) -> str:
    if not isinstance(part, dict):
        return shown_rows(part, title="", whole=True).text()
    lines = [[name, why, f"{count:,}"] for name, some in part.items() for why, count in some.items()]
    return TablePreview(rows=lines, numbers=[False, False, True]).text()


__all__ = ["add_check", "add_checkpoint", "add_why"]


def __dir__() -> list[str]:
    return __all__
