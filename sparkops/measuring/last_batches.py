"""The last batches of the queries of this process, with the state that each of them left.

A batch in which a stage had nothing to do has no counts of its state: no shard of it ran. The state is then that of the
batch before, which the driver has to remember, since Spark keeps the reports of the last hundred batches alone.

Guarded by tests/sparkops/measuring/test_last_batches.py.
"""

from __future__ import annotations

from threading import Lock

from .batch_numbers import Progress


class LastBatches:
    """The last batch of each query, by the id that its checkpoint has and every run of it.

    >>> from uncombine.sparkops.progress import FlowProgress, StageProgress
    >>> def batch(number, stage):
    ...     return Progress(number, 0.1, {"clicks": FlowProgress((stage,))})
    >>> last, untouched = LastBatches(), StageProgress(state_known=False)
    >>> last.take("q", "run 1", batch(6, StageProgress(rows_in=3, windows_held=24, shards=2))).stages[0].windows_held
    24
    >>> after = last.take("q", "run 1", batch(7, untouched)).stages[0]
    >>> after.windows_held, after.rows_in
    (24, 0)
    >>> last.completed("q", batch(7, untouched)).stages[0].windows_held
    24
    >>> last.completed("q", batch(3, untouched)).stages[0].state_known
    False
    """

    def __init__(self) -> None:
        self._last: dict[str, tuple[str, Progress]] = {}
        self._lock = Lock()

    def take(self, query: str, run: str, progress: Progress) -> Progress:
        """Remember the next batch of a query, and give it with the state that it left."""
        with self._lock:
            before_run, before = self._last.get(query, (run, None))
            if before is not None and before_run != run and progress.batch <= before.batch:
                before = None  # somebody has put an older copy in the place of the checkpoint
            whole = progress if before is None else progress.with_state_of(before)
            self._last[query] = run, whole
            return whole

    def completed(self, query: str, progress: Progress) -> Progress:
        """A batch with the state that it left, if it is the last one that was taken, or the next."""
        before = self.of(query)
        return (
            progress
            if before is None or progress.batch - before.batch not in (0, 1)
            else progress.with_state_of(before)
        )

    def of(self, query: str, run: str | None = None) -> Progress | None:
        """The last batch of a query, or of a run of it; None if it has had none in this process."""
        of_run, progress = self._last.get(query, (None, None))
        return progress if run in (None, of_run) else None


LAST_BATCHES = LastBatches()
"""The last batches in this process."""

__all__ = ["LAST_BATCHES", "LastBatches"]
