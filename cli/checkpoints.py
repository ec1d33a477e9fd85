"""`uncombine checkpoint` and `uncombine check`: the contents of a checkpoint, and what a restart from it would do.

Guarded by tests/cli/test_command_line.py and tests/sparkops/test_restart_checks.py.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ..panes.showing import TablePreview
from .module_names import flow_at
from .parser import Parser


def add_checkpoint(parser: Parser) -> None:
    """The command `checkpoint`, with its options."""
    checkpoint = parser.command("checkpoint", _checkpoint, "show what a checkpoint holds (starts Spark)")
    checkpoint.add_argument("path", metavar="FOLDER", help="the folder of the checkpoint")
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
    from ..sparkops.checkpoints import check_restart

    restart = check_restart(flow_at(arguments.flow, "check"), arguments.checkpoint, arguments.same)
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
            print(f"\n{restart.refusal}")
    return 0 if restart.refusal is None else 1


def _checkpoint(arguments: argparse.Namespace) -> int:
    from ..sparkops.checkpoints import read_checkpoint

    checkpoint = read_checkpoint(arguments.path)
    if arguments.json:
        stages = [{**asdict(one), "watermark": one.shown_watermark} for one in checkpoint.stages]
        print(json.dumps({"path": checkpoint.path, "last_batch": checkpoint.last_batch, "stages": stages}))
        return 0
    print(f"{checkpoint.path}: last batch {checkpoint.last_batch}")
    for one in checkpoint.stages:
        print(f"\nstage {one.stage}: {one.shards} shards, {one.state_bytes:,} bytes, watermark {one.shown_watermark}")
        facts: Mapping[str, Any] = {**one.made_by, "watermark strategy": ", ".join(one.strategies)}
        lines = [[f"rows in {name}", f"{count:,}"] for name, count in one.held.items()]
        lines += [[name, str(value)] for name, value in facts.items() if name not in ("stage", "shards")]
        print(TablePreview(rows=lines, numbers=[False, False]).text())
    return 0


__all__ = ["add_check", "add_checkpoint"]


def __dir__() -> list[str]:
    return __all__
