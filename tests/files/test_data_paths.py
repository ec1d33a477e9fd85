"""Paths of data files: an existing path is itself, whatever its name, and a wildcard counts only elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from opened import opened

import uncombine as uc
from uncombine.cli.command_line import main
from uncombine.errors import TypeMismatch, UnreadableFile
from uncombine.files.data_paths import DataPath, data_paths
from uncombine.files.listing import Listing, list_files

NAMES = ["a*b", "axb", "export [1]", "export 1", "q{x,y}", "qx", "v?", "v1", "back\\slash"]
"""Folders, some of which are patterns of others."""


def written(folder: Path) -> dict[str, int]:
    """A file in each folder, and the number in it."""
    for i, name in enumerate(NAMES):
        (folder / name).mkdir()
        table = pa.table({"ts": pa.array([0], pa.timestamp("us", "UTC")), "v": [10**i]})
        pq.write_table(table, folder / name / "f.parquet")
    return {name: 10**i for i, name in enumerate(NAMES)}


def total(paths: Any, **options: Any) -> int:
    flow = opened(paths, **options).window(uc.Global()).combine(total=uc.Sum("v"))
    return int(flow.run()["total"][0].as_py())


@pytest.mark.weekly
def test_an_existing_path_is_itself(tmp_path: Path) -> None:
    numbers = written(tmp_path)
    for name, number in numbers.items():
        for below in ("", "/", "/f.parquet", "/*.parquet", "/f*"):
            assert total(f"{tmp_path}/{name}{below}") == number, (name, below)
    assert total([tmp_path / name for name in NAMES]) == sum(numbers.values())
    assert total([f"{tmp_path}/a*b", f"{tmp_path}/v[0-9]"]) == numbers["a*b"] + numbers["v1"]


def test_a_wildcard_counts_where_nothing_has_the_name(tmp_path: Path) -> None:
    numbers = written(tmp_path)
    assert total(f"{tmp_path}/a?b") == numbers["a*b"] + numbers["axb"]
    assert total(f"{tmp_path}/export*/f.parquet") == numbers["export [1]"] + numbers["export 1"]
    assert total(f"{tmp_path}/*") == sum(numbers.values())
    with pytest.raises(UnreadableFile, match="there are no files in"):
        uc.flow(f"{tmp_path}/z*")


def test_explain_says_which_it_is(tmp_path: Path) -> None:
    written(tmp_path)
    given = {
        "a*b": f"{tmp_path}/a*b (an existing path, not a pattern)",
        "a?b": f"{tmp_path}/a?b (a pattern)",
        "a*b/*.parquet": f"{tmp_path}/a*b/*.parquet (a pattern '*.parquet' below the existing {tmp_path}/a*b)",
        "axb": f"{tmp_path}/axb\n",
    }
    for name, words in given.items():
        assert f"parquet files at {words}" in uc.flow(f"{tmp_path}/{name}").explain(), name


def test_folders_below_an_odd_name_are_columns(tmp_path: Path) -> None:
    for name, k in (("a*b", 1), ("axb", 2)):
        (tmp_path / name / f"k={k}").mkdir(parents=True)
        pq.write_table(pa.table({"v": [k]}), tmp_path / name / f"k={k}" / "f.parquet")
    for path in ("a*b", "a*b/*/f.parquet"):
        places = data_paths(f"{tmp_path}/{path}")
        assert Listing(places).root == f"{tmp_path}/a*b"
        assert list_files(places) == [f"{tmp_path}/a*b/k=1/f.parquet"]
    assert Listing.of(f"{tmp_path}/a?b/*/f.parquet").root == str(tmp_path)


def test_spark_takes_a_name_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path)
    root = str(tmp_path)
    for text, spark in {
        f"{root}/a*b": rf"{root}/a\*b",
        f"file:{root}/a*b/": rf"file:{root}/a\*b",
        f"{root}/q{{x,y}}/*.parquet": rf"{root}/q\{{x,y\}}/*.parquet",
        f"{root}/a?b": f"{root}/a?b",
        f"{root}/axb/": f"{root}/axb/",
        f"{root}/back\\slash": rf"{root}/back\\slash",
    }.items():
        assert DataPath.of(text).for_spark == spark
    monkeypatch.chdir(tmp_path / "export [1]")
    # Spark makes a path absolute before it looks for wildcards.
    assert DataPath.of("f.parquet").for_spark == rf"{root}/export \[1\]/f.parquet"


def test_the_command_takes_an_existing_path_for_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numbers = written(tmp_path)
    for path, number in {**numbers, "a?b": numbers["a*b"] + numbers["axb"]}.items():
        command = ["replay", f"{tmp_path}/{path}", "--window", "global", "--combine", "total=sum:v", "--json"]
        assert main([*command, "--mode", "accumulating"]) == 0
        assert json.loads(capsys.readouterr().out.splitlines()[-1])["total"] == number
    assert main(["replay", f"{tmp_path}/z*", "--window", "global", "--combine", "n=count"]) == 2
    assert "there is no file" in capsys.readouterr().err


def test_a_path_that_is_not_there_is_told(tmp_path: Path) -> None:
    numbers = written(tmp_path)
    given = [f"{tmp_path}/axb", f"{tmp_path}/none"]
    with pytest.raises(UnreadableFile, match=r"there is no file or folder .*none: check the path"):
        uc.flow(given)
    with pytest.warns(UserWarning, match=r"skipped: .*none does not exist"):
        assert total(given, on_bad_file="skip") == numbers["axb"]
    with pytest.raises(TypeMismatch, match="takes a path or several"):
        uc.Files([])
