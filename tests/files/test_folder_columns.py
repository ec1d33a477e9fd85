"""A column in the names of folders and in the files: the folder's value wins, and a difference is told once."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import odd_files
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from opened import opened
from seeds import seeds

import uncombine as uc

TS = pa.array([0, 1], pa.timestamp("us", "UTC"))


def write(folder: Path, form: str, column: pa.Array | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.table({"ts": TS, "v": [1, 2], **({} if column is None else {"k": column})})
    match form:
        case "parquet":
            pq.write_table(table, folder / "a.parquet")
        case "arrow":
            feather.write_feather(table, str(folder / "a.arrow"))
        case "csv":
            pacsv.write_csv(table, folder / "a.csv")
        case _:
            table.to_pandas().to_json(folder / "a.json", orient="records", lines=True, date_format="iso")


def run(folder: Path, **options: Any) -> tuple[list[Any], list[str]]:
    """The keys, and the warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        flow = opened(folder, **options).window(uc.Global()).combine(by="k", n=uc.Count())
        keys = flow.run()["k"].to_pylist()
    return sorted(keys, key=repr), [str(one.message) for one in told]


@pytest.mark.parametrize("form", ["parquet", "arrow", "csv", "json"])
def test_the_folder_wins_and_a_difference_is_told_once(form: str, tmp_path: Path) -> None:
    for folder, values in {"k=y": ["y", "y"], "k=z": ["z", "q"], "k=x": ["q", "q"]}.items():
        write(tmp_path / folder, form, pa.array(values))
    keys, [told] = run(tmp_path)
    assert keys == ["x", "y", "z"]
    assert "column 'k' is in the names of folders and in the files, and the folders win, as in Spark" in told
    assert "'q' in the file and" in told
    assert "Rename the folders" in told


@pytest.mark.parametrize("form", ["parquet", "arrow", "csv", "json"])
@pytest.mark.parametrize(
    ("names", "column"),
    [
        (["1", "2"], lambda name: pa.array([int(name)] * 2)),
        (["01", "2"], lambda name: pa.array([int(name)] * 2)),
        (["x", "y"], lambda name: pa.array([name] * 2)),
        (["1", "x"], lambda name: pa.array([name] * 2)),
        (["x", "y"], lambda name: None),
        (["1.5", "NaN"], lambda name: pa.array([float(name)] * 2)),
    ],
)
def test_equal_values_are_not_told(form: str, names: list[str], column: Any, tmp_path: Path) -> None:
    if form == "json" and "NaN" in names:
        return  # JSON has none
    for name in names:
        write(tmp_path / f"k={name}", form, column(name))
    keys, told = run(tmp_path)
    assert len(keys) == 2
    assert told == []


def test_a_column_that_is_not_needed_is_not_looked_at(tmp_path: Path) -> None:
    write(tmp_path / "k=x", "parquet", pa.array(["q", "q"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = uc.flow(tmp_path).window(uc.Global()).combine(n=uc.Count()).run()
        assert result["n"].to_pylist() == [2]
    rows = uc.flow(tmp_path).where(uc.col("k") == "x").window(uc.Global()).combine(n=uc.Count())
    with pytest.warns(UserWarning, match="column 'k' is in the names of folders"):
        assert rows.run()["n"].to_pylist() == [2]


def test_values_of_another_type_are_told(tmp_path: Path) -> None:
    write(tmp_path / "k=5", "parquet", pa.array([[1], [2]]))
    keys, [told] = run(tmp_path)
    assert keys == [5]
    assert "column 'k'" in told


@pytest.mark.weekly
@pytest.mark.parametrize("some", seeds(1, 20))
def test_random_folders_over_columns_of_files(some: int, tmp_path: Path) -> None:
    """The folder's value is read in every format and layout, and exactly a difference is told."""
    kinds = {name: kind for name, kind in odd_files.KEYS.items() if kind.folder}
    for seed in range(40 * some, 40 * some + 40):
        r, folder = random.Random(seed), tmp_path / str(seed)
        kind = kinds[r.choice(list(kinds))]
        form = r.choice(["parquet", "arrow", "feather", "csv"])
        differ, expected = False, set()
        for value in r.sample(list(kind.values), 2):
            other = value if r.random() < 0.6 else r.choice(kind.values)
            differ |= odd_files.plain(other, zeros=True) != odd_files.plain(value, zeros=True)
            expected.add(odd_files.plain(value))
            rows = [{"ts": odd_files.START, "k": other, "v": i} for i in range(2)]
            schema = pa.schema({"ts": odd_files.TIME, "k": kind.type, "v": pa.int64()})
            columns = {f.name: pa.array([row[f.name] for row in rows], f.type) for f in schema}
            columns["k"] = odd_files.laid_out(r, [other, other], kind.type, form)
            name = odd_files.folder_name(value)
            odd_files.write(r, pa.table(columns), folder / f"k={name}" / "a", form)
        keys, told = run(folder, schema=schema)
        assert {odd_files.plain(key) for key in keys} <= {odd_files.plain(v, zeros=True) for v in kind.values}, seed
        assert {odd_files.plain(key, zeros=True) for key in keys} == {
            odd_files.plain(value, zeros=True) for value in kind.values if odd_files.plain(value) in expected
        }, seed
        assert bool(told) == differ, (seed, told)
