"""Conditions with methods of texts and times read the same rows of files as of a table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import uncombine as uc
from uncombine import Expr, col, concat
from uncombine.files.pushdown import folder_excluded, statistics_condition

STAMP = pa.timestamp("us", "UTC")
ROWS = pa.table(
    {
        "ts": pa.array([0, 3_600_000_000, 7_200_000_000, -1], STAMP),
        "name": ["Ada", "bob", None, ""],
        "n": [1, 2, 3, None],
        "gap": pa.array([1, -1, None, 0], pa.duration("us")),
    }
)

CONDITIONS: list[Expr] = [
    col("name").str.to_lowercase() == "ada",
    col("name").str.contains("^[ab]") & (col("n") > 1),
    (col("name").str.len_chars() > 2) | (col("n") == 3),
    col("ts").dt.hour() == 1,
    col("ts").dt.truncate("1 hour") >= col("ts"),
    col("ts") + col("gap") < col("ts"),
    concat(col("name"), "!").isin(["!", "bob!"]),
    col("name").call("utf8_reverse") == "bob",
    ~col("name").str.starts_with("A"),
]


@pytest.mark.parametrize("condition", CONDITIONS, ids=repr)
def test_files_and_a_table_have_the_same_rows(condition: Expr, tmp_path: Path) -> None:
    for place in range(4):
        folder = tmp_path / f"kind={'AB'[place % 2]}"
        folder.mkdir(exist_ok=True)
        pq.write_table(ROWS.slice(place, 1), folder / f"{place}.parquet")
    wanted = ROWS.filter(condition.evaluate(ROWS).fill_null(False))
    found = uc.flow(uc.Files(tmp_path, filter=condition), time="ts").run()
    assert sorted(map(str, found["n"].to_pylist())) == sorted(map(str, wanted["n"].to_pylist()))
    of_folder = uc.flow(uc.Files(tmp_path, filter=condition & (col("kind").str.to_lowercase() == "a")), time="ts").run()
    numbers = [n for n in wanted["n"].to_pylist() if n in (1, 3)]
    assert sorted(map(str, of_folder["n"].to_pylist())) == sorted(map(str, numbers))


def test_a_method_leaves_the_other_conditions_to_statistics() -> None:
    for method in (col("name").str.len_chars() == 3, col("ts").dt.year() >= 1970, col("name").str.slice(0, 1) == "A"):
        assert statistics_condition(method, ROWS.schema, ROWS.schema) is None
        both = statistics_condition(method & (col("n") > 2), ROWS.schema, ROWS.schema)
        assert str(both) == str(statistics_condition(col("n") > 2, ROWS.schema, ROWS.schema))
        assert statistics_condition(method | (col("n") > 2), ROWS.schema, ROWS.schema) is None


def test_a_folder_is_read_unless_its_name_says_that_no_row_fits() -> None:
    folders = {"kind": pa.scalar("Book"), "day": pa.scalar(3, pa.int32())}
    assert folder_excluded(col("kind").str.to_lowercase() == "tea", folders)
    assert not folder_excluded(col("kind").str.to_lowercase() == "book", folders)
    assert folder_excluded((col("kind").str.len_chars() == 3) & (col("n") > 1), folders)
    assert not folder_excluded(concat(col("kind"), col("name")) == "x", folders)
