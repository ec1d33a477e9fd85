"""The checkpoint of a changed flow, made on Spark of the checkpoint of the flow as it was.

The new folder has the seed with which its query begins, and nothing else before. A folder in which the seed was begun
and not finished is refused by the query, since it would begin from nothing.

Guarded by tests/sparkops/checkpoints/test_evolved_checkpoints.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as pafs

from ...errors import InvalidArgument, StateMismatch
from ...files.paths import locate
from ...flows.evolution.changed_seed import ShownFile, ShownPanes, write_changed
from ...flows.evolution.former_marks import closed_windows, former_marks, former_positions, processing_time
from ...flows.evolution.plan import Planned, in_mode_of, planned
from ...flows.flow import Flow
from ...flows.histories import past_of
from ...panes.grouping.grouping import DIFF
from ...panes.rows.net_rows import net_rows
from ...panes.state.seed import Seed, SeedFile, SeedStep, require_free, write_corrections
from ..inputs import DataFrameInput, column
from ..query_log import last_commit, query_id
from ..routes.history import History
from ..routes.streaming import StreamRoute
from ..routes.tasks import batches_of
from ..source import spark_source
from ..sql_types import dataframe_of, spark_schema
from ..tuning.thin_function import thin_function
from ..tuning.worker import ready
from .contents import Checkpoint, checkpoint
from .history_seeds import listed
from .positions import EVOLVED, FORMER, with_shards
from .seeds import seed_of_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ITEMS = pa.schema([("item", pa.string())])


def evolve_checkpoint(
    path: str, flow: Flow, target: str | None, history: Any, shards: int | None, renames: Mapping[str, str]
) -> tuple[Planned, int, int, Seed | None]:
    """The plan, the rows and bytes of the state as it was, and the seed in the new checkpoint."""
    source = spark_source(flow)
    if source is None or not flow.source.streaming:
        raise InvalidArgument(
            "evolve() of a checkpoint takes the flow of a stream on Spark, as it is now: give uc.flow() spark= and "
            "streaming=True, or a DataFrame of spark.readStream"
        )
    spark = source.input.spark
    former = checkpoint(path, spark=spark)
    require_ended(spark, path)
    if shards is not None:
        flow = with_shards(flow, shards)
    steps = former.steps
    if not steps:
        raise StateMismatch(
            f"the query of the checkpoint {path!r} has stored no state yet, so there is nothing to evolve: let it run "
            "until its sources have had rows, or evolve the checkpoint that it was made of"
        )
    flow = in_mode_of(flow, [one.made_by for one in steps])
    route = StreamRoute(flow, source.route_input)
    graph = route.graph
    now = [route.fingerprint(step) for step in graph.steps]
    plan = planned([one.made_by for one in steps], graph, now, history is not None, renames)
    rows, size = sum(sum(one.rows.values()) for one in steps), sum(one.bytes for one in steps)
    if target is None:
        return plan, rows, size, None
    past = past_of(flow, history, None) if plan.computed else None
    with new_checkpoint(former, target) as old:
        seed = _made(old, flow, route, plan, past, target, shards)
    return plan, rows, size, seed


@contextmanager
def new_checkpoint(former: Checkpoint, target: str) -> Iterator[Seed]:
    """The state of a checkpoint as a seed, for one that is made of it in a new folder, or not at all."""
    require_free(target)
    system, inside = locate(target)
    begun = f"{target}/{FORMER}"
    try:
        yield seed_of_checkpoint(former.spark, former.path, begun, former.batch)
        if last_commit(former.spark, former.path) != former.batch:
            raise _runs(former.path)
    except BaseException:
        if system.get_file_info(inside).type == pafs.FileType.Directory:
            system.delete_dir(inside)
        raise
    begun_system, begun_inside = locate(begun)
    begun_system.delete_dir(begun_inside)


def _made(
    old: Seed, flow: Flow, route: StreamRoute, plan: Planned, past: Flow | None, target: str, shards: int | None
) -> Seed:
    """Write the seed of the changed flow into a new checkpoint."""
    graph = route.graph
    positions = former_positions(old, graph)
    folder, computed = f"{target}/{EVOLVED}", list[SeedStep]()
    if past is not None:
        past = listed(past, positions, flow)
        marks = tuple(former_marks(old, graph))
        run = History(past, route.input, folder=folder, marks=marks, now=processing_time(old))
        made_by = [one.made_by for one in plan.steps]
        computed = replace(run, closed=closed_windows(old, plan)).steps(made_by)
    return write_changed(old, plan, computed, folder, SparkWork(route.input.spark), positions, shards)


def require_ended(spark: SparkSession, path: str) -> None:
    """Raise if the query of a checkpoint runs."""
    if query_id(spark, path) in {str(query.id) for query in spark.streams.active}:
        raise _runs(path)


def _runs(path: str) -> StateMismatch:
    return StateMismatch(f"the query of the checkpoint {path!r} runs, and its state moves on: stop it, then evolve it")


@dataclass(frozen=True)
class SparkWork:
    """Works on the files of seeds in tasks."""

    spark: SparkSession

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


__all__ = ["SparkWork", "evolve_checkpoint", "new_checkpoint", "require_ended"]
