"""A checkpoint that is made on Spark of another one: it has the seed with which its query begins, and nothing else.

A folder in which the seed was begun and not finished is refused by the query, since it would begin from nothing.

Guarded by tests/sparkops/checkpoints/test_evolved_checkpoints.py and tests/sparkops/checkpoints/test_deleted_rows.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as pafs

from ...errors import StateMismatch
from ...files.paths import locate
from ...flows.evolution.changed_seed import ShownFile, ShownPanes
from ...flows.evolution.deletion import OUTSIDE
from ...panes.grouping.grouping import DIFF
from ...panes.rows.net_rows import net_rows
from ...panes.state.seed import Seed, SeedFile, require_free, write_corrections
from ..inputs import DataFrameInput, column
from ..query_log import last_commit, query_id
from ..routes.tasks import batches_of
from ..sql_types import dataframe_of, spark_schema
from ..tuning.thin_function import thin_function
from ..tuning.worker import ready
from .positions import EVOLVED, FORMER
from .seeds import seed_of_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ITEMS = pa.schema([("item", pa.string())])


@contextmanager
def new_checkpoint(spark: SparkSession, path: str, batch: int, target: str) -> Iterator[Seed]:
    """The state of a checkpoint as a seed, for one that is made of it in a new folder, or not at all."""
    require_free(target)
    system, inside = locate(target)
    begun = f"{target}/{FORMER}"
    try:
        yield seed_of_checkpoint(spark, path, begun, batch)
        if last_commit(spark, path) != batch:
            raise _runs(path)
    except BaseException:
        if system.get_file_info(inside).type == pafs.FileType.Directory:
            system.delete_dir(inside)
        raise
    begun_system, begun_inside = locate(begun)
    begun_system.delete_dir(begun_inside)


def require_ended(spark: SparkSession, path: str) -> None:
    """Raise if the query of a checkpoint runs."""
    if query_id(spark, path) in {str(query.id) for query in spark.streams.active}:
        raise _runs(path)


def remaining(path: str, target: str) -> tuple[str, ...]:
    """The places that still have values of rows which have left, when a checkpoint is made of another one."""
    return (
        f"the former checkpoint {path!r}, until you delete it",
        f"the folder {EVOLVED!r} of the new checkpoint {target!r}, until its query has ended a batch or starts again",
        *OUTSIDE,
    )


def _runs(path: str) -> StateMismatch:
    return StateMismatch(f"the query of the checkpoint {path!r} runs, and its state moves on: stop it, then evolve it")


@dataclass(frozen=True)
class SparkWork:
    """Works on the files of seeds in tasks."""

    spark: SparkSession

    def numbers(self, of: Callable[[SeedFile], int], files: Sequence[SeedFile]) -> list[int]:
        return [int(row["item"]) for row in self._mapped(files, _Numbers(of), "item string").collect()]

    def files(self, change: Callable[[SeedFile], SeedFile | None], files: Sequence[SeedFile]) -> list[SeedFile]:
        changed = self._mapped(files, _ChangeFiles(change), "item string").collect()  # few: one a file
        return [SeedFile(**json.loads(row["item"])) for row in changed]

    def net(self, panes: Callable[[ShownFile], pa.Table], files: Sequence[ShownFile], folder: str) -> list[SeedFile]:
        assert isinstance(panes, ShownPanes)
        if not files:
            return []
        shown = self._mapped(files, _ReadPanes(panes), spark_schema(panes.schema))
        keys = [name for name in panes.schema.names if name in panes.keys[1]]
        shown = shown.repartition(*map(column, [*keys, "window"]))
        write = _WriteNet(folder, panes.schema)
        written = DataFrameInput(shown).mapped(write, panes.schema.names, None, "item string", str).collect()
        return [SeedFile(**json.loads(row["item"])) for row in written]

    def _mapped(self, files: Sequence[SeedFile] | Sequence[ShownFile], task: Any, schema: Any) -> DataFrame:
        rows = [{"item": json.dumps(asdict(file))} for file in files]
        items = dataframe_of(self.spark, pa.Table.from_pylist(rows, schema=_ITEMS))
        return items.repartition(max(len(rows), 1)).mapInArrow(thin_function(task), schema)


@dataclass(frozen=True)
class _ChangeFiles:
    change: Callable[[SeedFile], SeedFile | None]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ready()
        for item in _items(batches):
            if (made := self.change(SeedFile(**item))) is not None:
                yield pa.RecordBatch.from_pydict({"item": [json.dumps(asdict(made))]})


@dataclass(frozen=True)
class _Numbers:
    of: Callable[[SeedFile], int]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ready()
        for item in _items(batches):
            yield pa.RecordBatch.from_pydict({"item": [str(self.of(SeedFile(**item)))]})


@dataclass(frozen=True)
class _ReadPanes:
    panes: ShownPanes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ready()
        for item in _items(batches):
            file = ShownFile(item["folder"], SeedFile(**item["file"]), item["diff"])
            yield from batches_of(self.panes(file))


@dataclass(frozen=True)
class _WriteNet:
    folder: str
    schema: pa.Schema

    def __call__(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        some = [table for table in tables if table.num_rows]
        if some:
            net = net_rows(pa.concat_tables(some).cast(self.schema), DIFF)
            for file in write_corrections(self.folder, 0, [net]):
                yield pa.RecordBatch.from_pydict({"item": [json.dumps(asdict(file))]})


def _items(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        for text in batch.column(0).to_pylist():  # few: one a file
            yield json.loads(text)


__all__ = ["SparkWork", "new_checkpoint", "remaining", "require_ended"]
