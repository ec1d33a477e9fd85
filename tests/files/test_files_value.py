"""Files as a value: options are checked when it is made, and files are looked at when a flow is."""

from __future__ import annotations

import pathlib
from typing import Any

import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch, UnreadableFile


def test_it_says_what_was_given() -> None:
    assert repr(uc.Files("a.csv")) == "Files('a.csv')"
    files = uc.Files(pathlib.Path("a"), format="csv", filter=uc.col("x") > 3, on_bad_file="skip", delimiter=";")
    assert repr(files) == "Files('a', format='csv', filter=col('x') > 3, on_bad_file='skip', delimiter=';')"
    ordered = uc.Files("a", order="time", start=[pathlib.Path("b.csv")])
    assert repr(ordered) == "Files('a', order='time', start=['b.csv'])"
    assert repr(uc.Files(["a", "b"], max_files_per_batch=2)) == "Files(['a', 'b'], max_files_per_batch=2)"


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: uc.Files(3), TypeMismatch, "uc.Files() takes a path or several, but was given a int as path="),
        (lambda: uc.Files([]), TypeMismatch, "uc.Files() takes a path or several, but was given a list as path="),
        (lambda: uc.Files("a", on_bad_fil="skip"), InvalidArgument, "uc.Files() has no option 'on_bad_fil': did you"),
        (
            lambda: uc.Files("a", max_files_per_batch=0),
            InvalidArgument,
            "max_files_per_batch= must be a whole number of at least 1, but is 0",
        ),
        (
            lambda: uc.Files("a", order="size"),
            InvalidArgument,
            "order= must be 'time', 'name' or 'modified', but is 's",
        ),
        (lambda: uc.Files("a", start=["b"]), InvalidArgument, "start= needs order=, such as order='name'"),
        (lambda: uc.Files("a", order="name", start="b"), TypeMismatch, "start= takes a list of the files that are re"),
        (
            lambda: uc.flow(uc.Files("/no/such", order="name", start=["a"])),
            InvalidArgument,
            "start= needs streaming=True: leave it out",
        ),
        (lambda: uc.flow(uc.Files("/no/such")), UnreadableFile, "there are no files in /no/such"),
        (lambda: uc.flow("/no/such", streaming=True), InvalidArgument, "streaming=True needs spark="),
        (
            lambda: uc.flow(uc.Files("/no/such", max_files_per_batch=1)),
            InvalidArgument,
            "max_files_per_batch= needs streaming=True: leave it out",
        ),
    ],
)
def test_what_cannot_be_right_is_refused(make: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error) as refused:
        make()
    assert says in str(refused.value)


def test_nothing_is_looked_at_before_a_flow(tmp_path: pathlib.Path) -> None:
    files = uc.Files(tmp_path / "later.csv")
    (tmp_path / "later.csv").write_text("ts,x\n2016-01-20T12:00:26Z,5\n")
    assert uc.flow(files).schema == pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int64()})


@pytest.mark.parametrize("order", ["time", "name", "modified"])
def test_a_bounded_flow_reads_all_files_whatever_the_order_of_a_stream_is(order: Any, tmp_path: pathlib.Path) -> None:
    for place in range(3):
        (tmp_path / f"{place}.csv").write_text(f"ts,n\n2024-05-01T00:00:0{3 - place}Z,{place}\n")
    rows = [uc.flow(uc.Files(tmp_path, order=one)).run().table().to_pylist() for one in (None, order)]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 3
