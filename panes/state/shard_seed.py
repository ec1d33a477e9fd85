"""The state of one shard, made of its part of a seed.

Guarded by tests/panes/state/test_seed.py and tests/flows/test_seeds.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ...errors import StateMismatch
from ..row_lift import shard_of
from ..watermarks.stored_watermarks import together
from ..watermarks.watermarks import InputWatermarks, Watermarks
from .codec import DAMAGE, unpack
from .operator import StatefulOperator
from .operator_state import OF_ALL_SHARDS, Counts, OperatorState
from .seed import SeedFile, SeedPiece, SeedStep, corrections, file_bytes, unreadable_file
from .store import Chunk

Routes: TypeAlias = Callable[[str, pa.Table], np.ndarray]
"""The hashes by which the rows of a store, given by its name, belong to shards."""


@dataclass(frozen=True)
class ShardSeed:
    """The part of a seed with which one shard of a step begins; a value that travels to the workers."""

    folder: str
    step: SeedStep
    moved: bool = False
    """True if rows belong to shards by other hashes than in the seed, whose pieces are then no shards of now."""

    def state(self, operator: StatefulOperator, shard: int, shards: int, routes: Routes) -> OperatorState:
        """The state of a shard, the one in this place of so many."""
        every = 0 if self.moved else len(self.step.pieces)
        empty, own = operator.initial(), numbers(self.step.pieces, shard, shards, self.moved)
        near = gcd(every, shards) if every else 1
        files = [f for f in self.step.files if f.store == OF_ALL_SHARDS or f.piece % near == shard % near]
        if odd := {file.store for file in files} - {name for name, store in empty.stores.items() if store is not None}:
            raise self._other(f"it has rows of {', '.join(map(repr, sorted(odd)))}, which the step does not keep")
        stores = dict(empty.stores)
        for file in files:
            store = stores[file.store]
            assert store is not None
            rows = self._rows(file, store.schema, operator)
            if every != shards and file.store != OF_ALL_SHARDS:
                there = shard_of(routes(file.store, rows.table), shards) == shard
                rows = rows.without(np.flatnonzero(~there))
            hashes, table, wake = rows.living()
            stores[file.store] = store.put(hashes, table, wake)
        return replace(
            empty,
            stores=stores,
            watermark=own.watermark,
            output_watermark=own.output_watermark,
            processing_time=own.processing_time,
            percentiles=dict(own.percentiles),
            counts=own.counts,
            closed=own.closed,
            since=own.since,
        )

    def watermarks(
        self, fresh: Sequence[Watermarks], strategies: Sequence[str], shard: int, shards: int
    ) -> InputWatermarks:
        """The watermarks of the shard; `fresh` are those of each input before any report."""
        own = own_pieces(self.step.pieces, shard, shards, self.moved)
        return together([piece.marks for piece in own], fresh, strategies)

    def corrections(self, schema: pa.Schema, shard: int, shards: int) -> Iterator[pa.Table]:
        """The panes that a shard shows first, in these columns: any shard can, so they are divided evenly."""
        return corrections(self.folder, self.step.corrections, schema, shard, shards)

    def _rows(self, file: SeedFile, schema: pa.Schema, operator: StatefulOperator) -> Chunk:
        value = file_bytes(self.folder, file)

        def hashes(table: pa.Table) -> np.ndarray:
            if not table.schema.equals(schema):
                raise self._other(f"its rows have {_columns(table.schema)}, and the step keeps {_columns(schema)}")
            return operator.hashes(file.store, table)

        try:
            chunk = unpack(value, hashes)
        except StateMismatch:
            raise
        except DAMAGE as error:
            raise unreadable_file(self.folder, file, f"cannot be read ({type(error).__name__})") from None
        if chunk.count != file.rows:
            raise unreadable_file(self.folder, file, f"has {chunk.count} rows, and its manifest counts {file.rows}")
        return chunk

    def _other(self, fault: str) -> StateMismatch:
        return StateMismatch(f"the seed {self.folder!r} is of another flow, for {fault}: give the seed of this flow")


def own_pieces(pieces: Sequence[SeedPiece], shard: int, shards: int, moved: bool = False) -> Sequence[SeedPiece]:
    """The pieces whose numbers count for a shard: its own where there are as many shards as pieces, else all."""
    return [pieces[shard]] if len(pieces) == shards and not moved else pieces


def numbers(pieces: Sequence[SeedPiece], shard: int, shards: int, moved: bool = False) -> SeedPiece:
    """The numbers of a shard.

    Of several pieces the furthest readings of the clocks count, since a row that came too late for one of them must not
    open a window again; and the least promise to the step after it. The counts of all are those of the first shard.
    """
    own = own_pieces(pieces, shard, shards, moved)
    if len(pieces) == shards and not moved:
        return own[0]
    percentiles: dict[float, int] = {}
    for percent, time in (pair for piece in own for pair in piece.percentiles):
        percentiles[percent] = max(time, percentiles.get(percent, time))
    counts = Counts()
    for piece in own if shard == 0 else ():
        counts += piece.counts
    return SeedPiece(
        watermark=max(piece.watermark for piece in own),
        output_watermark=min(piece.output_watermark for piece in own),
        processing_time=max(piece.processing_time for piece in own),
        percentiles=tuple(sorted(percentiles.items())),
        counts=counts,
        marks={},
        closed=max(piece.closed for piece in own),
        since=own[0].since,  # one change adds a combiner to all shards
    )


def _columns(schema: pa.Schema) -> str:
    return "(" + ", ".join(f"{field.name}: {field.type}" for field in schema) + ")"


__all__ = ["ShardSeed", "numbers", "own_pieces"]
