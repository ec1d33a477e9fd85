"""The windows that rows bring in their column `window`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument, TypeMismatch
from .times import MAX_TIME, MIN_TIME, time_column
from .window import RowWindows, Window


@dataclass(frozen=True, repr=False)
class Inherit(Window):
    """The windows that rows already have in their column `window`, as the stage before assigned them.

    >>> from uncombine.windows import Inherit
    >>> Inherit()
    Inherit()
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """The column that has the windows."""
        return ("window",)

    @property
    def may_be_endless(self) -> bool:
        """True: a row may bring all of time as its window."""
        return True

    @property
    def end_follows_start(self) -> bool:
        """False: windows of several kinds may come together."""
        return False

    def assign(self, times: np.ndarray, key_hash: np.ndarray | None = None, rows: pa.Table | None = None) -> RowWindows:
        """The windows that rows bring."""
        if rows is None:
            raise InvalidArgument(
                "Inherit() keeps the windows of the column 'window' and cannot assign windows by time"
            )
        return self.assign_column(rows["window"])

    def assign_column(self, column: pa.Array | pa.ChunkedArray) -> RowWindows:
        """The windows of a column of structs (start, end), as stages write it; a null means all of time.

        A row whose window lacks its start or its end, or does not end after its start, is in no window.

        >>> import pyarrow as pa
        >>> from uncombine.windows import Inherit
        >>> instant = pa.timestamp("us", "UTC")
        >>> kind = pa.struct([("start", instant), ("end", instant)])
        >>> Inherit().assign_column(pa.array([{"start": 0, "end": 10}], kind)).start.tolist()
        [0]
        """
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        kind = column.type
        if not pa.types.is_struct(kind) or kind.get_field_index("start") < 0 or kind.get_field_index("end") < 0:
            raise TypeMismatch(
                f"Inherit() needs a column 'window' that is a struct of start and end, but its type is {kind}"
            )
        whole = np.array(column.is_null())
        (start, has_start), (end, has_end) = (time_column(column.field(name)) for name in ("start", "end"))
        if whole.any():
            start, end = np.where(whole, MIN_TIME, start), np.where(whole, MAX_TIME, end)
        sound = whole | (has_start & has_end & (end > start))
        if sound.all():
            return RowWindows(None, start, end)
        row = np.flatnonzero(sound)
        return RowWindows(row, start[row], end[row])
