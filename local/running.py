"""Runs in this process: the rows of a script, or those of the sources, through any flow.

Guarded by tests/local/test_local.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import InvalidArgument
from ..flows.flow import Flow
from ..flows.flow_steps import leaves_of
from ..flows.graph import graph_of
from ..flows.result import Result
from ..panes.state.seed import Seed, opened_seed
from .final_run import final_source
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


def run_together(flows: Sequence[Flow], script: Sequence[Any] | None) -> list[Result]:
    """The result of each of several flows, whose equal steps are one; large tables go through each by itself."""
    script = _own_script(*flows) if script is None else script
    if script is None and all(final_source(graph_of(flow)) for flow in flows):
        return [LocalRun(flow).of_tables() for flow in flows]
    running = LocalRun(flows[0], beside=flows[1:])
    if script is None:
        running.play_tables()
    else:
        running.play_script(check_script(script))
    return running.results()


def _own_script(*flows: Flow) -> Sequence[Any] | None:
    """The script of which the sources of flows were made; None if they have other rows."""
    scripts = [getattr(source, "script", None) for flow in flows for source, _ in leaves_of(flow)]
    first = scripts[0]
    if any(script is not first for script in scripts):
        raise InvalidArgument(
            "run() plays one script, and the sources were not made of the same one: write flow.run(script) "
            "with the entries of all of them, each with its input="
        )
    return first


__all__ = ["run", "run_together"]
