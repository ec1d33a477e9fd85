"""The stream of several flows as one query: each batch is computed once, and divided into the rows of each flow.

Guarded by tests/sparkops/together/test_together_streams.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ...errors import InvalidArgument
from ...flows.flow import Flow
from ..inputs import Input
from ..progress_log import listen
from ..restarts import checked_route
from ..routes.together_route import TogetherRoute
from ..stream_writer import checked_writer
from ..time_modes import all_as_stored, choice_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import DataStreamWriter

BatchOfFlows: TypeAlias = "Callable[[Mapping[str, DataFrame], int], None]"
"""A function of the rows of each flow in a batch, by its name, and of the number of the batch."""


def together_route(flows: Mapping[str, Flow], input: Input, checkpoint: str) -> TogetherRoute:
    """The route of flows that run as one query, whose state can go on from the checkpoint."""
    if ".connect." in type(input.spark).__module__:
        raise InvalidArgument(
            "flows do not run together over Spark Connect: use a session of Spark itself, or write each by a query of "
            "its own"
        )
    for name, flow in flows.items():
        if not flow.source.streaming:
            raise InvalidArgument(
                f"flows that run together on Spark are streams, and {name!r} is bounded: write the df of each flow, or "
                "to_table(target)"
            )
    stored = tuple(all_as_stored(list(flows.values()), input.spark, checkpoint))
    route = TogetherRoute(flow=stored[0], input=input, parcels=True, flows=stored)
    checked = checked_route(route, checkpoint, ())
    assert isinstance(checked, TogetherRoute)
    return checked


@dataclass(frozen=True)
class TogetherStream:
    """The stream of flows that run together; `uc.together(...).write_stream` makes it."""

    route: TogetherRoute
    names: tuple[str, ...]
    checkpoint: str

    def foreach_batch(self, function: BatchOfFlows) -> DataStreamWriter:
        """A writer of Spark that gives each batch to a function, as a DataFrame for each flow by its name.

        The batch is computed once, before the function is called. A batch may come twice after a failure, with the same
        number.
        """
        if not callable(function):
            raise InvalidArgument(f"foreach_batch() takes a function of the results and the batch, not {function!r}")
        route = self.route
        listen(route.input.spark)
        writer = checked_writer(route.df().writeStream, choice_of(*route.flows))
        batches = _Batches(route, self.names, function)
        return writer.option("checkpointLocation", self.checkpoint).foreachBatch(batches)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"flows that run together have no {name} yet: write .foreach_batch(function), and then trigger(...) and "
            "start() as for any stream of Spark"
        )


@dataclass(frozen=True)
class _Batches:
    """Takes the batches of a query."""

    route: TogetherRoute
    names: tuple[str, ...]
    function: BatchOfFlows

    def __call__(self, packed: DataFrame, batch: int) -> None:
        packed.persist()
        try:
            packed.count()  # all shards keep their state, even if the function looks at no row
            shown = {name: self.route.shown_of(place, packed) for place, name in enumerate(self.names)}
            self.function(shown, batch)
        finally:
            packed.unpersist()


__all__ = ["BatchOfFlows", "TogetherStream", "together_route"]
