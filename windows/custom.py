"""Windows that a user's own functions assign and merge."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument, TypeMismatch
from .hulls import Hulls, union_intervals
from .window import RowWindows, Window, settle

Assign = Callable[..., tuple[Any, Any, Any]]
Merge = Callable[[np.ndarray, np.ndarray, np.ndarray], Any]


@dataclass(frozen=True, init=False, repr=False)
class Custom(Window):
    """Windows that your own functions assign and merge; times are int64 arrays of microseconds.

    Parameters
    ----------
    assign
        A function `assign(times)` that gives three arrays (row, start, end). Element i puts row `row[i]` into the
        window `[start[i], end[i])`. A row may have several windows or none. `row` may be None if each row has one.
        With `columns` it is called as `assign(times, rows)`: `rows` is an Arrow table of these columns.
    merge
        None if windows do not merge. "overlap" if windows of a key merge that share an instant. Or a function
        `merge(code, start, end)` that gives each window a number; windows with the same number become one. `code`
        is a number for the key: windows of two keys cannot merge. A merged window is the hull of its parts.
    columns
        The columns of the rows that `assign` sees. A retraction must have the same values in them as its row.

    Examples
    --------
    >>> import numpy as np
    >>> from uncombine.windows import Custom
    >>> def second(times):
    ...     start = times - times % 1_000_000
    ...     return None, start, start + 1_000_000
    >>> Custom(second).assign(np.array([1_700_000])).start.tolist()
    [1000000]
    >>> def auction(times, rows):
    ...     return None, times, times + rows["minutes"].to_numpy() * 60_000_000
    >>> Custom(auction, columns=["minutes"])
    Custom(auction, columns=['minutes'])
    """

    assign_rows: Assign
    merge_windows: Merge | str | None = None
    names: tuple[str, ...] = ()

    def __init__(self, assign: Assign, merge: Merge | str | None = None, columns: Iterable[str] = ()) -> None:
        if not callable(assign):
            raise TypeMismatch(
                f"Custom(assign): assign must be a function of times that gives (row, start, end), but is {assign!r}"
            )
        if not (merge is None or merge == "overlap" or callable(merge)):
            raise InvalidArgument(f"Custom(merge): merge must be 'overlap', a function or None, but is {merge!r}")
        if not isinstance(columns, str | Iterable):
            raise TypeMismatch(f"Custom(columns): columns must be names of columns, but is {columns!r}")
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        if wrong := [name for name in names if not isinstance(name, str)]:
            raise TypeMismatch(f"Custom(columns): columns must be names of columns, but one is {wrong[0]!r}")
        settle(self, assign_rows=assign, merge_windows=merge, names=names)

    def __repr__(self) -> str:
        merge = "" if self.merge_windows is None else f", merge={_name(self.merge_windows)}"
        columns = f", columns={list(self.names)}" if self.names else ""
        return f"Custom({_name(self.assign_rows)}{merge}{columns})"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the user's function sees."""
        return self.names

    @property
    def merging(self) -> bool:
        """True if `merge` was given."""
        return self.merge_windows is not None

    @property
    def merges_by_overlap(self) -> bool:
        """True if `merge` is "overlap"; False for a function of the user's."""
        return self.merge_windows == "overlap"

    @property
    def may_be_endless(self) -> bool:
        """True: the user's function may give windows that last to the end of time."""
        return True

    @property
    def end_follows_start(self) -> bool:
        """False: the user's function may give two windows one start and different ends."""
        return False

    def assign(self, times: np.ndarray, key_hash: np.ndarray | None = None, rows: pa.Table | None = None) -> RowWindows:
        """The windows that the user's function gives, checked."""
        who = f"the assign function of {self!r}"
        if self.names and rows is None:
            raise InvalidArgument(f"{self!r} cannot assign windows without the columns of the rows")
        seen = [_read_only(times)] if rows is None or not self.names else [_read_only(times), rows.select(self.names)]
        arrays = self.assign_rows(*seen)
        if not isinstance(arrays, tuple | list) or len(arrays) != 3:
            raise TypeMismatch(f"{who} must give three arrays (row, start, end), but gave {type(arrays).__name__}")
        start, end = (_integers(part, who, what) for part, what in zip(arrays[1:], ("start", "end"), strict=True))
        row = None if arrays[0] is None else _integers(arrays[0], who, "row")
        lengths = [len(times) if row is None else len(row), len(start), len(end)]
        if len(set(lengths)) > 1:
            raise InvalidArgument(
                f"{who} must give arrays of one length, but gave {lengths[0]} rows, {lengths[1]} starts and "
                f"{lengths[2]} ends"
            )
        if row is not None and len(row) and not 0 <= int(row.min()) <= int(row.max()) < len(times):
            wrong = int(row[(row < 0) | (row >= len(times))][0])
            raise InvalidArgument(f"{who} must give rows from 0 to {len(times) - 1}, but gave row {wrong}")
        if bool((end <= start).any()):
            at = int(np.argmax(end <= start))
            raise InvalidArgument(
                f"{who} must give windows that end after their start, but gave [{start[at]}, {end[at]})"
            )
        return RowWindows(row, start, end)

    def merge(self, codes: np.ndarray, start: np.ndarray, end: np.ndarray) -> Hulls:
        """The hulls of the windows that the user's function joins, checked, in the order of the user's numbers."""
        if not callable(self.merge_windows):
            return union_intervals(codes, start, end)
        who = f"the merge function of {self!r}"
        numbers = _integers(self.merge_windows(*map(_read_only, (codes, start, end))), who, "number")
        if len(numbers) != len(codes):
            raise InvalidArgument(
                f"{who} must give one number for each window, but gave {len(numbers)} numbers for {len(codes)} windows"
            )
        _, first, number = np.unique(numbers, return_index=True, return_inverse=True)
        if bool((codes[first][number] != codes).any()):
            raise InvalidArgument(
                f"{who} must not join windows of two keys, but gave two keys the same number: number the windows of "
                "each key apart"
            )
        low, high = start[first], end[first]
        np.minimum.at(low, number, start)
        np.maximum.at(high, number, end)
        return Hulls(window_id=number, code=codes[first], start=low, end=high)


def _read_only(values: np.ndarray) -> np.ndarray:
    """A view of the values that a function cannot write to."""
    values = values.view()
    values.flags.writeable = False
    return values


def _integers(part: Any, who: str, what: str) -> np.ndarray:
    values = np.asarray(part)
    if values.ndim != 1 or (len(values) and values.dtype.kind not in "iu"):
        raise TypeMismatch(
            f"{who} must give a {what} as an array of whole numbers, but gave an array of {values.dtype}"
        )
    return values.astype(np.int64, copy=False)


def _name(function: Any) -> str:
    return getattr(function, "__qualname__", None) or repr(function)
