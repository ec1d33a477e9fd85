"""The clocks of one step of an operator over single rows, and the state after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...windows.times import MAX_TIME, MIN_TIME
from ..state.operator_state import Counts, OperatorState
from ..state.store import Store


@dataclass(frozen=True)
class Clocks:
    """The readings that one step goes by; none of them is before that of the step before.

    >>> import uncombine as uc
    >>> from uncombine.panes.rows.clocks import Clocks
    >>> from uncombine.panes.state.operator_state import OperatorState
    >>> Clocks.of(OperatorState({}, watermark=7), watermark=5, processing_time=9, each_batch=False)
    Clocks(before=7, after=7, now=9, each_batch=False)
    """

    before: int
    """The watermark from before the bundle."""
    after: int
    """The watermark after the bundle."""
    now: int
    """The processing time."""
    each_batch: bool = False
    """True where the watermark runs from the beginning to the end of time in every bundle."""

    @classmethod
    def of(cls, state: OperatorState, watermark: int, processing_time: int, each_batch: bool) -> Clocks:
        """The clocks of a step from this state; a clock that would go back stays."""
        now = max(state.processing_time, processing_time)
        if each_batch:
            return cls(before=MIN_TIME, after=MAX_TIME, now=now, each_batch=True)
        return cls(before=state.watermark, after=max(state.watermark, watermark), now=now)

    @property
    def leaves(self) -> dict[str, int]:
        """The clocks by which rows leave the state; none where the watermark runs again in every bundle."""
        return {} if self.each_batch else {"event": self.after}

    def state(
        self, state: OperatorState, stores: Mapping[str, Store | None], counts: Counts, hold: int
    ) -> OperatorState:
        """The state after the step; `hold` is the output watermark that the operator allows."""
        state = replace(state, stores=stores, processing_time=self.now, counts=state.counts + counts)
        if self.each_batch:
            return state
        return replace(state, watermark=self.after, output_watermark=max(state.output_watermark, hold))


__all__ = ["Clocks"]
