"""The rows that shards give to Spark: packed parcels or panes as columns, and a row with the counts of each shard.

Guarded by tests/sparkops/routes/test_processor.py and tests/sparkops/routes/test_flat_rows.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType, StructField, StructType

from ...panes.parcels import Parcel
from ...panes.state.lateness import BOUNDS
from ...panes.state.store import cuts
from ...panes.transforms import Transform, applied
from ...windows.times import MAX_TIME
from ..sql_types import spark_schema
from ..wire import WIRE, in_parts
from .flat_rows import FlatRows
from .tasks import OUT_ROWS

if TYPE_CHECKING:
    from pyspark.sql import Column

Packed = tuple[int, int, bytes]
"""A shard, a place in its order, and a parcel."""

OUT_PANES = 262_144
OUT_BYTES = 256 << 20
"""The bytes of panes that go to Spark at once, since a column of bytes must stay below 2 GiB."""

LATENESS = tuple(f"lateness_{place}" for place in range(len(BOUNDS) + 1))
"""The numbers of late rows, by the class of their lateness."""

COUNTS = (
    "rows_in",
    "rows_uncombined",
    "panes_early",
    "panes_on_time",
    "panes_late",
    "rows_out",
    "retractions",
    "rows_dropped",
    "rows_finished",
    "rows_unassigned",
    "rows_bad",
    "windows_held",
    "chunks",
    "state_bytes",
    "load_us",
    "step_us",
    "save_us",
    *LATENESS,
    "lateness_seconds",
)
"""The counts of a shard in a batch. Counts of state are those after the batch. Counts in microseconds are the times of
loading the state, of the step, and of saving the state."""

CLOCKS = ("watermark", "output_watermark", "processing_time", "latest")

SHARDS = "shards"
"""The number of shards that ran in the batch, beside the counts of a stage."""

INPUTS = "inputs"
"""The names of the inputs of a stage beside its counts, as JSON: the driver knows them, and the shards do not."""

SOURCES = "sources"
"""The name of the sources of a stage beside its counts: a list as JSON, which one of its shards gives."""

_OF = "#"
"""The sign between the place of a step that shares an operator and the numbers of a shard."""

_THEN = "|"
"""The sign between the numbers of a shard and its sources."""

_COUNTED = StructField("counted", StringType())
"""The counts and clocks of a shard in order, as text: PySpark passes texts as they are, and looks into lists."""

PACKED = StructType([*spark_schema(WIRE), _COUNTED])


@dataclass(frozen=True)
class PanesAsColumns:
    """The last rows of a stream: its panes after all transforms."""

    after: Sequence[Transform]
    rows: FlatRows

    @property
    def schema(self) -> StructType:
        """The columns of the rows for Spark."""
        return StructType([*self.rows.fields, _COUNTED])

    def frames(self, panes: Iterable[pa.Table], counted: str) -> Iterator[pd.DataFrame]:
        """Panes for Spark, and a row that has the counts alone."""
        for piece in panes:
            for rows in pieces_of(applied(self.after, piece), OUT_ROWS):
                yield self.rows.frame(rows, counted=pa.nulls(rows.num_rows, pa.string()))
        schema = self.rows.schema
        none = pa.Table.from_arrays([pa.nulls(1, kind) for kind in schema.types], schema=schema)
        yield self.rows.frame(none, counted=pa.array([counted]))


def pieces_of(rows: pa.Table, most: int = OUT_PANES) -> Iterator[pa.Table]:
    """Rows in pieces of at most so many rows, none of them too large for Spark."""
    for start in range(0, rows.num_rows, most):
        some = rows.slice(start, most)
        for first, stop in cuts(some, OUT_BYTES):
            yield some.slice(first, stop - first)


def packed(shard: int, kind: str, pieces: Iterable[pa.Table]) -> Iterator[Packed]:
    """Rows as packed parcels of one kind."""
    for piece in pieces:
        yield shard, 0, Parcel(kind, piece).pack()


def packed_frames(rows: Iterable[Packed], counted: str) -> Iterator[pd.DataFrame]:
    """Packed rows for Spark, and a row without a payload that has the counts."""
    frame_rows: list[tuple[int, int, bytes | None]] = []
    size = 0
    for shard, lo, payload in in_parts(rows):
        if frame_rows and size + len(payload) > OUT_BYTES:
            yield _packed_frame(frame_rows, [None] * len(frame_rows))
            frame_rows, size = [], 0
        frame_rows.append((shard, lo, payload))
        size += len(payload)
    yield _packed_frame([*frame_rows, (0, 0, None)], [*([None] * len(frame_rows)), counted])


def _packed_frame(rows: Sequence[tuple[int, int, bytes | None]], counted: list[str | None]) -> pd.DataFrame:
    shards, los, payloads = zip(*rows, strict=True)
    return pd.DataFrame(
        {
            "shard": np.array(shards, np.int32),
            "lo": np.array(los, np.int32),
            "payload": pd.Series(payloads, dtype=object),
            _COUNTED.name: pd.Series(counted, dtype=object),
        }
    )


def passed_on(rows: pd.DataFrame) -> pd.DataFrame:
    """Packed rows of others for Spark, as they came."""
    return rows.assign(**{_COUNTED.name: pd.Series([None] * len(rows), index=rows.index, dtype=object)})


def as_text(about: Mapping[str, int], sources: str = "", place: int | None = None) -> str:
    """The counts and clocks of a shard in order, each of them a number that fits in 64 bits, and then its sources.

    Those of a step that shares an operator begin with its place.
    """
    numbers = " ".join(str(max(min(about[name], MAX_TIME), -MAX_TIME)) for name in (*COUNTS, *CLOCKS))
    return f"{'' if place is None else f'{place}{_OF}'}{numbers}{_THEN}{sources}"


def counts(inputs: Sequence[str | None] = (), place: int | None = None) -> Column:
    """The counts of a stage over its shards, as one aggregate: Spark looks at each row once for every aggregate.

    `inputs` are the names of its inputs, which go with them, and `place` is that of a step that shares an operator.
    """
    text = F.col(_COUNTED.name)
    if place is not None:
        text = F.when(F.substring_index(text, _OF, 1) == str(place), F.substr(text, F.lit(len(str(place)) + 2)))
    zero = [*(F.lit(0) for _ in COUNTS), *(F.lit(MAX_TIME) for _ in CLOCKS)]
    texts = F.collect_list(text)
    parts = F.transform(texts, lambda text: F.split(F.substring_index(text, _THEN, 1), " ").cast("array<bigint>"))
    numbers = F.aggregate(parts, F.array(*zero).cast("array<bigint>"), _added)
    sources = F.array_max(F.transform(texts, lambda text: F.regexp_replace(text, f"^[^{_THEN}]*[{_THEN}]", "")))
    return _named(numbers, F.size(texts), sources, json.dumps(inputs)).alias("counts")


def _added(one: Column, other: Column) -> Column:
    first = len(COUNTS)
    summed = F.zip_with(F.slice(one, 1, first), F.slice(other, 1, first), lambda a, b: a + b)
    least = F.zip_with(*(F.slice(side, first + 1, len(CLOCKS)) for side in (one, other)), lambda a, b: F.least(a, b))
    return F.concat(summed, least)


def _named(numbers: Column, shards: Column, sources: Column, inputs: str) -> Column:
    """The counts by their names, and what goes with them; a clock at the end of time, or of no shard, is null."""
    clocks = (F.nullif(numbers[len(COUNTS) + i], F.lit(MAX_TIME)).alias(name) for i, name in enumerate(CLOCKS))
    texts = (shards.alias(SHARDS), sources.alias(SOURCES), F.lit(inputs).alias(INPUTS))
    return F.struct(*(numbers[i].alias(name) for i, name in enumerate(COUNTS)), *clocks, *texts)


def without_counts() -> Column:
    """True for the rows that are no counts."""
    return F.col(_COUNTED.name).isNull()
