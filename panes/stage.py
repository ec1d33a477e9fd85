"""A stage of a flow: a step that keeps state, and the transforms before it. Each room of a step has its own.

A stage ties the options that a user wrote to the operator that keeps the state. It says which columns it reads, which
rows must meet in one shard, and what of it a stored state depends on. Not promised: any order of the rows of a port.

Guarded by tests/sparkops/test_steps.py and tests/local/test_local_flows.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from ..windows import Span
from .grouping.grouping import MAX_FUTURE
from .join.join import SIDES
from .parcels import Parcel
from .state.operator import StatefulOperator
from .transforms import Transform


@dataclass(frozen=True)
class StageInput:
    """The rows that a stage gets: their columns of event time and weights, and the demands of the steps before it."""

    time: str = "ts"
    diff: str | None = None
    panes: bool = False
    """True if rows come from a stage, so that their times may lie in the future."""
    retracts: bool = False
    """True if a stage before it retracts panes."""
    allowed_lateness: Span | None = None
    """The allowed lateness of the stages before it, and None if there are none."""
    max_future: Span | Any | None = MAX_FUTURE
    """The longest time by which a row of the source may be after the processing time; None means no limit."""


class StageLift(Protocol):
    """The part of a stage that runs where rows are read: it makes parcels for the shards."""

    @property
    def whole_keys(self) -> bool:
        """True if all rows of a key are in one shard."""

    @property
    def near(self) -> int:
        """The microseconds within which windows of a key are in one shard; 0 if each may be in a shard of its own."""

    def __call__(self, rows: pa.Table, at: int | np.ndarray) -> list[tuple[int, Parcel]]:
        """The parcels of rows that arrived `at`, each with the place of its shard."""

    def routes(self, operator: StatefulOperator, store: str, rows: pa.Table) -> np.ndarray:
        """The hash by which each row of a store of the step belongs to a shard."""


@dataclass(frozen=True)
class Stage(ABC):
    """A step that keeps state, and the transforms before it."""

    transforms: tuple[Transform, ...]

    @abstractmethod
    def operator(self, *schemas: pa.Schema) -> StatefulOperator:
        """The operator over rows of these schemas, one for each port; raises if it does not fit."""

    @abstractmethod
    def lift(self, schema: pa.Schema, shards: int, timed: bool, port: int = 0, rows: bool = False) -> StageLift:
        """The lift of rows of this schema for a port.

        `timed` if each row may have its own processing time, and `rows` if all rows must travel as rows.
        """

    @abstractmethod
    def output(self) -> StageInput:
        """The rows of the stage, as the one after it gets them."""

    @abstractmethod
    def columns(self, schema: pa.Schema) -> frozenset[str] | None:
        """The columns that the stage reads; None means all."""

    @abstractmethod
    def state_options(self, *schemas: pa.Schema) -> Mapping[str, Any]:
        """The options that decide the layout or the meaning of the state."""

    @property
    @abstractmethod
    def code(self) -> Mapping[str, Any]:
        """The values in which functions and objects of the user may be, each under its name."""

    @property
    def filters_may_change(self) -> bool:
        """True if rows that a filter let through before, and others now, are both right in its state."""
        return False

    @property
    def of_source(self) -> bool:
        """True for the step with which a source makes rows of messages."""
        return False

    @abstractmethod
    def describe(self) -> list[str]:
        """The stage in one or two lines."""

    @property
    def shown(self) -> tuple[Transform, ...]:
        """The transforms after the step with which its flow begins."""
        return ()

    @property
    def sides(self) -> tuple[str, ...]:
        """The names of its ports, if it has several."""
        return SIDES

    @property
    def all_at_once(self) -> bool:
        """True if a bounded step takes the rows of all its inputs as one bundle, since their order counts."""
        return False

    @property
    def drops_late(self) -> bool:
        """True if late rows are left out, False if they have windows of their own."""
        return True

    @property
    @abstractmethod
    def max_future(self) -> Span | None:
        """The longest time by which a row may be after the processing time; None means no limit."""

    @property
    def time(self) -> str | None:
        """The event time column of its rows; None if that of each input is another one."""
        return None

    @property
    @abstractmethod
    def wakes(self) -> bool:
        """True if timers of processing time can be due without new rows."""

    @property
    def may_wake(self) -> bool:
        """True if a query that is told to wake runs batches without data for the stage."""
        return self.wakes


__all__ = ["Stage", "StageInput", "StageLift"]
