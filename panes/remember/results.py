"""The results of a user's function for some rows: a list of result rows for each row.

Guarded by tests/panes/remember/test_remember.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import flat
from ...combiners.rows.hashing import require_hash
from ...errors import InvalidArgument, TypeMismatch, require_column
from ...windows import time_column
from ..rows.options import DIFF, EVENT_TIME, Columns, held_type
from ..transforms import Map
from .remember import Remember


@dataclass(frozen=True)
class Function:
    """A user's function for the columns of an input."""

    remember: Remember
    map: Map
    names: tuple[str, ...]
    """The columns that the function gets."""
    user: pa.Schema
    """The columns of its results, less `event_time` and the places of their rows."""

    @classmethod
    def of(cls, remember: Remember, columns: Columns) -> Function:
        """Call the function without rows, to learn the columns of its results."""
        seen = (EVENT_TIME,) if remember.time == EVENT_TIME else ()
        names = (*columns.user.names, *seen)
        no_rows = columns.rows.empty_table().select(list(names))
        step = Map(remember.function, step=remember.step)
        step = step.settled(no_rows.schema, lambda field: pa.field(field.name, held_type(field.type)))
        kinds = step.kinds
        assert kinds is not None
        if DIFF in kinds.names:
            raise InvalidArgument(
                f"{remember.step}: the function gave a column 'diff', and a result has the weight of its row: "
                "name the column otherwise"
            )
        if remember.flat:
            require_column(remember.places, kinds.names, f"the result of {remember.step}")
            if not pa.types.is_integer(kinds.field(remember.places).type):
                raise TypeMismatch(
                    f"{remember.step}: column {remember.places!r} must hold the places of rows as integers, but is "
                    f"{kinds.field(remember.places).type}"
                )
        hidden = {EVENT_TIME, *([remember.places] if remember.flat else [])}
        user = pa.schema([f for f in kinds if f.name not in hidden])
        if not len(user):
            raise InvalidArgument(f"{remember.step}: the function gave no column of its own: give at least one")
        if remember.diff is not None:
            for f in user:
                require_hash(f.type, f"{remember.step} over a changelog (diff=)", f.name)
        return cls(remember=remember, map=step, names=names, user=user)

    @property
    def kind(self) -> pa.ListType:
        """The type of the list of results of one row."""
        return pa.list_(pa.struct(list(self.user)))

    def __call__(self, rows: pa.Table, times: np.ndarray) -> pa.Array:
        """The list of results of each row."""
        results = self.map.apply(rows.select(list(self.names)))
        owner = self._owner(results, len(times))
        if EVENT_TIME in results.column_names:
            moved, valid = time_column(flat(results[EVENT_TIME]))
            if not (valid.all() and np.array_equal(moved, times[owner])):
                raise InvalidArgument(
                    f"{self.remember.step}: the function changed 'event_time', and a result has the time of its row: "
                    "give the other time another name"
                )
        columns = [flat(results[name]) for name in self.user.names]
        order = np.argsort(owner, kind="stable")
        whole = pa.StructArray.from_arrays(columns, fields=list(self.user)).take(pa.array(order))
        ends = np.cumsum(np.bincount(owner, minlength=len(times)))
        return pa.ListArray.from_arrays(pa.array(np.append(0, ends), pa.int32()), whole).cast(self.kind)

    def _owner(self, results: pa.Table, count: int) -> np.ndarray:
        """The place of the row of each result."""
        if not self.remember.flat:
            if results.num_rows != count:
                raise TypeMismatch(
                    f"{self.remember.step}: the function gave {results.num_rows} rows for {count}: give one row for "
                    "each, in their order, or write flat_map"
                )
            return np.arange(count)
        places = flat(results[self.remember.places])
        owner = np.asarray(places.fill_null(-1).to_numpy(zero_copy_only=False)).astype(np.int64)
        if len(owner) and not 0 <= int(owner.min()) <= int(owner.max()) < count:
            wrong = places[int(np.flatnonzero((owner < 0) | (owner >= count))[0])].as_py()
            raise InvalidArgument(
                f"{self.remember.step}: the function gave {wrong} in column {self.remember.places!r}, and places go "
                f"from 0 to {count - 1}"
            )
        return owner


__all__ = ["Function"]
