"""The sources of a step of a checkpoint in words: who holds its watermark, who is idle, and who is silent.

Guarded by tests/sparkops/test_reasons.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ...flows.evolution.former_marks import input_name
from ...windows import timestamp
from .contents import Checkpoint, StoredStep
from .instants import text_of

_OF_A_STEP = "the step before"


@dataclass(frozen=True)
class SourcesOfStep:
    """The sources of a step, and of the steps before it, as `Checkpoint.sources` has them.

    >>> one = {"step": 1, "input": 1, "source": "a", "holds": True, "idle": False, "last_report": None}
    >>> SourcesOfStep([{**one, "watermark": None}], number=1).holder()
    ' because source a has not reported a time yet'
    """

    rows: Sequence[Mapping[str, Any]]
    number: int
    inputs: Sequence[str] | None = None
    """The inputs of the step that has the source which holds the watermark, if it has several."""

    @classmethod
    def of(cls, state: Checkpoint, step: StoredStep) -> SourcesOfStep:
        rows = [row for row in state.sources().to_pylist() if row["step"] <= step.number]  # few
        holding = cls(rows, step.number)._holding()
        number = holding[0]["step"] if holding else step.number
        inputs = next((one.made_by.get("inputs") for one in state.steps if one.number == number), None)
        return cls(rows, step.number, inputs)

    def _holding(self) -> list[Mapping[str, Any]]:
        rows = [row for row in self.rows if row["holds"]]
        own = [row for row in rows if row["step"] == self.number]
        if own and all(row["source"] == _OF_A_STEP for row in own):
            before = [row for row in rows if row["step"] < self.number and row["source"] != _OF_A_STEP]
            own = [row for row in before if row["watermark"] == own[0]["watermark"]] or before[-1:]
        return own

    def _named(self) -> list[Mapping[str, Any]]:
        return [row for row in self.rows if row["source"] != _OF_A_STEP]

    def holder(self) -> str:
        """The source that holds the watermark, as the end of a sentence; through the steps before it."""
        own = self._holding()
        if not own:
            return self._all_idle()
        first, others = own[0], len(own) - 1
        inputs = {row["input"] for row in self.rows if row["step"] == first["step"]}
        of = "" if self.inputs is None else input_name(self.inputs[first["input"] - 1])
        name = "its source" if first["source"] in (None, of) else f"source {first['source']}"
        where = f" of input {first['input']}{f' ({of})' if of else ''}" if len(inputs) > 1 else ""
        more = f" and {others} more have" if others else " has"
        if first["watermark"] is None:
            return f" because {name}{where}{' and others have' if others else ' has'} not reported a time yet"
        since = "" if first["last_report"] is None else f" since {text_of(first['last_report'])}"
        latest = max((row["last_report"] for row in self.rows if row["last_report"] is not None), default=None)
        if since and latest is not None and latest > first["last_report"]:
            since += f" (another one had until {text_of(latest)})"
        left = 0 if first["end"] is None else first["end"] - first["offset"]
        behind = f", and is {left:,} offsets behind its end" if left else ""
        return f" because {name}{where}{more} had no later time{since}{behind}"

    def _all_idle(self) -> str:
        """That no source holds the watermark, since all of them are idle."""
        rows = self._named()
        if not rows or not all(row["idle"] for row in rows):
            return ""
        since = text_of(max(row["last_report"] for row in rows))
        are = "its source is" if len(rows) == 1 else f"all its {len(rows):,} sources are"
        return f" because {are} idle, the last one since {since}, and moves with their next row"

    def beside(self, time: datetime) -> str:
        """That no source has come to a time yet, and which are idle, as the end of a sentence."""
        rows, said = self._named(), ""
        if len(rows) > 1 and all(row["watermark"] is None or row["watermark"] < time for row in rows):
            said = f"; none of its {len(rows):,} sources has come that far yet"
        idle = [row for row in rows if row["idle"]]
        if not idle or len(idle) == len(rows):
            return said
        first = min(idle, key=lambda one: (one["last_report"] is not None, one["last_report"]))
        are = f"source {first['source']} is" if len(idle) == 1 else f"{len(idle):,} sources are"
        such = "" if len(idle) == 1 else f", such as {first['source']}"
        last = first["last_report"]
        since = " and has not reported a time yet" if last is None else f", with the last time at {text_of(last)}"
        return f"{said}; {are} idle{such}{since}"

    def silent(self, start: int, key: Mapping[str, Any]) -> str:
        """The source that a key names, else that one of those before the window which is silent longest."""
        rows = [row for row in self._named() if row["last_report"] is not None]
        if len({row["source"] for row in rows}) < 2:
            return ""
        named = [row for row in rows if row["source"] in map(str, key.values())]
        behind = [row for row in rows if row["watermark"] is None or timestamp(row["watermark"]) < start]
        row = min(named or behind, key=lambda one: one["last_report"], default=None)
        if row is None:
            return ""
        mark = "none" if row["watermark"] is None else text_of(row["watermark"])
        idle = ", and is idle" if row["idle"] else ""
        last = text_of(row["last_report"])
        return f"; source {row['source']}, whose watermark is {mark}, has reported last at {last}{idle}"


__all__ = ["SourcesOfStep"]
