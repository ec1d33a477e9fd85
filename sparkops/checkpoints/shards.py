"""The shards of a checkpoint as Spark's state store has them, each read by a task of its own.

A task has the packed state of one shard in memory, as the shard itself has it in a batch.

Guarded by tests/sparkops/checkpoints/test_checkpoint_seeds.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from ...errors import InvalidArgument, UnreadableFile
from ...panes.state.chunk_log import stored_state
from ...panes.state.manifest import extra_of
from ...panes.state.operator_state import OperatorState
from ...panes.watermarks.stored_watermarks import read_extra
from ..query_log import first_commit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ShardFunction = Callable[[int, OperatorState, bytes], Iterator[pa.RecordBatch]]
"""A function of the number of a shard, of its state and of its manifest, which gives rows."""


@dataclass(frozen=True)
class StoredShards:
    """The shards of one step of a checkpoint, after one batch."""

    spark: SparkSession
    path: str
    operator: int
    batch: int | None = None
    """The batch after which they are read; None for the last one that is done."""

    def manifests(self) -> dict[int, bytes]:
        """The manifest of each shard by its number."""
        try:
            rows = self._read("manifest").select("key.shard", "value.value")
            return {int(row["shard"]): bytes(row["value"]) for row in rows.collect()}
        except Exception as error:  # of Spark's many kinds, and of the JVM
            oldest = first_commit(self.spark, self.path)
            if self.batch is not None and oldest is not None and self.batch < oldest:
                raise InvalidArgument(
                    f"the state after batch {self.batch} of {self.path!r} is no longer kept: the oldest is that after "
                    f"batch {oldest}, and spark.sql.streaming.minBatchesToRetain, 100 if not set, says how many are"
                ) from error
            first = str(error).strip().partition("\n")[0]
            if quote(self.path, safe="/:") != self.path:
                first = f"it finds no state in a folder whose path has a space or a sign that URLs escape ({first})"
            raise UnreadableFile(
                f"Spark cannot read the state of operator {self.operator} in {self.path!r}: {first}", self.path
            ) from error

    def steps(self) -> list[dict[int, bytes]]:
        """The manifests of each step: of flows that run together several share an operator."""
        out: dict[str, dict[int, bytes]] = {}
        for shard, manifest in self.manifests().items():
            out.setdefault(str(read_extra(extra_of(manifest))["made_by"]["stage"]), {})[shard] = manifest
        return list(out.values())

    def mapped(self, function: ShardFunction, schema: str, manifests: Mapping[int, bytes]) -> DataFrame:
        """The rows that a function gives for the shards that have rows in their stores."""
        chunks = self._read("chunks").select(
            F.col("key.shard").alias("shard"), F.col("user_map_key.id").alias("id"), "user_map_value.value"
        )
        return chunks.mapInArrow(_Task(function, manifests), schema)

    def _read(self, name: str) -> DataFrame:
        reader = self.spark.read.format("statestore").option("operatorId", self.operator)
        reader = reader.option("stateVarName", name)
        return (reader if self.batch is None else reader.option("batchId", self.batch)).load(self.path)


class _Log(dict[int, bytes]):
    """The values of a shard in memory."""

    def put(self, id: int, value: bytes, /) -> None:
        self[id] = value

    def remove(self, id: int, /) -> None:
        del self[id]


@dataclass(frozen=True)
class _Task:
    """Gathers the values of the shards of a partition, and calls the function with the state of each."""

    function: ShardFunction
    manifests: Mapping[int, bytes]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        logs: dict[int, _Log] = {}
        for batch in batches:
            for shard, id, value in zip(*(column.to_pylist() for column in batch.columns), strict=True):  # few
                if shard in self.manifests:
                    logs.setdefault(shard, _Log())[id] = value
        for shard in list(logs):
            manifest = self.manifests[shard]
            yield from self.function(shard, stored_state(manifest, logs.pop(shard)), manifest)


__all__ = ["ShardFunction", "StoredShards"]
