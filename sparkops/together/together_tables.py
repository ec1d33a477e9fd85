"""Live tables of several flows, which one query keeps: each table takes each batch once.

Guarded by tests/sparkops/together/test_together_tables.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import InvalidArgument, nearest
from ...flows.flow import Flow
from ...flows.graph import Step
from ...flows.tuning import LiveQuery
from ...tables import Keeper, Layout, table_flow, target_of
from ..batches import changes_of_panes, changes_of_rows, keeps_keys
from ..inputs import Input
from ..routes.together_route import TogetherRoute
from ..tables.finished_batch import of_topics, remembers
from ..tables.live_table import LiveTable
from ..tables.table_query import all_hurry, apply_packed, start_tables
from ..tables.table_start import TableStart
from .together_streams import together_route

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery


class LiveTables(Mapping[str, LiveTable]):
    """The live tables of one query, by the names of their flows; it has the methods of the query too.

    `uc.together(...).to_tables` makes it. A reader of one table sees the result of all batches so far, and never half a
    batch; two tables may be a batch apart. The end of a `with` block stops the query.
    """

    def __init__(self, query: StreamingQuery, keepers: Mapping[str, Keeper], checkpoint: str) -> None:
        self.query, self._keepers = query, list(keepers.values())
        self._tables = {name: LiveTable(query, keeper, checkpoint) for name, keeper in keepers.items()}

    def __getitem__(self, name: str) -> LiveTable:
        if name not in self._tables:
            raise KeyError(f"the query keeps no table {name!r}: {nearest(str(name), list(self._tables))}")
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802
        """Wait for the end of the query, as its own method does."""
        try:
            return next(iter(self._tables.values())).awaitTermination(timeout)
        finally:
            if not self.query.isActive:
                self._close()

    def processAllAvailable(self) -> None:  # noqa: N802
        """Wait until the tables have all rows that are there, as the query's own method does."""
        next(iter(self._tables.values())).processAllAvailable()

    def stop(self) -> None:
        """Stop the query; the tables stay as they are."""
        all_hurry(self._keepers)
        try:
            self.query.stop()
        finally:
            self._close()

    def _close(self) -> None:
        for keeper in self._keepers:
            keeper.close()

    def __enter__(self) -> LiveTables:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.query, name)

    def __repr__(self) -> str:
        return f"live tables {', '.join(f'{name}: {table!r}' for name, table in self._tables.items())}"


def live_tables(
    flows: Mapping[str, Flow],
    input: Input,
    targets: Mapping[str, str],
    keys: Mapping[str, str | Sequence[str]],
    options: LiveQuery,
) -> LiveTables:
    """Start a streaming query that keeps the current results of flows in tables; `uc.together` says how."""
    places = {name: target_of(target) for name, target in targets.items()}
    settled, layouts = dict[str, Flow](), list[Layout]()
    for name, flow in flows.items():
        settled[name], layout = table_flow(flow, keys.get(name))
        places[name].check(layout)
        layouts.append(layout)
    if len({place.name for place in places.values()}) < len(places):
        raise InvalidArgument("to_tables() keeps each flow in a table of its own, and two of them have one target")
    route = together_route(settled, input, options.checkpoint)
    tables = [TableStart(places[name], layout, None) for name, layout in zip(settled, layouts, strict=True)]
    take = _Batches(
        route, tuple(layouts), tuple(keeps_keys(*one) for one in zip(settled.values(), layouts, strict=True))
    )
    once = of_topics(input) or any(remembers(flow) for flow in settled.values())
    query, keepers = start_tables(input.spark, route.df(), tables, take, options, wakes=route.wakes, once=once)
    return LiveTables(query, dict(zip(flows, keepers, strict=True)), options.checkpoint)


@dataclass(frozen=True)
class _Batches:
    """Gives each table its changes of a batch."""

    route: TogetherRoute
    layouts: tuple[Layout, ...]
    keyed: tuple[bool, ...]
    """For each table: all rows of a key come from one shard."""

    def __call__(self, keepers: Sequence[Keeper], packed: DataFrame, batch: int) -> None:
        packed.persist()
        try:
            packed.count()  # before a table takes anything, so that each has the batch or none
            for place, keeper in enumerate(keepers):
                apply_packed(keeper, self._changes(place, packed), batch)
        finally:
            packed.unpersist()

    def _changes(self, place: int, packed: DataFrame) -> DataFrame:
        layout, ends = self.layouts[place], self.route.graph.results[place]
        if self.keyed[place] and len(ends) == 1 and isinstance(step := ends[0].origin, Step):
            panes = self.route.panes_of(step, packed)
            return changes_of_panes(panes, ends[0].transforms, layout, len(self.route.ids))
        return changes_of_rows(self.route.shown_of(place, packed), layout, keyed=False)


__all__ = ["LiveTables", "live_tables"]
