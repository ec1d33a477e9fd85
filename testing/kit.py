"""The search for a script on which a flow leaves other rows than expected.

Guarded by tests/testing/test_testing.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from os import PathLike
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis.strategies import SearchStrategy

from ..errors import FlowViolation, InvalidArgument
from ..flows.flow import Flow
from ..flows.graph import graph_of
from ..local.script import Elements, Entry
from .check import REMEDY, Allowed, Check, Problem, Replay
from .script_inputs import inputs_of
from .scripts import Script, changelogs, require_number, scripts
from .smaller import MOST_RUNS, Smaller
from .source_text import draw as draw_picture
from .source_text import source_of
from .survivors import Unclear, unseen_input

_RUN, _SEEDS = 10, 1_000_003
"""The number of scripts that are drawn with one seed, and a number above those of the seeds of a search."""

_ON_SPARK = 20
"""The number of replays on Spark that make a script smaller."""


class _Enough(BaseException):
    """Ends a search: hypothesis passes on an error that is no `Exception`."""


def search(
    flow: Flow,
    expected: Callable[..., Any],
    *,
    examples: int,
    seed: int | None,
    tolerance: float,
    name: str,
    draw: str | PathLike[str] | None,
    replay: Replay | None,
    replays: int,
    allow: Collection[Allowed],
    made: Callable[..., Check],
    **options: Any,
) -> None:
    """Raise `FlowViolation`, with the smallest script found, if a flow leaves other rows than expected."""
    __tracebackhide__ = True
    require_number("examples", examples)
    check = made(flow=flow, expected=expected, tolerance=tolerance, replay=replay, allow=allow)
    inputs = list(inputs_of(graph_of(flow)))
    drawn = changelogs if any(one.diff is not None for one in inputs) else scripts
    passed, reasons = list[Script](), list[str]()
    local = made(flow=flow, expected=expected, tolerance=tolerance, replay=None, allow=allow)
    failure = _first(local, drawn(flow, **options), examples, seed, passed, reasons)
    runs = MOST_RUNS
    if failure is None and not passed:
        raise InvalidArgument(
            f"no script could be compared, because {reasons[-1] if reasons else 'none was drawn'}: {REMEDY}"
        )
    unseen = unseen_input(flow, passed, frozenset(allow)) if failure is None and allow else None
    if unseen is not None:
        which = "" if unseen.name is None else f" of the input {unseen.name!r}"
        raise InvalidArgument(
            f"no row{which} in any script counts, so nothing was compared: all were left out for reasons of "
            f"allow={tuple(allow)!r} or were late, so look at the steps before, and at the times and the trigger"
        )
    if failure is None and replay is not None:
        largest = sorted(passed, key=_rows_in)[-replays:]
        faults = ((script, check.replayed(script)) for script in largest)
        failure = next(((script, problem) for script, problem in faults if problem is not None), None)
        local, runs = check, _ON_SPARK
    if failure is None:
        return

    def fault(script: Script) -> Problem | None:
        try:
            return local.problem(script)
        except Unclear:
            return None

    script, problem = Smaller(fault, inputs, runs).run(*failure)
    source = source_of(check, script, problem, name)
    lines = [problem.text, *problem.lines, "", "The smallest script found, as a test:", "", source]
    violation = FlowViolation("\n".join(lines), script, source, partial(draw_picture, flow, script))
    if draw is not None:
        violation.draw(draw)
    raise violation from problem.cause


def _rows_in(script: Sequence[Entry]) -> int:
    return sum(len(entry.rows) for entry in script if isinstance(entry, Elements))


def _first(
    check: Check,
    strategy: SearchStrategy[Script],
    examples: int,
    seed: int | None,
    passed: list[Script],
    reasons: list[str],
) -> tuple[Script, Problem] | None:
    """The first of so many scripts that shows a fault; scripts without one are added to `passed`."""
    failures: list[tuple[Script, Problem]] = []

    def test(script: Script) -> None:
        try:
            problem = check.problem(script)
        except Unclear as unclear:
            reasons.append(str(unclear))
            return
        if problem is not None:
            failures.append((script, problem))
            raise _Enough
        passed.append(script)

    # Hypothesis makes many scripts of a run out of those before, so several runs see more.
    for number, start in enumerate(range(0, examples, _RUN)):
        some = settings(
            max_examples=min(_RUN, examples - start), deadline=None, database=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        try:
            seeded((0 if seed is None else seed + 1) * _SEEDS + number)(some(given(strategy)(test)))()
        except _Enough:
            return failures[0]
    return None


__all__ = ["search"]
