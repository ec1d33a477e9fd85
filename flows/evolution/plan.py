"""The plan of a change: what becomes of the state of each step, as values and as lines for people.

A step is kept where the change does not concern it, and converted where its stored rows go on in other columns. A
grouping that is added at the end begins, without a history, with the panes of the step before it. Where none of this is
right for some step all are computed from the history: what a step has shown and what the next one has seen
must be the same, and a history that is played at once shows less on the way.

Guarded by tests/flows/evolution/test_evolution.py and tests/flows/evolution/test_added_steps.py.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ...combiners import Combiner
from ...combiners.expressions.expr import Expr
from ...combiners.read_repr import read_combiner
from ...errors import InvalidArgument, StateMismatch, UncombineError
from ...panes.grouping.operator import Operator
from ...panes.grouping.stage import GroupingStage
from ...panes.state.pane_type import with_pane_types_of_now
from ...windows.times import MIN_TIME
from ..fingerprint.differences import changes, free_changes, kind_of, number_of, words_of
from ..fingerprint.flow import Fingerprint
from ..flow import Flow
from ..graph import Graph, Step
from ..seeds import FREE
from ..settle import shows_again
from .conversion import Conversion
from .key_filters import added_filter

Fate = Literal["kept", "converted", "computed", "begun"]
"""The ways in which the state of a step comes to be."""

_CONVERTED = {"combiners", "trigger", "reads", "after", "shows", "stage", "code", *FREE}
"""The parts of a fingerprint that may differ where stored rows are converted; `code` only that of what is gone."""

_KIND = re.compile(r"(u?int|decimal)(?:128|256)?(?:\(?)(\d+)((?:, \d+\))?)")
"""A type of whole numbers or decimals: its kind, its width, and the scale of a decimal."""

_NAMES_ONLY = ("select", "drop")
"""The transforms after a step that leave the values of its panes as they are."""


@dataclass(frozen=True)
class StepPlan:
    """The plan for the state of one step."""

    step: Step
    made_by: Fingerprint
    """The fingerprint of the step as it is now."""
    former: Fingerprint | None
    """The fingerprint of the step in whose place it is; None if there was none."""
    fate: Fate
    lines: tuple[str, ...] = ()
    """The reasons, in words."""
    conversion: Conversion | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    """The name that each combiner had before."""
    keeps: Expr | None = None
    """The condition on the keys whose rows are kept; None means all."""

    @property
    def lets_in_more(self) -> bool:
        """True if the lateness is longer than it was; earlier versions did not note it."""
        was, now = (one.get("lateness") for one in (self.former or {}, self.made_by))
        return was is not None and now is not None and int(now) > int(was)

    def __str__(self) -> str:
        told = "; ".join(self.lines)
        return f"step {self.step.number}, {words_of(self.made_by)}: {self.fate}{': ' if told else ''}{told}"


@dataclass(frozen=True)
class Planned:
    """The plan for a whole flow."""

    steps: tuple[StepPlan, ...]
    lost: tuple[str, ...] = ()
    """The steps whose state is dropped, in words."""
    notes: tuple[str, ...] = ()
    """Sentences about the change as a whole."""
    was: tuple[Fingerprint, ...] = field(default=(), repr=False)
    """The steps of the former flow that have state, in their order."""

    @property
    def computed(self) -> bool:
        """True if the steps are computed from the history."""
        return any(one.fate == "computed" for one in self.steps)

    @property
    def former_last(self) -> Fingerprint:
        """The last step of the former flow."""
        return self.was[-1] if self.was else {}

    @property
    def same_windows(self) -> bool:
        """True if the last step has the windows of before, of which those that have expired stay as they were shown."""
        last, was = self.steps[-1].made_by, self.former_last
        if not was or number_of(was) != number_of(last):
            return False
        return all(was.get(name) == last.get(name) for name in ("window", "time"))

    def lines(self) -> Iterator[str]:
        """The plan in words, a line a step."""
        yield from map(str, self.steps)
        yield from (f"{words}: dropped" for words in self.lost)
        yield from self.notes

    def told(self, history: bool, late: int, filtered: bool = False) -> Planned:
        """The plan with what a history, or a longer lateness, does not bring back; `late` rows have been left out.

        `filtered` is true for files of a history with a filter of their own.
        Windows that have expired are in no state, and a history is played for the others.
        """
        notes = list(self.notes)
        if self.computed and not self.same_windows:
            notes.append("the windows are others, which is refused if the history has rows of some that have expired")
        if history and not self.computed:
            notes.append("history= is not read, since the state has all that is needed")
            if filtered:
                notes.append(
                    "filter= of files is no part of a flow, so rows that were read without it stay: write the "
                    "condition as where() of the flow"
                )
        if late and (history or any(one.lets_in_more for one in self.steps)):
            notes.append(
                "windows that have expired are not computed again, and rows that were left out of them as late "
                f"({late:,} so far) stay so: to have them, start the changed flow from flow.seed(history, to=) and "
                "into a new table"
            )
        return replace(self, notes=tuple(notes))


def in_mode_of(flow: Flow, former: Sequence[Fingerprint]) -> Flow:
    """The flow, whose last grouping retracts as that of before did, where its mode is left open: in a live table."""
    last = flow.stages[-1] if flow.stages else None
    was = max(former, key=number_of, default={})
    if not isinstance(last, GroupingStage) or last.open_grouping.options.get("mode") is not None:
        return flow
    if was.get("mode") != repr("retracting") or last.grouping.retracting:
        return flow
    last = replace(last, grouping=last.grouping.with_mode("retracting"))
    return replace(flow, stages=(*flow.stages[:-1], last))


def planned(
    former: Sequence[Fingerprint],
    graph: Graph,
    now: Sequence[Fingerprint],
    history: bool,
    renames: Mapping[str, str],
    lacking: Mapping[int, Collection[str]],
) -> Planned:
    """The plan for a flow whose state was made by another; raises where the change is refused, or needs a history.

    `lacking` has for each step by its number the combiners that were added without a history.
    """
    former = sorted(with_pane_types_of_now(list(former)), key=number_of)
    before = {number_of(one): one for one in former}
    pairs = zip(graph.steps, now, strict=True)
    _check_renames(former, now, renames)
    last = graph.steps[-1].number if graph.steps else 0
    steps = tuple(
        _step_plan(step, before.get(step.number), made_by, renames, history, last == step.number)
        for step, made_by in pairs
    )
    if history:
        steps = tuple(_completed(one, lacking.get(one.step.number, ())) for one in steps)
    if not history and (begun := _begun(before, steps)) is not None:
        return Planned((*steps[:-1], begun), was=tuple(former))
    lost = tuple(f"step {number}, {words_of(one)}" for number, one in before.items() if number > len(now))
    _check_shown(before, steps)
    needing = [one for one in steps if one.fate == "computed"]
    if needing:
        _check_computed(steps[-1])
    if needing and not history:
        told = "; ".join(str(one).replace(": computed: ", ": ") for one in needing)
        raise StateMismatch(
            f"the change cannot be made from the state alone, {told}: give history=, the rows that the query has read"
        )
    together = tuple(
        replace(one, fate="computed", lines=(f"with step {needing[0].step.number}",)) if one not in needing else one
        for one in (steps if needing else ())
    )
    return Planned(together or steps, lost, was=tuple(former))


def _begun(before: Mapping[int, Fingerprint], steps: Sequence[StepPlan]) -> StepPlan | None:
    """The plan for a grouping that was added after the last step; None if the change is another one."""
    if len(steps) < 2 or len(steps) != len(before) + 1 or any(one.fate == "computed" for one in steps[:-1]):
        return None
    last, old = steps[-1], steps[-2].former
    if [feed.origin for feed in last.step.feeds] != [steps[-2].step]:  # such as one over a union
        return None
    if old is None or "retracting" not in str(old.get("mode")) or kind_of(last.made_by) != "grouping":
        return None
    told = (
        f"it begins with the panes of step {len(before)} that can be retracted, and lacks those that have expired",
        "give a new table, for the former one has other rows",
    )
    return replace(last, fate="begun", lines=told)


def _check_renames(former: Sequence[Fingerprint], now: Sequence[Fingerprint], renames: Mapping[str, str]) -> None:
    """Raise unless each rename is from a combiner of before to one of now."""
    names = [{name for one in some for name, _ in one.get("combiners", ())} for some in (former, now)]
    for name, was in renames.items():
        if name not in names[1]:
            raise InvalidArgument(f"renames= names {name!r}, which is no combiner of the flow: leave it out")
        if was not in names[0]:
            raise InvalidArgument(f"renames= says that {name}= was {was!r}, and no combiner of before was called so")


def _check_computed(last: StepPlan) -> None:
    """Raise if the panes of the last grouping say not which rows they replace."""
    stage = last.step.stage
    if isinstance(stage, GroupingStage) and not stage.grouping.retracting and shows_again(stage.grouping, False):
        raise StateMismatch(
            f"mode={stage.grouping.mode!r} can show a window several times and says not which rows a pane replaces, so "
            "what was shown cannot be corrected: start the changed flow from flow.seed(history, to=)"
        )


def _step_plan(
    step: Step, old: Fingerprint | None, made_by: Fingerprint, renames: Mapping[str, str], history: bool, last: bool
) -> StepPlan:
    if old is None:
        return StepPlan(step, made_by, None, "computed", ("it is new",))
    laid_out = {**old, **{name: made_by[name] for name in (*FREE, "stage") if name in made_by}}
    laid_out = {name: value for name, value in laid_out.items() if name not in FREE or name in made_by}
    changed = [one for one in changes(laid_out, made_by) if one.text]
    filters = free_changes(old, made_by)
    if filters and history:
        return StepPlan(step, made_by, old, "computed", tuple(filters))
    free = [f"{text}: earlier rows stay as they were" for text in filters]
    keeps = added_filter(step, old, made_by) if changed and last and step.number == 1 and not history else None
    if keeps is not None and not changes({**laid_out, "steps": made_by["steps"]}, made_by):
        leave = [f"{one.text}: the keys for which it is not true leave the state" for one in changed]
        return StepPlan(step, made_by, old, "converted", (*leave, *free), keeps=keeps)
    if not changed:
        return StepPlan(step, made_by, old, "kept", tuple(free))
    if kind_of(old) == kind_of(made_by) == "grouping" and isinstance(step.stage, GroupingStage):
        converted = _converted(step, laid_out, made_by, renames, free, last and not history)
        if converted is not None:
            return converted
    told = tuple(dict.fromkeys(one.text for one in changed))
    both = "combiners" in old and "combiners" in made_by
    names = _names(dict(old["combiners"]), dict(made_by["combiners"]), renames) if both else {}
    stage = step.stage
    if both and len(names) < len(made_by["combiners"]) and isinstance(stage, GroupingStage):
        if history and not stage.grouping.window.may_be_endless:
            told += ("a new result is null for windows that had expired: flow.seed(history) has all",)
        elif not history and stage.grouping.window.may_be_endless:
            told += ("a window without an end would lack the earlier rows of a new result for ever",)
    return StepPlan(step, made_by, old, "computed", told, names=names)


def _completed(one: StepPlan, lacking: Collection[str]) -> StepPlan:
    """The plan for a step, to be computed where a combiner lacks rows that the history has."""
    since = dict.fromkeys(lacking, 0)
    short = since if one.conversion is None else one.conversion.since(since, MIN_TIME)
    if one.fate == "computed" or not short:
        return one
    told = (f"{name}= was added without a history and lacks rows of windows that began before" for name in short)
    return replace(one, fate="computed", lines=tuple(told), conversion=None)


def _converted(
    step: Step,
    old: Fingerprint,
    made_by: Fingerprint,
    renames: Mapping[str, str],
    free: Sequence[str],
    may_lack: bool,
) -> StepPlan | None:
    """The plan to convert the stored windows of a grouping; None if they have to be computed.

    With `may_lack` combiners may be added, under new names, that lack the rows of windows which are there, unless
    windows are endless.
    """
    differing = {name for name in {**old, **made_by} if old.get(name) != made_by.get(name)}
    differing -= {"filters"}
    if not differing <= _CONVERTED or not _widened(dict(old["reads"]), dict(made_by["reads"])):
        return None
    stage = step.stage
    assert isinstance(stage, GroupingStage)
    operator = stage.operator(*step.schemas)
    was, here = dict(old["combiners"]), dict(made_by["combiners"])
    names = _names(was, here, renames)
    if _other_code(old, made_by, names):
        return None
    before = {name: _former(text, names, was, operator) for name, text in was.items()}
    if None in before.values():
        return None
    fresh = old["trigger"] != made_by["trigger"]
    try:
        conversion = Conversion.of(operator, before, names, fresh)  # type: ignore[arg-type]
    except UncombineError:  # a column that a former combiner read is gone
        return None
    short = [name for name, one in conversion.lacking.items() if one.partial]
    if short and (not may_lack or stage.grouping.window.may_be_endless or not was.keys().isdisjoint(short)):
        return None
    lines = [f"{name}= is kept" if name == names[name] else f"{name}= was {names[name]}=" for name in names]
    added = [name for name in here if name not in names]
    lines += [f"{name}= is made of what is stored" for name in added if name not in short]
    lines += [f"{name}= is new, and null for windows that began before the change" for name in short]
    lines += [f"{name}= is dropped" for name in was if name not in names.values()]
    lines += ["the trigger starts fresh"] if fresh else []
    return StepPlan(step, made_by, old, "converted", (*lines, *free), conversion, names)


def _widened(was: Mapping[str, str], here: Mapping[str, str]) -> bool:
    """True if each column that is read has its type, or a larger one of the same kind."""
    return all(was[name] == kind or _larger(was[name], kind) for name, kind in here.items() if name in was)


def _larger(was: str, kind: str) -> bool:
    old, new = _KIND.fullmatch(was), _KIND.fullmatch(kind)
    if old is None or new is None or old[1] != new[1] or old[3] != new[3]:
        return False
    return int(old[2]) <= int(new[2])


def _names(was: Mapping[str, str], here: Mapping[str, str], renames: Mapping[str, str]) -> dict[str, str]:
    """The name before of each combiner that was there."""
    names = {name: renames.get(name, name) for name in here}
    names = {name: old for name, old in names.items() if was.get(old) == here[name]}
    left = {name: text for name, text in was.items() if name not in names.values()}
    for name, text in here.items():
        if name in names:
            continue
        alike = [old for old, other in left.items() if other == text]
        if len(alike) > 1:
            raise InvalidArgument(
                f"{name}={text} could be {' or '.join(f'{old}=' for old in alike)} of before: write "
                f"renames={{{name!r}: {alike[0]!r}}}"
            )
        if alike:
            names[name] = alike[0]
            del left[alike[0]]
    return {name: names[name] for name in here if name in names}


def _former(text: str, names: Mapping[str, str], was: Mapping[str, str], operator: Operator) -> Combiner | None:
    """A combiner of before by its repr: that of now which is written alike, or one of the library."""
    for name, old in names.items():
        if was[old] == text:
            return operator.grouping.combiners[name]
    return read_combiner(text)


def _other_code(old: Fingerprint, made_by: Fingerprint, names: Mapping[str, str]) -> bool:
    """True if a function of what goes on computes otherwise."""
    own: dict[str, Any] = {names.get(name, name): content for name, content in made_by["code"].items()}
    former = {**old, "code": {name: content for name, content in old["code"].items() if name in own}}
    return bool(changes(former, {**former, "code": {name: own[name] for name in former["code"]}}))


def _check_shown(before: Mapping[int, Fingerprint], steps: Sequence[StepPlan]) -> None:
    """Raise if panes were shown that a new state could not retract as they were shown."""
    last = steps[-1] if steps else None
    if last is None or (last.fate == "kept" and max(before, default=0) == last.step.number):
        return
    old = before[max(before)]
    if kind_of(old) != "grouping" or kind_of(last.made_by) != "grouping":
        raise StateMismatch(
            f"{words_of(old)} shows rows that its state does not name, so they could not be corrected: start the "
            "changed flow from flow.seed(history, to=) and into a new table"
        )
    if old["mode"] != last.made_by["mode"]:
        raise StateMismatch(
            f"the mode was {old['mode']} and is {last.made_by['mode']}, and panes of another mode cannot be corrected: "
            "keep the mode, or start the changed flow from flow.seed(history, to=)"
        )
    if "retracting" in old["mode"] and not _alike(old, last.made_by):
        raise StateMismatch(
            "the steps after the last grouping are others, and the panes that were shown went through the former ones: "
            "keep them but for select() and drop(), or start the changed flow from flow.seed(history, to=)"
        )


def _alike(old: Fingerprint, made_by: Fingerprint) -> bool:
    """True if panes reach the result as they did, but for columns that are left out."""
    ends = [
        [
            [entry["is"], entry["what"]]
            for some in one.get("after", ())
            for entry in some
            if entry["is"] not in _NAMES_ONLY
        ]
        for one in (old, made_by)
    ]
    return ends[0] == ends[1]


__all__ = ["Planned", "StepPlan", "in_mode_of", "planned"]
