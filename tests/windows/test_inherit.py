"""Windows that rows bring along."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch
from uncombine.windows import MAX_TIME, MIN_TIME

WINDOW = pa.struct([("start", pa.timestamp("us", "UTC")), ("end", pa.timestamp("us", "UTC"))])


def test_windows_stay_as_they_are() -> None:
    start, end = np.array([5, 0, 5]), np.array([9, 9, 7])
    assigned = uc.Inherit().assign_from(start, end)
    assert assigned.row is None
    assert (assigned.start.tolist(), assigned.end.tolist()) == ([5, 0, 5], [9, 9, 7])


def test_windows_of_a_column() -> None:
    rows = [{"start": 1, "end": 2}, {"start": 5, "end": 9}, None, {"start": -7, "end": 0}]
    column = pa.array(rows, WINDOW)
    for given in (column, pa.chunked_array([column.slice(0, 1), column.slice(1)])):
        assigned = uc.Inherit().assign_column(given)
        assert assigned.start.tolist() == [1, 5, MIN_TIME, -7]
        assert assigned.end.tolist() == [2, 9, MAX_TIME, 0]
    assert uc.Inherit().assign_column(column.slice(3)).start.tolist() == [-7]


def test_times_alone_say_nothing() -> None:
    assert uc.Inherit().columns == ("window",)
    assert uc.Fixed("1 minute").columns == ()
    with pytest.raises(InvalidArgument, match="keeps the windows of the column 'window'"):
        uc.Inherit().assign(np.array([1]))


@pytest.mark.parametrize(
    "kind",
    [pa.int64(), pa.struct([("start", pa.int64())]), pa.struct([("from", pa.int64()), ("end", pa.int64())])],
)
def test_columns_that_are_no_windows(kind: pa.DataType) -> None:
    with pytest.raises(TypeMismatch, match="a struct of start and end, but its type is"):
        uc.Inherit().assign_column(pa.nulls(1, kind))


def test_windows_that_are_none() -> None:
    with pytest.raises(InvalidArgument, match="a window without a start or without an end"):
        uc.Inherit().assign_column(pa.array([{"start": 1, "end": None}], WINDOW))
    with pytest.raises(InvalidArgument, match="does not end after its start"):
        uc.Inherit().assign_from(np.array([0, 3]), np.array([1, 3]))
    with pytest.raises(InvalidArgument, match="1 starts and 2 ends"):
        uc.Inherit().assign_from(np.array([0]), np.array([1, 3]))
