"""A history brings into a state no row of an absurd future, no count of its own, and no windows beside others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from evolved_queries import put
from pyspark.sql import SparkSession

import uncombine as uc
from uncombine.errors import StateMismatch

FAR = 4_070_908_800
"""A time in the year 2099, in seconds."""
EARLY, LATER = (0, 70, FAR, 400), (20, 2, 3)
"""The times of the first rows, and of the second ones, of which two are late."""
HEAD = [(time, "a", 1) for time in EARLY]
TAIL = [(time, "a", 1) for time in LATER]


def windows(spark: SparkSession, folder: Path, size: str = "1 minute", **more: Any) -> uc.Flow:
    options = {name: more.pop(name) for name in ("allowed_lateness", "max_future") if name in more}
    future = {"max_future": options.pop("max_future")} if "max_future" in options else {}
    files = uc.Files(str(folder / "in"), order="name")
    rows = uc.flow(files, spark=spark, streaming=True, watermark="30 seconds", tuning=uc.Tuning(shards=2), **future)
    return rows.window(size, "each row", "retracting", **options).combine(by="user", n=uc.Count(), **more)


def ran(flow: uc.Flow, folder: Path, checkpoint: str) -> uc.Flow:
    stream = flow.write_stream(checkpoint=folder / checkpoint).format("noop").trigger(availableNow=True)
    stream.start().awaitTermination()
    return flow


@pytest.fixture
def old(spark: SparkSession, tmp_path: Path) -> Path:
    """The folder of a query that has left out two late rows and a bad one."""
    put(tmp_path / "in", "a", HEAD)
    ran(windows(spark, tmp_path), tmp_path, "old")
    put(tmp_path / "in", "b", TAIL)
    ran(windows(spark, tmp_path), tmp_path, "old")
    return tmp_path


def test_the_counts_of_a_query_go_on_after_a_history(old: Path, spark: SparkSession) -> None:
    before = uc.checkpoint(old / "old", spark=spark).counts()
    assert (before["dropped"], before["bad"]) == (3, 1)
    now = windows(spark, old, most=uc.Max("x"), allowed_lateness="1 second")
    change = uc.evolve(old / "old", now, to=old / "new", history=uc.Files(str(old / "in")))
    assert change.plan.computed
    put(old / "in", "c", [(4, "a", 1), (401, "a", 1)])
    ran(now, old, "new")
    found = uc.checkpoint(old / "new", spark=spark)
    assert found.counts() == {**before, "dropped": 4}
    starts = [row["window"]["start"].timestamp() for row in found.rows().to_pylist()]
    assert starts == [360.0], "a window of 2099 was taken in, or one that has expired"


def test_a_seed_leaves_out_rows_of_an_absurd_future(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a", HEAD)
    for name, future, mark in (("bounded", "1 day", 370), ("any", None, FAR - 30)):
        seed = windows(spark, tmp_path, max_future=future).seed(uc.Files(str(tmp_path / "in")), to=tmp_path / name)
        pieces = seed.steps[0].pieces
        assert {piece.watermark for piece in pieces} == {mark * 1_000_000}
        assert sum(piece.counts.bad for piece in pieces) == int(future is not None)


@pytest.mark.parametrize("dry", [True, False])
@pytest.mark.parametrize(
    ("size", "lateness", "words"),
    [
        ("10 minutes", "1 day", r"windows of the former flow have expired, such as that from 1970-01-01T00:00:00Z to "),
        ("30 seconds", "0 seconds", "windows of the former flow have expired"),
    ],
)
def test_other_windows_are_refused_once_some_have_expired(
    dry: bool, size: str, lateness: str, words: str, old: Path, spark: SparkSession
) -> None:
    now = windows(spark, old, size, allowed_lateness=lateness)
    with pytest.raises(StateMismatch, match=words):
        uc.evolve(old / "old", now, to=old / "new", history=uc.Files(str(old / "in")), dry_run=dry)
    assert not (old / "new").exists()


def test_smaller_windows_with_a_lateness_that_suffices(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a", [(time, "a", 1) for time in range(0, 500, 50)])
    ran(windows(spark, tmp_path, "1 hour"), tmp_path, "old")
    history = uc.Files(str(tmp_path / "in"))
    words = r"such as that from 1970-01-01T00:00:00Z to 1970-01-01T00:01:00Z, .* allowed_lateness='7 minutes' or more"
    now = windows(spark, tmp_path, allowed_lateness="6 minutes")
    for dry in (True, False):
        with pytest.raises(StateMismatch, match=words):
            uc.evolve(tmp_path / "old", now, to=tmp_path / "new", history=history, dry_run=dry)
    now = windows(spark, tmp_path, allowed_lateness="7 minutes")
    change = uc.evolve(tmp_path / "old", now, to=tmp_path / "new", history=history)
    assert sum(step.rows["windows"] for step in change.seed.steps) == 8  # type: ignore[union-attr]
