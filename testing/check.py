"""The check of a flow on one script: the rows that are left must be those expected of the rows that survive.

Guarded by tests/testing/test_testing.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import pyarrow as pa

from ..errors import FlowViolation, InvalidArgument
from ..flows.flow import Flow
from ..flows.flow_steps import weight_of
from ..flows.graph import Step, graph_of
from ..flows.result import Result
from ..flows.settle import shows_again
from ..local.running import run
from ..local.script import Elements, Entry, Watermark, check_script
from ..local.script_run import LocalRun
from ..panes.grouping.grouping import DIFF
from ..panes.grouping.stage import GroupingStage
from .row_values import RemainingRows, differences, expected_rows, left_of, literal, unit_of
from .script_inputs import inputs_of
from .survivors import Unclear, run_traced

Replay = Callable[[Flow, Sequence[Entry]], pa.Table]
"""A function that plays the rows of a script through a flow on another engine, up to the end of the input."""

Allowed = Literal["bad", "unassigned", "finished"]
"""A reason to leave a row out that an expectation can allow: the row is then not expected to count."""

REMEDY = "expected= needs the rows that were accepted, so give late=False, or check the steps before it by themselves"

MOST = 5
"""So many rows of each kind are written in a message."""


@dataclass(frozen=True)
class Problem:
    """A fault of a flow on a script."""

    kind: str
    text: str
    lines: tuple[str, ...]
    rows: list[dict[str, Any]] | None = None
    """The rows that are expected to be left, if this is the fault."""
    cause: Exception | None = None


@dataclass(frozen=True)
class Check:
    """A flow, and the function that gives its right result."""

    flow: Flow
    expected: Callable[..., Any]
    tolerance: float
    replay: Replay | None = None
    allow: Collection[Allowed] = ()

    def __post_init__(self) -> None:
        _check_allowed(self.allow)
        if not isinstance(self.flow, Flow):
            raise InvalidArgument(f"check_flow() takes a flow, but was given {self.flow!r}")
        if not callable(self.expected):
            raise InvalidArgument(f"expected= must be a function of a DataFrame, but is {self.expected!r}")
        graph = graph_of(self.flow)
        LocalRun(self.flow)
        for step in graph.steps:
            if not step.stage.drops_late:
                raise InvalidArgument(
                    "late='duplicate' shows late rows in windows of their own, which expected= cannot know: check the "
                    "flow with late='drop'"
                )
        for feed in graph.ends:
            stage = feed.origin.stage if isinstance(feed.origin, Step) else None
            if not isinstance(stage, GroupingStage) or stage.grouping.retracting:
                continue
            if shows_again(stage.grouping, self.flow.settings.each_batch):
                raise InvalidArgument(
                    f"the last grouping can show a window several times in mode={stage.grouping.mode!r}, so its panes "
                    "leave more than one row for it: check the flow with mode='retracting'"
                )
        inputs = list(inputs_of(graph))
        if self.replay is not None:
            for one in inputs:
                if one.processing_time is None or one.strategy is None:
                    raise InvalidArgument(
                        "spark= replays the rows, and a replay needs watermark= and processing_time= at each source of "
                        "the flow: give both to uc.flow()"
                    )

    @property
    def weight(self) -> str | None:
        """The column of weights of the result."""
        name = weight_of(self.flow)
        return name if name in self.flow.schema.names else None

    def problem(self, script: Sequence[Entry]) -> Problem | None:
        """The fault that a script shows; raises `Unclear` if the rows that survive are not known."""
        try:
            traced = run_traced(self.flow, script, frozenset(self.allow))
        except Unclear:
            raise
        except Exception as error:
            return Problem(kind="error", text=f"the flow raised {type(error).__name__}: {error}", lines=(), cause=error)
        left = left_of(traced.result.panes, self.weight)
        frames = traced.frames
        try:
            answer = self.expected(frames[None] if None in frames else {str(n): frame for n, frame in frames.items()})
        except Exception as error:
            return Problem(
                kind="expected", text=f"expected= raised {type(error).__name__}: {error}", lines=(), cause=error
            )
        wanted = expected_rows(answer, left)
        difference = compared(left, wanted, self.tolerance, self.tolerance * unit_of(frames.values()))
        if difference is not None:
            return replace(difference, lines=(*difference.lines, *_unexplained(traced.unexplained)))
        return None if self.replay is None else self.replayed(script)

    def replayed(self, script: Sequence[Entry]) -> Problem | None:
        """The difference between the rows of a run in this process and those of a replay on Spark."""
        assert self.replay is not None
        rows = [entry for entry in script if isinstance(entry, Elements) and len(entry.rows)]
        if not rows:
            return None
        here = run(self.flow, [*rows, Watermark(None)]).panes.drop_columns(["step"])
        there = self.replay(self.flow, rows)
        one, other = (Counter(map(repr, table.select(here.column_names).to_pylist())) for table in (here, there))
        if one == other:
            return None
        lines = [*_some("only in this process", list((one - other).elements()))]
        lines += _some("only in the replay on Spark", list((other - one).elements()))
        return Problem(
            kind="spark", text="a replay on Spark gives other rows than a run in this process", lines=tuple(lines)
        )


def _check_allowed(allow: object) -> None:
    """Raise unless a user allows reasons that can be allowed."""
    words = get_args(Allowed)
    if isinstance(allow, str) or not isinstance(allow, Collection):
        raise InvalidArgument(f"allow= takes a tuple of reasons such as ('bad',), but is {allow!r}")
    for word in allow:
        if word not in words:
            more = ": late rows are never expected to count" if word == "late" else ""
            raise InvalidArgument(f"allow= takes some of {words}, but has {word!r}{more or ': leave it out'}")


def _unexplained(counts: Mapping[tuple[int, str], int]) -> list[str]:
    """Lines about rows that are expected to count, and that a step left out."""
    return [
        f"  stage {number} left out as {why}: {count} {'row' if count == 1 else 'rows'} (give allow=({why!r},) if they "
        "are not expected to count)"
        for (number, why), count in sorted(counts.items())
    ]


def compared(left: RemainingRows, wanted: RemainingRows, tolerance: float, least: float) -> Problem | None:
    """The fault of the rows that are left, also on the way there, if other rows are expected.

    Floats may differ by the part `tolerance` of themselves, or by `least`.
    """
    rows = [wanted.texts(row) for row in wanted.rows.elements()]
    if left.negative is not None:
        step, below = left.negative
        text = f"after entry {step} of the script a row has been retracted more often than given"
        return Problem(kind="negative", text=text, lines=(f"  row: {literal(left.texts(below))}",), rows=rows)
    shown = left.only(wanted.names)
    missing, extra = differences(shown, wanted, tolerance, least)
    if not missing and not extra:
        return None
    lines = [
        *_some("expected", [literal(shown.texts(row)) for row in wanted.rows.elements()]),
        *_some("left", [literal(shown.texts(row)) for row in shown.rows.elements()]),
        *_some("missing", [literal(shown.texts(row)) for row in missing]),
        *_some("too much", [literal(shown.texts(row)) for row in extra]),
    ]
    return Problem(kind="rows", text="the flow leaves other rows than expected", lines=tuple(lines), rows=rows)


def _some(what: str, rows: Sequence[str]) -> list[str]:
    more = [f"  {what}: and {len(rows) - MOST} more"] if len(rows) > MOST else []
    return [f"  {what}: {row}" for row in rows[:MOST]] + more or [f"  {what}: no rows"]


def check_one(check: Check, script: Sequence[Entry]) -> None:
    """Raise `FlowViolation` if a script shows a fault, and `InvalidArgument` if it cannot be compared."""
    __tracebackhide__ = True
    entries = check_script(script)
    try:
        problem = check.problem(entries)
    except Unclear as unclear:
        raise InvalidArgument(f"the script cannot be compared, because {unclear}: {REMEDY}") from None
    if problem is not None:
        raise FlowViolation("\n".join([problem.text, *problem.lines]), entries) from problem.cause


def assert_rows(result: Result, rows: Any, *, weight: str = DIFF, tolerance: float = 1e-9) -> None:
    """Raise `FlowViolation` unless the rows that are left of a result are these, in any order.

    Only the columns of `rows` are compared; `window.start` names a part of the column `window`. The rows are also
    compared after each entry of the script: none may have been retracted more often than given.

    Parameters
    ----------
    result
        The result of `flow.run(script)`.
    rows
        A DataFrame, an Arrow table, or dicts. Times may be texts.
    weight
        The column of weights.
    tolerance
        Floats are equal if they differ by this part of the larger one, or by this much.

    Examples
    --------
    >>> import uncombine as uc
    >>> script = [uc.Elements([{"ts": 0, "x": 5}]), uc.Watermark(None)]
    >>> result = uc.flow(script).window(uc.Fixed("1 minute")).combine(total=uc.Sum("x")).run()
    >>> uc.testing.assert_rows(result, [{"window.start": "1970-01-01T00:00:00Z", "total": 5}])
    """
    __tracebackhide__ = True
    left = left_of(result.panes, weight if weight in result.panes.column_names else None)
    problem = compared(left, expected_rows(rows, left), tolerance, tolerance)
    if problem is not None:
        raise FlowViolation("\n".join([problem.text, *problem.lines]))


__all__ = ["Allowed", "Check", "Problem", "Replay", "assert_rows", "check_one"]
