"""Watermarks of a shard as values for JSON, in which they are stored with its state.

Guarded by tests/sparkops/stored/test_stored_formats.py and tests/sparkops/test_union.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...errors import StateMismatch
from ...windows.times import MAX_TIME, MIN_TIME
from .watermarks import InputWatermarks, Read, Watermarks

_LATENESS = re.compile(r"[0-9]{1,19}")
"""The text of an allowed lateness, in microseconds; earlier versions did not note it."""

_IDLE_AFTER = re.compile(r"(, )?\bidle_after=(None|'[^']*')")
"""The part of the text of a strategy that names no source."""

OF_A_STEP = "the stage before"
"""The text in the place of the watermark strategy of an input whose rows are those of another step."""


def read_extra(text: bytes) -> dict[str, Any]:
    """The values that a shard stores beside its rows; raises `StateMismatch` unless they can be those of a shard."""
    try:
        extra = json.loads(text)
        marks = extra["marks"]
        several = "strategies" in extra
        inputs = extra["inputs"] if several else [marks]
        texts = extra["strategies"] if several else [extra["strategy"]]
        sources = [source for one in inputs for source in one["sources"]]
        numbers = [one[name] for one in (marks, *inputs) for name in ("least", "now")]
        numbers += [number for _, *both in sources for number in (*both, *[0] * (2 - len(both)))]
        numbers += [one.get(name, MAX_TIME) for one in inputs for name in ("hold", "idle_after", "since")]
        reads = [read for one in inputs for read in one.get("reads", [])]
        numbers += [number for _, offset, end, _ in reads for number in (offset, end)]
        numbers += [0 if extra["timer"] is None else extra["timer"]]
        right = isinstance(extra["made_by"], dict) and isinstance(extra["made_by"].get("stage"), str)
        right &= isinstance(texts, list) and isinstance(inputs, list) and len(inputs) == len(texts)
        right &= all(isinstance(one, str) for one in texts)
        right &= _LATENESS.fullmatch(extra["made_by"].get("lateness", "0")) is not None
        right &= all(isinstance(name, str | None) and len(both) == 2 for name, *both in sources)
        right &= all(isinstance(name, str) and type(idle) is bool for name, _, _, idle in reads)
        right &= all(type(number) is int and -(2**63) <= number < 2**63 for number in numbers)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        right = False
    if not right:
        raise StateMismatch(
            "the stored state of a shard has other values beside its rows than this library writes: it is damaged, so "
            "restore the checkpoint from a copy"
        )
    return dict(extra)


def stored(marks: InputWatermarks, strategies: Sequence[str]) -> dict[str, Any]:
    """The watermarks, and the strategy of each input as text.

    >>> stored(InputWatermarks((Watermarks({"a": (5, 7)}),), 5, 7), ["BoundedLag()"])
    {'strategy': 'BoundedLag()', 'marks': {'sources': [['a', 5, 7]], 'least': 5, 'now': 7}}
    """
    if len(marks.inputs) == 1:
        return {"strategy": strategies[0], "marks": _input(replace(marks.inputs[0], least=marks.least, now=marks.now))}
    inputs = [_input(one) for one in marks.inputs]
    return {"strategies": list(strategies), "inputs": inputs, "marks": {"least": marks.least, "now": marks.now}}


def restored(extra: Mapping[str, Any], inputs: Sequence[Watermarks], strategies: Sequence[str]) -> InputWatermarks:
    """The watermarks as they were stored, but for an input under another strategy, whose sources have other names.

    A strategy with another `idle_after` has the same sources, and what they have reached counts.
    """
    was = extra["strategies"] if "strategies" in extra else [extra["strategy"]]
    marks_by_input = extra["inputs"] if "inputs" in extra else [extra["marks"]]
    both = zip(inputs, marks_by_input, was, strategies, strict=True)
    watermarks = tuple(
        _restored(one, marks, _sources_as(before) == _sources_as(now)) for one, marks, before, now in both
    )
    return InputWatermarks(inputs=watermarks, least=extra["marks"]["least"], now=extra["marks"]["now"])


def together(
    several: Sequence[Mapping[str, Any]], inputs: Sequence[Watermarks], strategies: Sequence[str]
) -> InputWatermarks:
    """The watermarks of shards that were divided otherwise: the furthest that each source has reached.

    The shards of the step before count as far as all of them have come, since they are others now.

    >>> before = Watermarks.of_step(["shard 0", "shard 1"]).told([("shard 0", 5), ("shard 1", 9)], now=3)
    >>> stored_now = stored(InputWatermarks((before,), 5, 3), ["the stage before"])
    >>> together([stored_now], [Watermarks.of_step(["shard 7"])], ["the stage before"]).inputs[0].sources
    {'shard 7': (5, 3)}
    """
    each = [restored(marks, inputs, strategies) for marks in several]
    joined = tuple(
        _joined([marks.inputs[place] for marks in each], fresh, strategies[place] == OF_A_STEP)
        for place, fresh in enumerate(inputs)
    )
    least, now = max(marks.least for marks in each), max(marks.now for marks in each)
    return InputWatermarks(inputs=joined, least=least, now=now)


def _joined(several: Sequence[Watermarks], fresh: Watermarks, of_step: bool) -> Watermarks:
    sources: dict[str | None, tuple[int, int]] = {}
    for name, (time, last) in (source for marks in several for source in marks.sources.items()):
        before = sources.get(name, (time, last))
        sources[name] = max(before[0], time), max(before[1], last)
    names = fresh.sources.keys() if fresh.shards else {None: None}.keys()  # a step of a run here has no shards
    if of_step and sources and sources.keys() != names:
        times, lasts = zip(*sources.values(), strict=True)
        sources = dict.fromkeys(names, (min(times), max(lasts)))
    return replace(
        fresh,
        sources=sources,
        least=max(marks.least for marks in several),
        now=max(marks.now for marks in several),
        hold=min(marks.hold for marks in several),
        since=max(marks.since for marks in several),
        reads=max((marks.reads for marks in several), key=lambda reads: sum(read.offset for read in reads.values())),
    )


def stored_inputs(extra: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The watermarks of each input as they are stored, in which one that has not reported is a source without a time.

    >>> unheard = stored(InputWatermarks((Watermarks(since=3), Watermarks({"a": (5, 7)})), 5, 7), ["Monotonic()"] * 2)
    >>> [one["sources"] for one in stored_inputs(unheard)] == [[[None, MIN_TIME, 3]], [["a", 5, 7]]]
    True
    """
    inputs = extra["inputs"] if "inputs" in extra else [extra["marks"]]
    strategies = extra["strategies"] if "strategies" in extra else [extra["strategy"]]
    return [
        {**one, "sources": one["sources"] or [[None, MIN_TIME, one.get("since", extra["marks"]["now"])]]}
        if strategy != OF_A_STEP
        else one
        for one, strategy in zip(inputs, strategies, strict=True)
    ]


