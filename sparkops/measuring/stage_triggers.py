"""The triggers of the stages of flows, by which metrics tell their costs.

Guarded by tests/sparkops/measuring/test_batch_points.py.
"""

from __future__ import annotations

from ...panes.grouping.stage import GroupingStage
from ...panes.stage import Stage

LONGEST = 120
"""The characters of a trigger that a metric tells."""


class StageTriggers:
    """The triggers of the stages of the flows of this process, as text, by the names of their observed metrics.

    >>> StageTriggers()["uncombine flow 1"]
    ''
    """

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def name(self, metric: str, stage: Stage) -> None:
        """Remember the trigger of a stage; a step without windows has none."""
        if isinstance(stage, GroupingStage):
            self._texts[metric] = repr(stage.grouping.effective_trigger)[:LONGEST]

    def __getitem__(self, metric: str) -> str:
        return self._texts.get(metric, "")


TRIGGERS = StageTriggers()
"""The triggers of this process."""

__all__ = ["TRIGGERS", "StageTriggers"]
