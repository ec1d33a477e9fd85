"""A script and its fault as the Python source of a test, and as a picture.

Guarded by tests/testing/test_testing.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import pyarrow as pa

from ..errors import UncombineError
from ..flows.flow import Flow
from ..flows.graph import graph_of
from ..local.running import run
from ..local.script import Clock, Elements, Entry, Watermark
from ..plot.picture_file import save
from .check import Check, Problem
from .row_values import literal
from .script_inputs import inputs_of

WIDE = 110
"""Lines of a script are not longer than this, if they can be cut."""


def entry_text(entry: Entry) -> str:
    """An entry of a script as Python source."""
    match entry:
        case Clock(t):
            return f"uc.Clock({literal(t)})"
        case Watermark(t, source, at, name):
            options = [("source", source), ("at", at), ("input", name)]
            return f"uc.Watermark({', '.join([literal(t), *_named(options)])})"
        case Elements(rows, at, watermarks, name):
            some = ", ".join(map(entry_text, watermarks))
            more = _named([("at", at), ("input", name)]) + ([f"watermarks=[{some}]"] if some else [])
            given_rows = [dict(row) for row in (rows.to_pylist() if isinstance(rows, pa.Table) else rows)]
            short = f"uc.Elements({', '.join([literal(given_rows), *more])})"
            if len(short) <= WIDE:
                return short
            lines = [f"    {literal(row)}," for row in given_rows]
            return "\n".join(["uc.Elements([", *lines, f"]{''.join(f', {one}' for one in more)})"])


def _named(options: Sequence[tuple[str, Any]]) -> list[str]:
    return [f"{name}={literal(value)}" for name, value in options if value is not None]


def source_of(check: Check, script: Sequence[Entry], problem: Problem, name: str) -> str:
    """The source of a test that fails as long as the fault is there."""
    lines = ["    script = ["]
    for entry in script:
        lines += [f"        {line}" for line in f"{entry_text(entry)},".split("\n")]
    lines += ["    ]"]
    allowed = f", allow={tuple(check.allow)!r}" if check.allow else ""
    weight = "" if check.weight in (None, "diff") else f", weight={literal(check.weight)}"
    if problem.kind == "spark":
        lines += [f"    uc.testing.check_script(script, {name}, expected, spark=spark{allowed})"]
    elif problem.kind == "expected":
        lines += [f"    uc.testing.check_script(script, {name}, expected{allowed})"]
    elif problem.kind == "evolution":
        lines += [f"    uc.testing.check_evolution(before, {name}, expected, script=script)"]
    else:
        lines += [f"    result = {name}.run(script)"]
    if problem.kind in ("rows", "negative") and not problem.rows:
        lines += [f"    uc.testing.assert_rows(result, []{weight})"]
    elif problem.kind in ("rows", "negative"):
        lines += ["    uc.testing.assert_rows(", "        result,", "        ["]
        lines += [f"            {literal(row)}," for row in problem.rows or ()]
        tolerance = "" if check.tolerance == 1e-9 else f", tolerance={check.tolerance!r}"
        lines += ["        ]" + weight + tolerance + ",", "    )"]
    body = "\n".join(lines)
    head = ["import datetime"] * ("datetime." in body) + ["from decimal import Decimal"] * ("Decimal(" in body)
    head += ["", "import uncombine as uc"]
    fixtures = "spark" if problem.kind == "spark" else ""
    return "\n".join([*head, "", "", f"def test_{name}({fixtures}):", body, ""]).lstrip("\n")


def draw(flow: Flow, script: Sequence[Entry], path: str | PathLike[str]) -> bool:
    """Draw a script and the panes that it gives; False if that is not possible here."""
    panes = replace(flow, transforms=())
    times = {one.name: one.time for one in inputs_of(graph_of(flow))}
    try:
        result = run(panes, list(script))
        save(path, result, [_with_event_time(entry, times) for entry in script], time="event_time")
    except (ModuleNotFoundError, UncombineError):
        return False
    return True


def _with_event_time(entry: Entry, times: dict[str | None, str]) -> Entry:
    """The entry with the event times of its rows in one column, whatever input they are of."""
    if not isinstance(entry, Elements):
        return entry
    name = times[entry.input if entry.input in times else None]
    rows = [{"event_time": row.get(name), **{k: v for k, v in row.items() if k != name}} for row in entry.rows]
    return replace(entry, rows=rows)


__all__ = ["draw", "entry_text", "source_of"]
