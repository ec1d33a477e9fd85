"""The rows of the seed in a new checkpoint leave with the first batch that has ended, and not before."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from evolved_queries import FIRST, THEN, URLS, expected, flow, put, run
from pyspark.sql import SparkSession

import uncombine as uc
from uncombine.sparkops.checkpoints.used_seeds import UsedSeed
from uncombine.sparkops.spark_private import await_events


def files_of(checkpoint: Path) -> list[str]:
    return sorted(path.suffix for path in (checkpoint / "seed").iterdir())


@pytest.mark.full
def test_a_seed_has_no_rows_after_the_first_batch(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a", FIRST)
    one = flow(spark, tmp_path, n=uc.Count())
    run(one, URLS[0], tmp_path, "old")
    new = tmp_path / "new"
    made = uc.checkpoint(tmp_path / "old", spark=spark).delete(user="a", to=str(new))
    assert made.remains[1].startswith(f"the folder 'seed' of the new checkpoint {str(new)!r}")
    assert len(files_of(new)) > 1
    (new / "former").mkdir()
    (new / "former" / "rows.arrow").touch()
    kept = tmp_path / "kept"
    shutil.copytree(new / "seed", kept)
    others = [row for row in expected(tmp_path, n=uc.Count()) if row["user"] != "a"]
    assert run(one, URLS[0], tmp_path, "new") == others
    await_events(spark)
    assert files_of(new) == [".json"]
    assert not (new / "former").exists()
    # As a run that was killed after its first batch leaves it.
    shutil.copytree(kept, new / "seed", dirs_exist_ok=True)
    put(tmp_path / "in", "b", THEN)
    after = run(one, URLS[0], tmp_path, "new")
    assert files_of(new) == [".json"]
    others = [row for row in expected(tmp_path, n=uc.Count()) if row["user"] != "a"]
    assert [row for row in after if row["user"] != "a"] == others


@pytest.mark.parametrize(
    ("stored", "batch", "query", "dropped"),
    [
        ([3, 2], 0, "q", True),
        ([3, 0], 0, "q", False),
        ([3], 0, "q", False),
        ([3, 2], 1, "q", False),
        ([3, 2], 0, "other", False),
    ],
)
def test_rows_stay_until_each_step_has_stored_its_own(
    stored: list[int], batch: int, query: str, dropped: bool, tmp_path: Path
) -> None:
    for folder in ("seed", "commits"):
        (tmp_path / folder).mkdir()
    (tmp_path / "metadata").write_text('{"id":"q"}')
    (tmp_path / "commits" / "0").touch()
    for name in ("seed.json", "rows.arrow"):
        (tmp_path / "seed" / name).touch()
    operators = [{"operatorName": "transformWithStateInPySparkExec", "numRowsTotal": rows} for rows in stored]
    other = {"operatorName": "dedupe", "numRowsTotal": 5}
    event = {"id": query, "batchId": batch, "stateOperators": [*operators, other]}
    assert UsedSeed(str(tmp_path), "seed", "former", steps=2).after(event) is dropped
    assert files_of(tmp_path) == ([".json"] if dropped else [".arrow", ".json"])
