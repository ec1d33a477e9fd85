"""The state of an operator between two steps, and the result of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from ...windows.times import MIN_TIME
from .lateness import Lateness
from .store import Store


@dataclass(frozen=True)
class Counts:
    """The numbers of rows without a result, by the reason.

    >>> from uncombine.panes import Counts
    >>> Counts(dropped=1) + Counts(bad=2)
    Counts(dropped=1, finished=0, unassigned=0, bad=2)
    """

    dropped: int = 0
    finished: int = 0
    unassigned: int = 0
    bad: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            dropped=self.dropped + other.dropped,
            finished=self.finished + other.finished,
            unassigned=self.unassigned + other.unassigned,
            bad=self.bad + other.bad,
        )


OF_ALL_SHARDS = "shared"
"""The name of a store whose rows are the same in every shard: a seed has them once, and gives them to all."""


@dataclass(frozen=True)
class OperatorState:
    """The state of an operator between two steps: a value that a step replaces and never changes.

    >>> import pyarrow as pa, uncombine as uc
    >>> schema = pa.schema({"ts": pa.timestamp("us"), "x": pa.int64()})
    >>> from uncombine.panes.grouping.operator import Operator
    >>> from uncombine.panes.grouping.grouping import Grouping
    >>> state = Operator(Grouping({"n": uc.Count()}, uc.Fixed("1 minute")), schema).initial()
    >>> len(state.windows), state.counts.dropped
    (0, 0)
    """

    stores: Mapping[str, Store | None]
    """The rows that the operator keeps, by the name of their store; None for a store that it does not need."""
    watermark: int = MIN_TIME
    output_watermark: int = MIN_TIME
    processing_time: int = MIN_TIME
    percentiles: Mapping[float, int] = field(default_factory=dict)
    counts: Counts = Counts()
    closed: int = MIN_TIME
    """The end of the last windows that expired under a shorter lateness, and that stay so under the one of now."""
    since: Mapping[str, int] = field(default_factory=dict)
    """For each combiner that was added without a history: the start of the first windows of which it has all rows."""

    def under(self, before: int, now: int) -> OperatorState:
        """The state that was written under one allowed lateness, for another one.

        >>> OperatorState({}, watermark=70).under(before=10, now=30).closed
        60
        """
        if now <= before or self.watermark == MIN_TIME:
            return self
        return replace(self, closed=max(self.closed, self.watermark - before))

    @property
    def clocks(self) -> dict[str, int]:
        """The last reading of each clock by which rows were taken out."""
        percentile = max([self.watermark, *self.percentiles.values()])
        return {"event": self.watermark, "processing": self.processing_time, "percentile": percentile}

    @property
    def windows(self) -> Store:
        """The windows of a grouping."""
        windows = self.stores["windows"]
        assert windows is not None
        return windows

    @property
    def atoms(self) -> Store | None:
        """The atoms of a grouping whose windows may split."""
        return self.stores["atoms"]

    @property
    def deposits(self) -> Store | None:
        """The large contents of windows, for a grouping that keeps them apart."""
        return self.stores.get("deposits")


@dataclass(frozen=True)
class StepResult:
    """The result of a step: the rows that it gives in their order, the new state, and the rows that it left out.

    >>> import pyarrow as pa, uncombine as uc
    >>> schema = pa.schema({"ts": pa.timestamp("us"), "x": pa.int64()})
    >>> each_second = uc.Repeatedly(uc.AtPeriod("1 second"))
    >>> from uncombine.panes.grouping.operator import Operator
    >>> from uncombine.panes.grouping.grouping import Grouping
    >>> op = Operator(Grouping({"n": uc.Count()}, uc.Fixed("1 minute"), each_second), schema)
    >>> bundle = pa.table({"ts": [0], "x": [1]}).cast(schema)
    >>> result = op.step(op.initial(), bundle, watermark=0, processing_time=5_500_000)
    >>> result.panes.num_rows, op.next_timer(result.state)
    (0, 6000000)
    """

    panes: pa.Table
    state: OperatorState
    left_out: Mapping[str, np.ndarray]
    """The places in the bundle of the rows that were left out, by the reason; a reason without rows may be missing.

    The places go on from one input to the next. A bundle of cells has no rows, so that it names no places."""
    lateness: Lateness = field(default_factory=Lateness)
    """The lateness of the rows that came after the end of their window."""

    @property
    def output_watermark(self) -> int:
        return self.state.output_watermark
