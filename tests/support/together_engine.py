"""A stand-in for Spark's streaming engine that runs flows together: one operator for each depth of their graph."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pandas as pd
import pyarrow as pa
from engine import Handle, Now, crossing, joined

from uncombine.flows.flow import Flow
from uncombine.flows.graph import Step
from uncombine.panes.parcels import AT
from uncombine.sparkops.routes import shard_processor as processor
from uncombine.sparkops.routes.shards_of_steps import ShardsOfSteps
from uncombine.sparkops.routes.streaming import ShowPanes
from uncombine.sparkops.routes.thin_processor import ThinProcessor, thin
from uncombine.sparkops.routes.together_route import TogetherRoute
from uncombine.sparkops.wire import WIRE

Key = tuple[int, int]
"""An operator, by its depth, and a number of a shard."""

Packed = tuple[int, int, bytes]
"""The number of a shard, a place, and a parcel."""


class TogetherEngine:
    """Runs micro-batches through the operators of flows as Spark would; the processing times of rows are a column."""

    def __init__(self, flows: Mapping[str, Flow], seed: int, restored: dict[Key, Handle] | None = None) -> None:
        every, self.random = tuple(flows.values()), random.Random(seed)
        self.names = list(flows)
        self.route = TogetherRoute(flow=every[0], input=None, parcels=True, flows=every)  # type: ignore[arg-type]
        self.store: dict[Key, Handle] = {} if restored is None else restored
        self.restart()

    def restart(self) -> None:
        """New workers, on a host that was never used."""
        self.processors: dict[Key, ThinProcessor] = {}
        processor._CACHE = type(processor._CACHE)()

    def snapshot(self) -> dict[Key, Handle]:
        """The values in the store now."""
        return {key: handle.copy() for key, handle in self.store.items()}

    def batch(self, rows: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """The panes of each flow in one micro-batch."""
        packed = [row for leaf in self.route.graph.leaves for row in self._entered(leaf, rows)]
        for depth, steps in enumerate(self.route.levels):
            self.random.shuffle(packed)
            packed = self._operator(depth, steps, packed)
        return {name: self._shown(place, packed) for place, name in enumerate(self.names)}

    def _entered(self, leaf: object, rows: Mapping[str, pa.Table]) -> list[Packed]:
        lift = self.route.entering(leaf)  # type: ignore[arg-type]
        table = rows[leaf.settings.name]  # type: ignore[attr-defined]
        at = table[leaf.settings.processing_time].cast(pa.int64())  # type: ignore[attr-defined]
        return crossing(lift([table.select(lift.columns).append_column(AT, at)]))

    def _operator(self, depth: int, steps: list[Step], packed: list[Packed]) -> list[Packed]:
        by_shard: dict[int, list[Packed]] = {}
        for row in packed:
            by_shard.setdefault(row[0], []).append(row)
        frames: list[pd.DataFrame] = []
        for shard, some in by_shard.items():
            frame = pd.DataFrame(some, columns=WIRE.names)
            halves = [frame.iloc[: len(frame) // 2], frame.iloc[len(frame) // 2 :]]
            frames += list(self._processor(depth, steps, shard).handleInputRows((shard,), iter(halves), Now(-1)))
        whole = joined(frames)
        if not len(whole):
            return []
        rows = whole[whole["counted"].isna()]
        return list(zip(*(rows[name].tolist() for name in WIRE.names), strict=True))

    def _processor(self, depth: int, steps: list[Step], shard: int) -> ThinProcessor:
        key = depth, shard
        if key not in self.processors:
            made = thin(ShardsOfSteps([self.route.task(step) for step in steps]))
            made.init(self.store.setdefault(key, Handle()))
            self.processors[key] = made
        return self.processors[key]

    def _shown(self, place: int, packed: list[Packed]) -> pa.Table:
        schema = self.route.flows[place].schema
        shown = [schema.empty_table()]
        for feed in self.route.graph.results[place]:
            assert isinstance(feed.origin, Step)
            own = [row for row in packed if row[0] in self.route.ids_of(feed.origin)]
            wire = pa.record_batch([pa.array(column) for column in zip(*own, strict=True)], WIRE.names) if own else None
            batches = list(ShowPanes(feed.transforms, schema)([wire.cast(WIRE)])) if wire else []
            shown.append(pa.Table.from_batches(batches, schema))
        return pa.concat_tables(shown)
