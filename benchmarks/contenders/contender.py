"""One system in a process of its own, which does tasks when it is told to: a JSON line in, a JSON line out.

`of_*.py` beside this file give their tasks to `serve`. They run in the environment of their system, so this file
and they import nothing of the project's but what that environment has.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

THREADS = 2
MINUTE, GAP = 60_000_000, 30_000_000
"""The window, and the gap of sessions, in microseconds. Rows that are a whole gap apart are in two sessions."""


@dataclass(frozen=True)
class Task:
    """Something that is timed over the files of a folder, and what its result says, which is not."""

    run: Callable[[str], Any]
    facts: Callable[[Any], tuple[int, float, float]] | None = None
    """The number of rows of the result, the sum of its column s, and the greatest s."""


def serve(package: str, tasks: Mapping[str, Task]) -> None:
    """Say which version this is, then do what each line of the input asks for."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a system prints is not an answer
    _say(out, {"version": version(package), "tasks": list(tasks)})
    for line in sys.stdin:
        asked = json.loads(line)
        task = tasks[asked["task"]]
        started = time.perf_counter()
        result = task.run(asked["folder"])
        seconds = time.perf_counter() - started
        facts = task.facts(result) if asked["facts"] and task.facts else None
        _say(out, {"seconds": seconds, "facts": facts})


def _say(out: Any, what: Any) -> None:
    out.write(json.dumps(what) + "\n")
    out.flush()
