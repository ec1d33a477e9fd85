"""Links among files: those that lead nowhere, in a circle or out of the folder are errors, or are left out by name."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from opened import opened

import uncombine as uc
from uncombine.errors import UnreadableFile

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "v": pa.int64()})


def write(path: Path, v: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"ts": [0], "v": [v]}, schema=SCHEMA), path)
    return path


def run(paths: Any, **options: Any) -> tuple[int, list[str]]:
    """The sum of the numbers in files, and the warnings."""
    flow = opened(paths, **options).window(uc.Global()).combine(total=uc.Sum("v"))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        return int(flow.run()["total"][0].as_py()), [str(one.message) for one in told]


def nowhere(folder: Path) -> None:
    (folder / "in" / "b.parquet").symlink_to(folder / "gone.parquet")


def file_outside(folder: Path) -> None:
    (folder / "in" / "b.parquet").symlink_to(write(folder / "out" / "b.parquet", 10))


def folder_outside(folder: Path) -> None:
    write(folder / "out" / "b.parquet", 10)
    (folder / "in" / "more").symlink_to(folder / "out")


def beside_by_name(folder: Path) -> None:
    """The name of a folder outside begins with that of the folder."""
    (folder / "in" / "b.parquet").symlink_to(write(folder / "in2" / "b.parquet", 10))


def circle(folder: Path) -> None:
    (folder / "in" / "loop").symlink_to(folder / "in")


def circle_of_two(folder: Path) -> None:
    for one, other in ("xy", "yx"):
        (folder / "in" / one).mkdir()
        (folder / "in" / one / "to").symlink_to(folder / "in" / other)


def itself(folder: Path) -> None:
    (folder / "in" / "b.parquet").symlink_to(folder / "in" / "b.parquet")


FAULTS = {
    nowhere: "a link to '.*gone.parquet', which does not exist: restore it",
    itself: "a link to '.*b.parquet', which does not exist",
    file_outside: "a link out of .*in, and such links are not followed: name it as a path of its own",
    folder_outside: "more is a link out of .*in, and such links are not followed",
    beside_by_name: "a link out of",
    circle: "loop is a link to a folder above it: remove it",
    circle_of_two: "is a link to a folder above it: remove it",
}


@pytest.mark.weekly
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("given", ["inferred", "given"])
def test_a_link_that_is_not_followed_is_an_error_or_is_left_out(fault: Any, given: str, tmp_path: Path) -> None:
    write(tmp_path / "in" / "a.parquet", 1)
    fault(tmp_path)
    options: dict[str, Any] = {} if given == "inferred" else {"format": "parquet", "schema": SCHEMA}
    for path in (tmp_path / "in", f"{tmp_path}/in/*", f"file:{tmp_path}/in"):
        with pytest.raises(UnreadableFile, match=FAULTS[fault]):
            run(path, **options)
        total, told = run(path, on_bad_file="skip", **options)
        assert total == 1
        assert told
        assert all(text.startswith("skipped: ") and "on_bad_file" not in text for text in told)


def test_the_first_file_may_be_such_a_link(tmp_path: Path) -> None:
    """Its columns are not taken, and no error shows its text."""
    (tmp_path / "secret").write_text("root:x:0:0:very secret words\n")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.csv").symlink_to(tmp_path / "secret")
    (tmp_path / "in" / "1.csv").write_text("ts,v\n2016-01-20T12:00:00Z,1\n")
    with pytest.raises(UnreadableFile, match="a link out of") as error:
        run(tmp_path / "in")
    assert "very secret" not in str(error.value)
    assert run(tmp_path / "in", on_bad_file="skip")[0] == 1


def test_a_link_that_the_user_names_is_followed(tmp_path: Path) -> None:
    write(tmp_path / "in" / "a.parquet", 1)
    file_outside(tmp_path)
    folder_outside(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "out")
    (tmp_path / "up").mkdir()
    (tmp_path / "up" / "link").symlink_to(tmp_path / "in" / "a.parquet")
    assert run(tmp_path / "link") == (10, [])
    assert run(tmp_path / "link" / "b.parquet") == (10, [])
    assert run(tmp_path / "in" / "b.parquet") == (10, [])
    assert run([tmp_path / "in", tmp_path / "in" / "b.parquet", tmp_path / "in" / "more"]) == (21, [])
    assert run(tmp_path / "up" / "link", format="parquet") == (1, [])


def test_links_within_the_folder_are_followed(tmp_path: Path) -> None:
    write(tmp_path / "in" / "day=1" / "a.parquet", 1)
    (tmp_path / "in" / "last").symlink_to("day=1")
    (tmp_path / "in" / "b.parquet").symlink_to("day=1/a.parquet")
    (tmp_path / "in" / ".#lock.parquet").symlink_to("nobody@nowhere")
    assert run(tmp_path / "in", schema=SCHEMA) == (3, [])


def test_a_file_that_goes_away_before_the_run(tmp_path: Path) -> None:
    write(tmp_path / "in" / "a.parquet", 1)
    for options in ({}, {"format": "parquet", "schema": SCHEMA}):
        for on_bad_file in ("error", "skip"):
            gone = write(tmp_path / "in" / "b.parquet", 10)
            source = opened(tmp_path / "in", on_bad_file=on_bad_file, **options)
            flows = [source.window(uc.Global()), source.map(lambda rows: rows).window(uc.Global())]
            gone.unlink()
            write(tmp_path / "in" / "c.parquet", 100)  # a file that comes is read
            for flow in (one.combine(total=uc.Sum("v")) for one in flows):
                if on_bad_file == "error":
                    with pytest.raises(UnreadableFile, match=r"b\.parquet does not exist, or was deleted"):
                        flow.run()
                else:
                    with pytest.warns(UserWarning, match=r"skipped: .*b\.parquet does not exist, or was deleted"):
                        result = flow.run()
                    assert result["total"].to_pylist() == [101]
            os.unlink(tmp_path / "in" / "c.parquet")
