"""Warnings of streams that leave out many rows as late: once a query.

Guarded by tests/sparkops/test_late_share.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from ..panes.watermarks.late_share import late_words


@dataclass
class RunningQuery:
    """The rows of the stages of a query so far, and the late ones among them, by the names of their metrics."""

    rows: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    told: bool = False


class LateRows:
    """The stages whose late rows are left out, by the names of their metrics, and their counts in each run of a query.

    >>> late = LateRows()
    >>> late.watch("uncombine flow 1", 1)
    >>> counts = {"rows_in": 200, "rows_dropped": 3}
    >>> observed = {"uncombine flow 1": {"counts": counts}}
    >>> late.warning({"id": "q", "runId": "r", "batchId": 0, "observedMetrics": observed})[:64]
    "the query 'q': stage 1 has left out 3 of 200 rows as late: give "
    """

    def __init__(self) -> None:
        self._stages: dict[str, int] = {}
        self._running: dict[str, RunningQuery] = {}
        self._lock = Lock()

    def watch(self, metric: str, stage: int) -> None:
        """Count the late rows of the stage with this metric."""
        self._stages[metric] = stage

    def warning(self, progress: Mapping[str, Any], name: str | None = None) -> str | None:
        """Count the rows of a batch; the warning if the query of this name now needs one, and has had none."""
        observed = progress.get("observedMetrics", {})  # absent in a query that observes nothing
        with self._lock:
            query = self._running.setdefault(progress["runId"], RunningQuery())
            for metric in sorted(self._stages.keys() & observed.keys()):
                counts = observed[metric].get("counts") or {}
                query.rows[metric] += counts.get("rows_in") or 0
                query.late[metric] += counts.get("rows_dropped") or 0
                words = late_words(query.late[metric], query.rows[metric], self._stages[metric])
                if words is not None and not query.told:
                    query.told = True
                    return f"{name or 'the query ' + repr(progress.get('name') or progress['id'])}: {words}"
        return None

    def end(self, run: str) -> None:
        """Forget a run of a query that has ended."""
        with self._lock:
            self._running.pop(run, None)


LATE = LateRows()
"""The stages of the flows of this process."""

__all__ = ["LATE", "LateRows"]
