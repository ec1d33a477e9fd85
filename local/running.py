"""Runs in this process: the rows of a script, or those of the sources, through any flow.

Guarded by tests/local/test_local.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import InvalidArgument
from ..flows.flow import Flow
from ..flows.flow_steps import leaves_of
from ..flows.result import Result
from ..panes.state.seed import Seed, opened_seed
from .script import check_script
from .script_run import LocalRun


def run(flow: Flow, script: Sequence[Any] | None, start: Seed | str | None = None) -> Result:
    """The result of a flow over a script; without one that of its sources, which are a script or have rows.

    With `start` the steps begin with the state of a seed.
    """
    if script is None:
        script = _own_script(flow)
    running = LocalRun(flow, start=opened_seed(start))
    return running.of_tables() if script is None else running.all(check_script(script))


def _own_script(flow: Flow) -> Sequence[Any] | None:
    """The script of which the sources of a flow were made; None if they have other rows."""
    scripts = [getattr(source, "script", None) for source, _ in leaves_of(flow)]
    first = scripts[0]
    if any(script is not first for script in scripts):
        raise InvalidArgument(
            "run() plays one script, and the sources of the flow were not made of the same one: write flow.run(script) "
            "with the entries of all of them, each with its input="
        )
    return first


__all__ = ["run"]
