"""The rows of a bundle for one side of a join: those in time, in the columns of the state, and the others counted.

Guarded by tests/panes/join/test_join_cases.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from ...combiners.aggregate import weights_of
from ...combiners.rows.columns import flat, int64_column
from ...combiners.rows.key_codes import normal_keys
from ...windows import time_column
from ..state.hashes import key_hashes
from .compiled import Side, kept_type


@dataclass(frozen=True)
class Rows:
    """The rows of a bundle that one side takes, in the columns of its state, with their expiries."""

    table: pa.Table
    keys: list[pa.Array]
    expiry: np.ndarray
    bad: np.ndarray
    """The places in the bundle of rows without a usable time."""
    late: np.ndarray
    """The places in the bundle of rows that came too late."""

    def __len__(self) -> int:
        return self.table.num_rows

    @cached_property
    def hashes(self) -> np.ndarray:
        """The hashes of the keys, which are not needed where no state is read or written."""
        return key_hashes(self.keys, len(self))

    @property
    def times(self) -> np.ndarray:
        return int64_column(self.table["time"])

    @property
    def weights(self) -> np.ndarray:
        return int64_column(self.table["weight"])


def take_in(side: Side, table: pa.Table, before: int) -> Rows:
    """Sort out the rows of a bundle against the watermark `before` it.

    A row with a null in its key matches nothing. It is taken only if rows without a match are emitted.
    """
    times, usable = time_column(flat(table[side.time]))
    ends = _ends(table, times) if side.windowed else None
    last = times if ends is None else np.minimum(times, ends - 1)
    late = usable & (last < side.earliest(before))
    good = usable & ~late
    weights = np.ones(len(times), np.int64)
    if side.diff is not None:
        weights = weights_of(table, side.diff)
        good &= weights != 0
    if not side.alone:
        for name in side.keys:
            if table[name].null_count:
                good &= np.asarray(flat(table[name]).is_valid())
    if not good.all():
        table, times, weights = table.filter(pa.array(good)), times[good], weights[good]
        ends = None if ends is None else ends[good]
    keys = [normal_keys(flat(table[name])) for name in side.keys]
    values = [_plain(flat(table[name])) for name in side.values]
    columns = [pa.array(times), pa.array(weights), *keys, *values]
    return Rows(
        table=pa.Table.from_arrays(columns, schema=side.stored),
        keys=keys,
        expiry=side.expiry(times, ends),
        bad=np.flatnonzero(~usable),
        late=np.flatnonzero(late),
    )


def _plain(column: pa.Array) -> pa.Array:
    kind = kept_type(column.type)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column if column.type == kind else column.cast(kind)


def _ends(table: pa.Table, times: np.ndarray) -> np.ndarray:
    """The end of each row's window; the instant after the row itself where it has none."""
    windows = flat(table["window"])
    ends, valid = time_column(windows.flatten()[windows.type.get_field_index("end")])
    return np.where(valid, ends, times + 1)
