"""The table of a query as it starts: a new one, its own, or that of a seed, which may have to be corrected first.

The corrections of a seed are the one batch of a query that never ran: they are applied under its name, in a transaction
of their own, and then the table is taken over. So a start that was killed anywhere in between does what is left to do.

Guarded by tests/sparkops/tables/test_table_start.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from ...flows.flow import Flow
from ...flows.graph import Step, graph_of
from ...flows.seeds import corrections_of
from ...panes.state.seed import Seed, SeedFile, corrections
from ...panes.transforms import Transform, applied
from ...tables import Keeper, Layout, Target
from ..batches import INLINE, PACKED_DDL, NetRows, changes_in, key_columns
from ..inputs import DataFrameInput, column
from ..routes.tasks import batches_of
from ..session import shuffle_partitions
from ..sql_types import dataframe_of, spark_schema
from ..tuning.thin_function import thin_function
from ..tuning.worker import ready

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILES = pa.schema([("end", pa.int32()), ("file", pa.string())])


@dataclass(frozen=True)
class TableStart:
    """The table with which a query starts; a value that travels to the process which writes it."""

    place: Target
    layout: Layout
    seed: Seed | None
    ends: tuple[PaneEnd, ...] = ()
    """The steps whose panes reach the table."""
    beside: bool = False
    """True for the table of rows that are left out, beside that of the result."""

    @classmethod
    def of(cls, flow: Flow, place: Target, layout: Layout, seed: Seed | None) -> TableStart:
        """The start of the table of a settled flow."""
        ends = [
            PaneEnd(feed.schema, feed.transforms, tuple(corrections_of(seed, feed.origin.number)))
            for feed in (graph_of(flow).ends if seed is not None else ())
            if isinstance(feed.origin, Step) and seed is not None
        ]
        return cls(place, layout, seed, tuple(ends))

    def keeper(
        self, spark: SparkSession, owner: str, query: str | None = None, patient: bool = False
    ) -> tuple[Keeper, int]:
        """The keeper of the table of a query, which is ready to take batches, and the number of its last batch."""
        seed = self.seed
        keeper = Keeper(self.place.writer(self.layout, owner), query=query)
        try:
            if seed is not None and seed.corrects and keeper.owner(patient) != owner:
                self._correct(spark, seed, patient)
            return keeper, keeper.start(patient, None if seed is None else seed.maker)
        except BaseException:
            keeper.close()
            raise

    def _correct(self, spark: SparkSession, seed: Seed, patient: bool) -> None:
        """Make the table that the seed takes for shown, of that of its base."""
        writer = self.place.writer(self.layout, seed.maker.owner)
        writer.adapts = True
        keeper = Keeper(writer)
        packed = self._packed(spark, seed)
        packed.persist()
        try:
            keeper.start(patient, seed.base)
            keeper.take(seed.maker.batch, changes_in(packed, self.layout))
        finally:
            packed.unpersist()
            keeper.close()

    def _packed(self, spark: SparkSession, seed: Seed) -> DataFrame:
        """The corrections as changes of the table."""
        files = [
            {"end": place, "file": json.dumps(asdict(file))}
            for place, end in enumerate(self.ends)
            for file in end.files
        ]
        listed = dataframe_of(spark, pa.Table.from_pylist(files, schema=_FILES))
        read = ReadCorrections(seed.folder, self.ends, tuple(self.layout.rows.names))
        rows = listed.repartition(max(1, len(files))).mapInArrow(thin_function(read), spark_schema(self.layout.rows))
        rows = rows.repartition(*map(column, key_columns(self.layout)))
        net = NetRows(self.layout, INLINE // shuffle_partitions(spark))
        return DataFrameInput(rows).mapped(net, self.layout.rows.names, None, PACKED_DDL, str)


@dataclass(frozen=True)
class PaneEnd:
    """A step whose panes reach the table, and those of the seed that have not."""

    schema: pa.Schema
    after: tuple[Transform, ...]
    files: tuple[SeedFile, ...]


@dataclass(frozen=True)
class ReadCorrections:
    """Reads the corrections of a seed, as rows of a flow."""

    folder: str
    ends: Sequence[PaneEnd]
    names: Sequence[str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ready()
        for batch in batches:
            for place, text in zip(*(one.to_pylist() for one in batch.columns), strict=True):  # few: one a file
                end = self.ends[place]
                for panes in corrections(self.folder, [SeedFile(**json.loads(text))], end.schema):
                    yield from batches_of(applied(end.after, panes).select(list(self.names)))


__all__ = ["TableStart"]
