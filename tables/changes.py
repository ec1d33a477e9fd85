"""The changes of one batch, as a stream of Arrow batches that need not be in memory together.

Guarded by tests/tables/test_tables.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from .layout import CHANGE, Layout


@dataclass(frozen=True)
class Changes:
    """The changes of a table by one batch. Each call of `batches` gives all of them, so that a target can try again.

    >>> import pyarrow as pa
    >>> from uncombine.tables.net_changes import changes_of
    >>> layout = Layout(pa.schema([("k", pa.int64())]), ("k",))
    >>> changes = Changes.of(layout, [changes_of(pa.table({"k": [1, 2]}), layout)])
    >>> changes.rows, changes.reader().read_all()["k"].to_pylist()
    (2, [1, 2])
    """

    layout: Layout
    rows: int
    batches: Callable[[], Iterable[pa.RecordBatch]]

    @classmethod
    def of(cls, layout: Layout, tables: Iterable[pa.Table]) -> Changes:
        """The changes in tables."""
        parts = list(tables)

        def batches() -> Iterator[pa.RecordBatch]:
            for table in parts:
                yield from table.to_batches()

        return cls(layout=layout, rows=sum(table.num_rows for table in parts), batches=batches)

    @property
    def new(self) -> int:
        """The number of changes that are rows of keys that had none."""
        return sum(int((np.asarray(batch.column(CHANGE)) > 0).sum()) for batch in self.batches())

    def reader(self) -> pa.RecordBatchReader:
        """All changes, as a stream of Arrow."""
        return pa.RecordBatchReader.from_batches(self.layout.changes, self.batches())


__all__ = ["Changes"]
