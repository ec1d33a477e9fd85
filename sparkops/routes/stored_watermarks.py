"""Watermarks of a shard as values for JSON, in which they are stored with its state.

Guarded by tests/sparkops/test_stored_formats.py and tests/sparkops/test_union.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...panes.watermarks import InputWatermarks, Watermarks


def stored(marks: InputWatermarks, strategies: Sequence[str]) -> dict[str, Any]:
    """The watermarks, and the strategy of each input as text.

    >>> stored(InputWatermarks((Watermarks({"a": (5, 7)}),), 5, 7), ["BoundedLag()"])
    {'strategy': 'BoundedLag()', 'marks': {'sources': [['a', 5, 7]], 'least': 5, 'now': 7}}
    """
    if len(marks.inputs) == 1:
        return {"strategy": strategies[0], "marks": _input(replace(marks.inputs[0], least=marks.least, now=marks.now))}
    inputs = [_input(one) for one in marks.inputs]
    return {"strategies": list(strategies), "inputs": inputs, "marks": {"least": marks.least, "now": marks.now}}


def restored(found: Mapping[str, Any], inputs: Sequence[Watermarks], strategies: Sequence[str]) -> InputWatermarks:
    """The watermarks as they were stored, but for an input under another strategy, whose sources have other names."""
    was = found["strategies"] if "strategies" in found else [found["strategy"]]
    kept = found["inputs"] if "inputs" in found else [found["marks"]]
    both = zip(inputs, kept, was, strategies, strict=True)
    known = tuple(_restored(one, marks, before == now) for one, marks, before, now in both)
    return InputWatermarks(known, found["marks"]["least"], found["marks"]["now"])


def _input(marks: Watermarks) -> dict[str, Any]:
    sources = [[name, time, last] for name, (time, last) in marks.sources.items()]
    return {"sources": sources, "least": marks.least, "now": marks.now}


def _restored(fresh: Watermarks, marks: Mapping[str, Any], same: bool) -> Watermarks:
    sources = {name: (time, last) for name, time, last in marks["sources"]} if same else fresh.sources
    return replace(fresh, sources=sources, least=marks["least"], now=marks["now"])


__all__ = ["restored", "stored"]
