"""Windows that rows bring along."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch
from uncombine.windows import MAX_TIME, MIN_TIME

WINDOW = pa.struct([("start", pa.timestamp("us", "UTC")), ("end", pa.timestamp("us", "UTC"))])


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


def test_rows_with_half_a_window_or_an_empty_one_are_in_no_window() -> None:
    bounds = [(1, 2), (1, None), (None, 2), (3, 3), (4, 3), (None, None)]
    column = pa.array([*({"start": start, "end": end} for start, end in bounds), None], WINDOW)
    assigned = uc.Inherit().assign_column(column)
    assert assigned.row is not None
    assert assigned.row.tolist() == [0, 6]
    assert assigned.start.tolist() == [1, MIN_TIME]
    assert assigned.end.tolist() == [2, MAX_TIME]


@pytest.mark.parametrize("granularity", ["bundle", "record"])
def test_rows_in_no_window_of_their_source_are_counted(granularity: str) -> None:
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "window": WINDOW})
    flow = uc.flow(schema).window(uc.Inherit(), granularity=granularity).combine(n=uc.Count())
    windows = [{"start": 0, "end": 10}, {"start": 0, "end": None}, {"start": 5, "end": 5}, None]
    script = [uc.Elements([{"ts": 1, "window": window} for window in windows]), uc.Watermark(None)]
    result = flow.run(script)
    assert sorted(result["n"].to_pylist()) == [1, 1]
    assert result.counts()["unassigned"] == 2
