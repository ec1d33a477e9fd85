"""The seed of a checkpoint: the state of all shards of a query, written by the tasks that read them.

Guarded by tests/sparkops/checkpoints/test_checkpoint_seeds.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...errors import InvalidArgument
from ...files.data_paths import escaped_name
from ...flows.fingerprint.differences import number_of, steps_of
from ...flows.fingerprint.flow import Fingerprint
from ...panes.state.manifest import Manifest, extra_of
from ...panes.state.operator_state import OperatorState
from ...panes.state.seed import Seed, SeedFile, SeedMaker, SeedPiece, SeedStep, require_free, write_piece, write_seed
from ...panes.watermarks.stored_watermarks import read_extra
from ..query_log import last_commit, query_id
from ..wire import shard_ids
from .shards import StoredShards

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MARKS = ("strategy", "strategies", "inputs", "marks")
"""The values beside the rows of a shard that are its watermarks."""


def seed_of_checkpoint(spark: SparkSession, path: str, folder: str, batch: int | None = None) -> Seed:
    """Write the state of a checkpoint, after its last batch or an earlier one, as a seed."""
    require_free(folder)
    done = last_commit(spark, path) if batch is None else batch
    if done < 0:
        raise InvalidArgument(f"{path!r} has no batch that is done, so there is no state to make a seed of")
    found = [StoredShards(spark, path, number, done) for number in operators(spark, path)]
    every = [_FoundStep.of(shards, manifests) for shards in found for manifests in shards.steps()]
    steps = sorted(every, key=lambda one: number_of(one.made_by))
    places = [(number_of(one.made_by), steps_of(one.made_by)) for one in steps]
    together = any(one.made_by.get("together") for one in steps)
    if together or len({count for _, count in places}) > 1 or len(set(places)) < len(places):
        raise InvalidArgument(
            f"{path!r} is the checkpoint of a query of several flows, and a seed is of one: run each in a query of its "
            "own to take its state elsewhere"
        )
    written = tuple(one.written(folder) for one in steps)
    maker = SeedMaker(owner=query_id(spark, path), batch=done)
    return write_seed(Seed(folder=folder, steps=written, maker=maker, positions=positions(spark, path, done)))


def operators(spark: SparkSession, path: str) -> list[int]:
    """The numbers under which Spark keeps the steps of a checkpoint."""
    rows = spark.read.format("state-metadata").load(path).select("operatorId").collect()
    return sorted({int(row["operatorId"]) for row in rows})


def positions(spark: SparkSession, path: str, batch: int) -> tuple[str, ...]:
    """The place at which a batch ends in each source of a query, as Spark has noted it."""
    text = spark.read.text(escaped_name(f"{path}/offsets/{batch}"), wholetext=True).collect()[0][0]
    return tuple(text.splitlines()[2:])


@dataclass(frozen=True)
class _FoundStep:
    """A step of a checkpoint: its shards, with their manifests and what they keep beside their rows."""

    shards: StoredShards
    manifests: Mapping[int, bytes]
    extras: Mapping[int, Mapping[str, Any]]

    @classmethod
    def of(cls, shards: StoredShards, manifests: Mapping[int, bytes]) -> _FoundStep:
        """The step, of its manifests."""
        return cls(shards, manifests, {shard: read_extra(extra_of(one)) for shard, one in manifests.items()})

    @property
    def made_by(self) -> Fingerprint:
        fingerprint: Fingerprint = next(iter(self.extras.values()))["made_by"]
        return fingerprint

    def written(self, folder: str) -> SeedStep:
        """The step in a seed, whose rows the tasks have written into its folder."""
        ids = shard_ids(int(self.made_by["shards"]))
        write = _Write(folder, {shard: place for place, shard in enumerate(ids)})
        rows = self.shards.mapped(write, "files string", self.manifests).collect()  # few: one for each shard
        files = [SeedFile(**file) for row in rows for file in json.loads(row["files"])]
        known = next(iter(self.extras))  # a shard that has never been called knows what all others know
        names = [shard if shard in self.manifests else known for shard in ids]
        pieces = [_piece(self.manifests[shard], self.extras[shard]) for shard in names]
        return SeedStep(made_by=self.made_by, pieces=tuple(pieces), files=tuple(files))


def _piece(manifest: bytes, extra: Mapping[str, Any]) -> SeedPiece:
    marks = {name: extra[name] for name in _MARKS if name in extra}
    return SeedPiece.of(Manifest.read(manifest).state, marks)


@dataclass(frozen=True)
class _Write:
    """Writes the rows of a shard, and tells the files."""

    folder: str
    places: Mapping[int, int]

    def __call__(self, shard: int, state: OperatorState, manifest: bytes) -> Iterator[pa.RecordBatch]:
        _, files = write_piece(self.folder, self.places[shard], state, {})
        yield pa.RecordBatch.from_pydict({"files": [json.dumps([asdict(file) for file in files])]})


__all__ = ["operators", "positions", "seed_of_checkpoint"]
