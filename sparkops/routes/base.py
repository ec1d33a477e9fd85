"""A route: one way in which a flow runs on Spark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from ...flows.description import description
from ...flows.flow import Flow
from ...flows.graph import graph_of, leaf_columns
from ..inputs import Input
from ..naming import FILES, Label, new_label
from ..session import shuffle_partitions
from ..wire import shard_ids

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, eq=False)
class Route(ABC):
    """One way to run a flow over an input."""

    flow: Flow
    input: Input
    in_python: ClassVar[bool] = True
    """True if its rows go to Python."""

    @abstractmethod
    def df(self) -> DataFrame:
        """The DataFrame that runs the flow."""

    @abstractmethod
    def explain(self) -> str:
        """A text that names the route and the reasons for it."""

    @cached_property
    def schemas(self) -> list[pa.Schema]:
        """The input columns of the transforms of each stage, and of those after the last stage."""
        flow = self.flow
        upto = [replace(flow, stages=flow.stages[:i], transforms=()).schema for i in range(len(flow.stages) + 1)]
        wanted = source_columns(flow)
        upto[0] = pa.schema([field for field in upto[0] if field.name in wanted])
        return upto

    @cached_property
    def label(self) -> Label:
        """The label of the metrics of the DataFrame."""
        return new_label(self.flow.settings.name)

    def metric(self, part: str) -> str:
        """The name of the metric of a part of the flow: a stage, or its files, which can be read several times."""
        if part != FILES:
            return self.label.metric(part)
        number = next(self._reads)
        return self.label.metric(part if number == 1 else f"{part}{number}")

    @cached_property
    def _reads(self) -> Iterator[int]:
        return count(1)

    @cached_property
    def ids(self) -> tuple[int, ...]:
        """The shards, one for each shuffle partition."""
        flow = self.flow
        return shard_ids(flow.settings.shards or shuffle_partitions(self.input.spark))

    def explanation(self, way: str, *lines: str) -> str:
        """The text of `explain`: the way in which the flow runs, its source, and more lines."""
        slowed = self.input.slowed() if self.in_python else ()
        return "\n".join([way, *description(self.flow), *(f"  {line}" for line in (*lines, *slowed))])


def source_columns(flow: Flow) -> frozenset[str]:
    """The columns of the one source of a flow that the flow needs."""
    every = frozenset(flow.source_schema.names)
    if not flow.stages:
        return every
    first = graph_of(flow).steps[0]
    feed = first.feeds[0]
    return every if feed.leaf is None else leaf_columns(first, feed, feed.leaf)