def is_idle(marks: Mapping[str, Any], source: str | None, last: int, now: int) -> bool:
    """True if a source of stored watermarks, whose last report was then, has been silent too long, or is told so."""
    told = any(name == source and idle for name, _, _, idle in marks.get("reads", ()))
    return told or (marks.get("idle_after") is not None and now - last >= marks["idle_after"])


def _sources_as(strategy: str) -> str:
    """The text of a strategy without the part that neither names its sources nor says how far they have come.

    >>> _sources_as("PerSource(column='s', lag='0 seconds', idle_after='15 seconds')")
    "PerSource(column='s', lag='0 seconds')"
    """
    return _IDLE_AFTER.sub("", strategy)


def _input(marks: Watermarks) -> dict[str, Any]:
    sources = [[name, time, last] for name, (time, last) in marks.sources.items()]
    hold = {} if marks.hold == MAX_TIME else {"hold": marks.hold}
    # For those who look into a checkpoint; a flow says it itself.
    idle = {} if marks.idle_after is None else {"idle_after": marks.idle_after}
    reads = {"reads": [[name, *read] for name, read in marks.reads.items()]} if marks.reads else {}
    since = {} if sources or marks.since == MIN_TIME else {"since": marks.since}
    return {"sources": sources, "least": marks.least, "now": marks.now, **hold, **idle, **reads, **since}


def _restored(fresh: Watermarks, marks: Mapping[str, Any], same: bool) -> Watermarks:
    sources = {name: (time, last) for name, time, last in marks["sources"]} if same else fresh.sources
    hold = marks.get("hold", MAX_TIME)
    reads = {name: Read(*read) for name, *read in marks.get("reads", [])} if same else {}
    since = marks.get("since", MIN_TIME) if same else MIN_TIME
    return replace(fresh, sources=sources, least=marks["least"], now=marks["now"], hold=hold, reads=reads, since=since)


__all__ = ["OF_A_STEP", "is_idle", "read_extra", "restored", "stored", "stored_inputs", "together"]
