"""A flow in words: its sources and its steps, a line or two each, as `explain` prints them.

Guarded by tests/flows/fingerprint/test_fingerprint.py and tests/local/test_local_flows.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..combiners.expressions.expr import Expr
from ..panes.transforms import Transform
from .fingerprint.flow import not_compared
from .flow import Flow
from .flow_steps import stages_of
from .transform_names import transform_names


@dataclass(frozen=True)
class Words:
    """A source or a step in words: its name, a line, and those below it."""

    name: str
    line: str
    below: Sequence[str] = ()
    keeps_state: bool = False
    """True for a step that keeps state."""


@dataclass(frozen=True)
class FlowWords:
    """The words of a flow: its source, the flows that the source is made of, and its steps in their order."""

    source: Words
    inputs: Sequence[FlowWords]
    steps: Sequence[Words]
    watermark: Sequence[str] = ()
    """The line about the watermark of the source, if it makes one."""

    def lines(self) -> list[str]:
        """The words as lines of text."""
        lines = [f"  {line}" for one in self.inputs for line in one.lines()]
        steps = [text for step in self.steps for text in (f"{step.name}: {step.line}", *step.below)]
        return [
            f"  {self.source.name}: {self.source.line}",
            *lines,
            *(f"  {text}" for text in (*self.source.below, *steps, *self.watermark)),
        ]


def description(flow: Flow) -> list[str]:
    """The sources and the steps of a flow, as one or two lines of text each."""
    return words_of(flow).lines()


def words_of(flow: Flow) -> FlowWords:
    """The sources and the steps of a flow, in words."""
    return _words_of(flow, 0, transform_names(flow))


def _words_of(flow: Flow, done: int, names: Mapping[int, str]) -> FlowWords:
    """The words of a flow whose first stage comes after so many others."""
    inputs = list[FlowWords]()
    for one in flow.source.inputs:
        inputs.append(_words_of(one, done, names))
        done += stages_of(one)
    joined = flow.source.stage is not None
    done += joined
    source = _source_words(flow, done if joined else None)
    steps = list[Words]()
    for number, stage in enumerate(flow.stages, done + 1):
        steps += _of_transforms(flow, stage.transforms, names)
        first, *more = stage.describe()
        unknown = _unknown(flow, list(stage.code.values()))
        steps.append(Words(f"stage {number}", first, (*more, *unknown), keeps_state=True))
    steps += _of_transforms(flow, flow.transforms, names)
    strategy = flow.settings.strategy
    return FlowWords(source, inputs, steps, () if strategy is None else (f"watermark: {strategy!r}",))


def _source_words(flow: Flow, stage: int | None) -> Words:
    """The source of a flow, with the number of its stage if it joins others, and the event times that it computes."""
    place, computed = "" if stage is None else f"stage {stage}, ", flow.settings.event_time
    below = () if computed is None else (f"time: {computed.value!r}",)
    if (joining := flow.source.stage) is not None:
        below = (*joining.describe()[1:], *_unknown(flow, list(joining.code.values())), *below)
    return Words("source", f"{place}{flow.source.describe()}", below, keeps_state=stage is not None)


def _of_transforms(flow: Flow, transforms: Sequence[Transform], names: Mapping[int, str]) -> list[Words]:
    """The words of the transforms that have names."""
    out = list[Words]()
    for transform in transforms:
        if (name := names.get(id(transform))) is not None:
            meaning = transform.meaning(None)
            line = ", ".join(_words(key, value) for key, value in meaning.items())
            out.append(Words(name, line, _unknown(flow, list(meaning.values()))))
    return out


def _words(key: str, value: Any) -> str:
    text = getattr(value, "__name__", None) if callable(value) and not isinstance(value, Expr) else None
    return f"{'' if key in ('function', 'predicate') else f'{key}='}{text or repr(value)}"


def _unknown(flow: Flow, values: Sequence[Any]) -> list[str]:
    """A line on what is in the functions of a stream and cannot be compared with that of an earlier run."""
    kinds = not_compared(values) if flow.source.streaming else []
    return [f"  not compared at a restart: {', '.join(kinds)}"] if kinds else []


__all__ = ["FlowWords", "Words", "description", "words_of"]
