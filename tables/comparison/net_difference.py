"""The net difference of two changelogs as they go: the rows that one side has more often than the other, so far.

Rows that both sides have are not kept, only their number. So what is kept is small where the sides agree.

Guarded by tests/tables/comparison/test_net_difference.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import Column
from ...combiners.rows.group_sums import sum_counts
from ...combiners.rows.hashing import hash_rows_128
from ...combiners.rows.plain_types import text_room
from ...panes.rows.equal_rows import groups_of
from .comparison import Comparison
from .local_comparison import WeightedRows, compared
from .options import ComparisonOptions


@dataclass(frozen=True, eq=False)
class NetDifference:
    """The difference so far of two changelogs, as a value: the changes of a batch make another one.

    Law: after any batches, `comparison()` is that of the net rows of both sides, however the changes were divided. Not
    promised: the number of equal rows where a side has retracted rows that it did not have, and an error for keys of
    which both sides have the same rows several times, since these are not kept.

    >>> import numpy as np, pyarrow as pa
    >>> schema = pa.schema({"k": pa.string(), "n": pa.int64()})
    >>> none = NetDifference.of(schema, ComparisonOptions.of("k", None, None, 9))
    >>> rows = pa.table({"k": ["a", "a"], "n": [1, 2]})
    >>> first = none.changed(rows, np.array([1, 0]), np.array([0, 1]))
    >>> first.comparison().verdict
    'old and new differ: 1 row changed, 0 equal'
    >>> first.changed(rows, np.array([-1, 1]), np.array([0, 0])).comparison().verdict
    'old and new are the same: 1 row'
    """

    rows: pa.Table
    """The rows that one side has more often, each once."""
    more: np.ndarray
    """For each row the number of times that the new side has it more often; negative if the old side has."""
    old: int
    """The number of rows of the old side."""
    options: ComparisonOptions

    @classmethod
    def of(cls, schema: pa.Schema, options: ComparisonOptions) -> NetDifference:
        """The difference of two sides that have had no rows yet, in these columns."""
        return cls(rows=schema.empty_table(), more=np.zeros(0, np.int64), old=0, options=options)

    def with_both(self, count: int) -> NetDifference:
        """The difference after so many rows came to both sides alike."""
        return replace(self, old=self.old + count)

    def changed(self, rows: pa.Table, of_old: np.ndarray, of_new: np.ndarray) -> NetDifference:
        """The difference after rows came so many times to each side; negative numbers are retractions."""
        every = pa.concat_tables([self.rows, rows.cast(self.rows.schema)])
        more = np.concatenate([self.more, of_new - of_old])
        old = self.old + int(of_old.sum())
        with text_room:
            groups, first = groups_of(*hash_rows_128([Column(column) for column in every.columns]))
        sums = sum_counts(groups, more)
        left = np.flatnonzero(sums)
        return replace(self, rows=every.take(pa.array(first[left])), more=sums[left], old=old)

    def comparison(self) -> Comparison:
        """The comparison of both sides so far; raises for keys that do not identify a row."""
        sides = [np.flatnonzero(self.more < 0), np.flatnonzero(self.more > 0)]
        old, new = (WeightedRows(self.rows.take(pa.array(some)), np.abs(self.more[some])) for some in sides)
        found = compared(old, new, self.options)
        assert old.weights is not None
        return replace(found, equal=found.equal + self.old - int(old.weights.sum()))


__all__ = ["NetDifference"]
