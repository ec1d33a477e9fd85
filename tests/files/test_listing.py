"""The files of a path with their sizes and their last changes, from a disk and from a file system of Arrow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow.fs as pafs
import pytest
from s3_server import Store, s3

import uncombine as uc
from uncombine.files import listing
from uncombine.files.listing import Listing, list_data_files, list_files


def made(folder: Path) -> None:
    for place, name in enumerate(["b.csv", "a.csv", "below/c.csv", "_hidden.csv", ".part.csv", "_tmp/d.csv"]):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x" * place)
        os.utime(path, ns=(0, 1_600_000_000_000_000_000 + place * 1_000))


def test_files_have_sizes_and_times(tmp_path: Path) -> None:
    made(tmp_path)
    files = list_data_files([str(tmp_path)])
    assert [(file.path.removeprefix(f"{tmp_path}/"), file.size) for file in files] == [
        ("a.csv", 1),
        ("b.csv", 0),
        ("below/c.csv", 2),
    ]
    assert [file.changed - 1_600_000_000_000_000 for file in files] == [1, 0, 2]
    assert [file.path for file in files] == list_files([str(tmp_path)])


def test_what_is_not_there_is_left_out_but_for_links(tmp_path: Path) -> None:
    """A link that is not followed is listed, so that the task that reads it says so."""
    made(tmp_path)
    os.symlink("nothing.csv", tmp_path / "z.csv")
    assert [file.path for file in list_data_files(["/no/such", str(tmp_path / "z.csv")])] == [f"{tmp_path}/z.csv"]
    assert list_data_files([str(tmp_path)])[-1].path == f"{tmp_path}/z.csv"


def test_a_file_system_of_arrow_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path)
    near = list_data_files([str(tmp_path)])
    bucket = pafs.SubTreeFileSystem(str(tmp_path.parent), pafs.LocalFileSystem())
    address = f"s3://{tmp_path.name}"
    monkeypatch.setattr(listing, "locate", lambda path, access: (bucket, path.removeprefix("s3://")))
    far = list_data_files([address])
    assert [file.path.replace(address, str(tmp_path)) for file in far] == [file.path for file in near]
    assert [(file.size, file.changed) for file in far] == [(file.size, file.changed) for file in near]
    two = [f"{address}/a.csv", f"{address}/gone.csv"]
    assert [file.path for file in list_data_files(two)] == two[:1]
    assert [file.path for file in list_data_files(two, lost=True)] == two


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    for name in ("in/a.csv", "in/b.csv", "in/k=1/c.csv", "in/k=1/d.csv", "top.csv"):
        path = tmp_path / "bucket" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"ts,v\n2016-01-20T12:00:00Z,{len(name)}\n")
    with s3(tmp_path) as store:
        yield store


def test_each_file_of_a_store_is_looked_up_once(store: Store) -> None:
    uc.flow([f"s3://bucket/in/{name}.csv{store.parameters}" for name in ("a", "b")])
    looks, first = 1 + 2, 1  # the bucket is looked for by the first file, of which the types are read, too
    assert store.requests == {"HEAD": looks + first, "GET": first}


@pytest.mark.weekly
def test_many_files_of_one_folder_are_looked_up_together(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["in/a.csv", "in/none.csv", "in/k=1", "in/b.csv", "in/k=1/d.csv", "top.csv", "none/a.csv", "in/*/c.csv"]
    paths = [f"s3://bucket/{name}{store.parameters}" for name in names]
    each = Listing.of(paths)
    wanted = (each.files, [place.text for place in each.lost], each.root)
    store.requests.clear()
    facts = [(file.path, file.size, file.changed) for file in list_data_files(paths, lost=True)]
    before = store.requests.copy()
    monkeypatch.setattr(listing, "MANY", 2)
    store.requests.clear()
    assert [(file.path, file.size, file.changed) for file in list_data_files(paths, lost=True)] == facts
    assert store.requests["LIST"] <= before["LIST"]
    assert store.requests["HEAD"] < before["HEAD"]
    many = Listing.of(paths)
    assert (many.files, [place.text for place in many.lost], many.root) == wanted
    monkeypatch.setattr(listing, "MANY", 1)
    assert [(file.path, file.size, file.changed) for file in list_data_files(paths, lost=True)] == facts


def test_who_may_not_list_a_folder_reads_its_files(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MANY", 1)
    store.unlisted = True
    paths = [f"s3://bucket/in/{name}.csv{store.parameters}" for name in ("a", "b")]
    assert [file.size for file in list_data_files(paths)] == [28, 28]
    assert uc.flow(paths).window("global").combine(n=uc.Count()).run()["n"].to_pylist() == [2]
