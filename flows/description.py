"""A flow in words: its sources and its steps, a line or two each, as `explain` prints them.

Guarded by tests/flows/fingerprint/test_fingerprint.py and tests/local/test_local_flows.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..combiners.expressions.expr import Expr
from ..panes.transforms import Transform
from .fingerprint.flow import not_compared
from .flow import Flow, stages_of
from .transform_names import transform_names


def description(flow: Flow) -> list[str]:
    """The sources and the steps of a flow, as one or two lines of text each."""
    return _description(flow, 0, transform_names(flow))


def _description(flow: Flow, done: int, names: Mapping[int, str]) -> list[str]:
    """The lines of a flow whose first stage comes after so many others."""
    out = list[str]()
    for one in flow.source.inputs:
        out += [f"  {line}" for line in _description(one, done, names)]
        done += stages_of(one)
    joined = flow.source.stage is not None
    done += joined
    out.insert(0, f"  source: {f'stage {done}, ' if joined else ''}{flow.source.describe()}")
    if flow.settings.event_time is not None:
        out.append(f"  time: {flow.settings.event_time.value!r}")
    for number, stage in enumerate(flow.stages, done + 1):
        out += _lines(flow, stage.transforms, names)
        first, *more = stage.describe()
        out += [f"  stage {number}: {first}", *(f"  {line}" for line in more)]
        out += _unknown(flow, list(stage.code.values()))
    out += _lines(flow, flow.transforms, names)
    if flow.settings.strategy is not None:
        out.append(f"  watermark: {flow.settings.strategy!r}")
    return out


def _lines(flow: Flow, transforms: Sequence[Transform], names: Mapping[int, str]) -> list[str]:
    """The lines of the transforms that have names."""
    out = list[str]()
    for transform in transforms:
        if (name := names.get(id(transform))) is not None:
            meaning = transform.meaning(None)
            out.append(f"  {name}: {', '.join(_words(key, value) for key, value in meaning.items())}")
            out += _unknown(flow, list(meaning.values()))
    return out


def _words(key: str, value: Any) -> str:
    text = getattr(value, "__name__", None) if callable(value) and not isinstance(value, Expr) else None
    return f"{'' if key in ('function', 'predicate') else f'{key}='}{text or repr(value)}"


def _unknown(flow: Flow, values: Sequence[Any]) -> list[str]:
    """A line on what is in the functions of a stream and cannot be compared with that of an earlier run."""
    kinds = not_compared(values) if flow.source.streaming else []
    return [f"    not compared at a restart: {', '.join(kinds)}"] if kinds else []


__all__ = ["description"]
