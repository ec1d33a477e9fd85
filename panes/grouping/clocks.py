"""The clocks of one step: processing time, the watermark before and after the bundle, and its percentiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...triggers.program import Moment
from ...windows.times import MAX_TIME, MIN_TIME
from ..state.operator_state import OperatorState
from .compiled import CompiledGrouping


@dataclass(frozen=True)
class Clocks:
    """The readings that one step goes by; none of them is before that of the step before."""

    before: int
    """The watermark from before the bundle."""
    after: int
    """The watermark after the bundle."""
    now: int
    """The processing time."""
    output_watermark: int
    """The output watermark from before the bundle."""
    percentiles_before: Mapping[float, int]
    percentiles_after: Mapping[float, int]
    each_batch: bool
    """True where the watermark runs from the beginning to the end of time in every bundle."""
    closed: int = MIN_TIME
    """The end of the last windows that have expired under a shorter lateness."""

    @classmethod
    def of(
        cls,
        compiled: CompiledGrouping,
        state: OperatorState,
        watermark: int,
        processing_time: int,
        percentiles: Mapping[float, int],
        each_batch: bool,
    ) -> Clocks:
        """The clocks of a step from this state; a clock that would go back stays."""
        after = MAX_TIME if each_batch else max(state.watermark, watermark)
        readings = {p: percentiles.get(p, after) for p in compiled.percents}
        return cls(
            before=MIN_TIME if each_batch else state.watermark,
            after=after,
            now=max(state.processing_time, processing_time),
            output_watermark=state.output_watermark,
            percentiles_before={} if each_batch else state.percentiles,
            percentiles_after={p: max(time, state.percentiles.get(p, MIN_TIME)) for p, time in readings.items()},
            each_batch=each_batch,
            closed=state.closed,
        )

    def expired(self, compiled: CompiledGrouping, end: np.ndarray) -> np.ndarray:
        """True for windows that had expired before the bundle, by where they end."""
        expired = compiled.expiry(end) <= self.before
        return expired if self.closed == MIN_TIME else expired | (end <= self.closed)

    def closed_after(self, compiled: CompiledGrouping) -> int:
        """The end of the last windows that expired under a shorter lateness, until all of them have under this one."""
        passed = self.closed == MIN_TIME or compiled.expiry(np.array([self.closed]))[0] <= self.after
        return MIN_TIME if passed else self.closed

    @property
    def furthest_percentile(self) -> int:
        """The watermark after the bundle, or its greatest percentile if one is further."""
        return max(self.after, *self.percentiles_after.values()) if self.percentiles_after else self.after

    @property
    def of_windows(self) -> dict[str, int]:
        """The clocks that bring windows into hand."""
        clocks = {"processing": self.now}
        if not self.each_batch:
            clocks["event"] = self.after
            if self.percentiles_after:
                clocks["percentile"] = self.furthest_percentile
        return clocks

    @property
    def advance(self) -> bool:
        """True if the watermark or one of its percentiles advances in this step."""
        before = self.percentiles_before
        return self.after > self.before or any(t > before.get(p, MIN_TIME) for p, t in self.percentiles_after.items())

    @property
    def of_atoms(self) -> dict[str, int]:
        """The clocks that bring atoms into hand."""
        return {} if self.each_batch else {"event": self.after}

    def percentiles(self, compiled: CompiledGrouping, passing: bool) -> dict[float, int]:
        """The percentiles that the trigger waits for, from before the bundle or, with `passing`, after it."""
        return {percent: self._percentile(percent, passing) for percent in compiled.percents}

    def _percentile(self, percent: float, passing: bool) -> int:
        reading = self.percentiles_before.get(percent, MIN_TIME)
        if passing:
            return max(self.percentiles_after.get(percent, reading), self.after)
        return max(reading, self.before)

    def moment(self, phase: str, num: Mapping[str, np.ndarray], **more: Any) -> Moment:
        """The moment of an evaluation; only in the phase "watermark" the watermark is that after the bundle."""
        passing = phase == "watermark"
        watermark = self.after if passing else self.before

        def percentile(percent: float) -> int:
            return self._percentile(percent, passing)

        nothing = np.zeros(len(num["end"]), np.bool_)
        fields = {"got": nothing, "born": nothing, **more}
        return Moment(
            phase=phase,
            start=num["start"],
            end=num["end"],
            watermark=watermark,
            processing_time=self.now,
            percentile=percentile,
            **fields,
        )
