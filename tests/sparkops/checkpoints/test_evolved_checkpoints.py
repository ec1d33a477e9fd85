"""A live table is right after its query was changed, with no row read twice and also when no new data come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from evolved_queries import FIRST, SCHEMA, THEN, URLS, expected, flow, put, run
from pyspark.sql import SparkSession

import uncombine as uc
from uncombine.errors import InvalidArgument, StateMismatch, TableMismatch

CHANGES: dict[str, tuple[dict[str, uc.Combiner], dict[str, uc.Combiner]]] = {
    "added": ({"n": uc.Count()}, {"n": uc.Count(), "total": uc.Sum("x"), "middle": uc.Median("x")}),
    "renamed": ({"n": uc.Count()}, {"rows": uc.Count()}),
    "reordered": ({"n": uc.Count(), "most": uc.Max("x")}, {"most": uc.Max("x"), "n": uc.Count()}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_live_table_follows_a_change(name: str, url: str, spark: SparkSession, tmp_path: Path) -> None:
    before, now = CHANGES[name]
    put(tmp_path / "in", "a", FIRST)
    assert run(flow(spark, tmp_path, **before), url, tmp_path, "old") == expected(tmp_path, **before)
    changed = flow(spark, tmp_path, **now)
    history = uc.Files(str(tmp_path / "in")) if name == "added" else None
    told = uc.evolve(tmp_path / "old", changed, history=history, dry_run=True)
    assert told.seed is None
    assert told.rows == 5
    change = uc.evolve(tmp_path / "old", changed, to=tmp_path / "new", history=history)
    assert str(change).startswith("step 1, a grouping by (user: string): " + ("computed" if history else "converted"))
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["seed"]
    assert run(changed, url, tmp_path, "new") == expected(tmp_path, **now), "no new data"
    put(tmp_path / "in", "b", THEN)
    assert run(changed, url, tmp_path, "new") == expected(tmp_path, **now)
    with pytest.raises(TableMismatch):
        run(flow(spark, tmp_path, **before), url, tmp_path, "old")


def test_a_query_goes_on_with_other_shards(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a", FIRST)
    one = flow(spark, tmp_path, None, n=uc.Count())
    run(flow(spark, tmp_path, 3, n=uc.Count()), URLS[0], tmp_path, "old")
    change = uc.evolve(tmp_path / "old", one, to=tmp_path / "new", shards=5)
    assert [step.fate for step in change.plan.steps] == ["kept"]
    put(tmp_path / "in", "b", THEN)
    for name in ("c", "d"):
        assert run(one, URLS[0], tmp_path, "new") == expected(tmp_path, n=uc.Count())
        put(tmp_path / "in", name, [(81, "e", 5)])
    assert uc.checkpoint(tmp_path / "new", spark=spark).steps[0].shards == 5


def minutes(spark: SparkSession, folder: Path, **combiners: uc.Combiner) -> uc.Flow:
    files = uc.Files(str(folder / "in"), order="name")
    rows = uc.flow(files, spark=spark, streaming=True, watermark="30 seconds", tuning=uc.Tuning(shards=2))
    return rows.window("1 minute", "each row", "retracting").combine(by="user", **combiners)


def written(one: uc.Flow, folder: Path, checkpoint: str) -> list[dict[str, Any]]:
    """The rows that a query writes into files, of all data that are there."""
    out = str(folder / f"{checkpoint} out")
    stream = one.write_stream(checkpoint=folder / checkpoint).format("parquet").option("path", out)
    stream.trigger(availableNow=True).start().awaitTermination()
    return pq.read_table(out).drop_columns(["pane", "event_time"]).to_pylist()


@pytest.mark.daily
def test_another_sink_gets_the_corrections_with_the_first_batch(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a", FIRST)
    first = written(minutes(spark, tmp_path, n=uc.Count()), tmp_path, "old")
    now = minutes(spark, tmp_path, n=uc.Count(), total=uc.Sum("x"))
    uc.evolve(tmp_path / "old", now, to=tmp_path / "new", history=str(tmp_path / "in"))
    put(tmp_path / "in", "b", [(62, "d", 10)])
    left: dict[str, int] = {}
    for row in [*({**row, "total": None} for row in first), *written(now, tmp_path, "new")]:
        key = repr((row["user"], row["window"]["start"].timestamp(), row["n"], row["total"]))
        left[key] = left.get(key, 0) + row["diff"]
    assert sorted(key for key, count in left.items() if count) == sorted(
        map(repr, [("a", 0.0, 1, 1), ("b", 0.0, 1, 2), ("c", 0.0, 1, 4), ("a", 60.0, 1, 3), ("d", 60.0, 2, 19)])
    )
    assert set(left.values()) == {0, 1}


@pytest.mark.daily
@pytest.mark.parametrize("steps", [1, 2])
def test_another_sink_gets_the_corrections_when_no_new_data_come(
    steps: int, spark: SparkSession, tmp_path: Path
) -> None:
    def totals(of: uc.Combiner) -> uc.Flow:
        one = minutes(spark, tmp_path, n=of)
        if steps == 1:
            return one
        return one.window("1 hour", "each row", "retracting").combine(by="user", n=uc.Sum("n"))

    def shown(rows: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
        return sorted((row["user"], row["n"], row["diff"]) for row in rows)

    put(tmp_path / "in", "a", FIRST)
    written(totals(uc.Count()), tmp_path, "old")
    uc.evolve(tmp_path / "old", totals(uc.Sum("x")), to=tmp_path / "new", history=str(tmp_path / "in"))
    parts = {"a": ([1, 1], [1, 3]), "b": ([1], [2]), "c": ([1], [4]), "d": ([1], [9])}
    was, now = ([(user, part[of] if steps == 1 else [sum(part[of])]) for user, part in parts.items()] for of in (0, 1))
    changes = [*((user, n, -1) for user, ns in was for n in ns), *((user, n, 1) for user, ns in now for n in ns)]
    if steps == 1:
        changes = [one for one in changes if one not in (("a", 1, -1), ("a", 1, 1))] + [("a", 1, -1)]
    assert shown(written(totals(uc.Sum("x")), tmp_path, "new")) == sorted(changes)
    again = uc.evolve(tmp_path / "new", totals(uc.Count()), to=tmp_path / "newer", history=str(tmp_path / "in"))
    assert again.seed is not None
    opposite = sorted((user, n, -diff) for user, n, diff in changes)
    assert shown(written(totals(uc.Count()), tmp_path, "newer")) == opposite


def test_changes_that_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a", FIRST)
    one = flow(spark, tmp_path, n=uc.Count())
    run(one, URLS[0], tmp_path, "old")
    added = flow(spark, tmp_path, n=uc.CountIf(uc.col("x") > 1))
    with pytest.raises(StateMismatch, match=r"n=Count\(\) is now CountIf.*: give history="):
        uc.evolve(tmp_path / "old", added, to=tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with pytest.raises(InvalidArgument, match="a seed is written to a new folder"):
        uc.evolve(tmp_path / "old", added, to=tmp_path / "old", history=str(tmp_path / "in"))
    with pytest.raises(InvalidArgument, match="takes the flow of a stream on Spark"):
        uc.evolve(tmp_path / "old", uc.flow(SCHEMA), to=tmp_path / "new")
    live = one.to_table(URLS[0].format(tmp_path), checkpoint=tmp_path / "old")
    with live, pytest.raises(StateMismatch, match="runs, and its state moves on: stop it"):
        uc.evolve(tmp_path / "old", one, to=tmp_path / "new")
    (tmp_path / "in" / "a.parquet").rename(tmp_path / "b.parquet")
    put(tmp_path / "in", "c", THEN)
    uc.evolve(tmp_path / "old", added, to=tmp_path / "elsewhere", history=str(tmp_path / "b.parquet"))
    with pytest.raises(InvalidArgument, match="has not ended a batch since its checkpoint was made of another one"):
        uc.evolve(tmp_path / "elsewhere", one, to=tmp_path / "again")
    (tmp_path / "half" / "former").mkdir(parents=True)
    with pytest.raises(StateMismatch, match=r"was begun by evolve\(\) and not finished"):
        one.to_table(URLS[0].format(tmp_path), checkpoint=tmp_path / "half")


def test_a_combiner_without_a_history_is_null_for_windows_that_began_before(
    url: str, spark: SparkSession, tmp_path: Path
) -> None:
    put(tmp_path / "in", "a", FIRST)
    run(flow(spark, tmp_path, 3, n=uc.Count()), url, tmp_path, "old")
    combiners: dict[str, uc.Combiner] = {"n": uc.Count(), "total": uc.Sum("x")}
    changed = flow(spark, tmp_path, **combiners)
    change = uc.evolve(tmp_path / "old", changed, to=tmp_path / "new", shards=2)
    assert "total= is new, and null for windows that began before the change" in str(change)
    put(tmp_path / "in", "b", [*THEN, (130, "a", 7), (140, "f", 8)])
    rows = run(changed, url, tmp_path, "new")
    began = [row["window_start"].timestamp() < 120 for row in rows]
    whole = expected(tmp_path, **combiners)
    assert rows == [{**row, "total": None} if short else row for row, short in zip(whole, began, strict=True)]
    assert began.count(False) == 2
    kept = uc.checkpoint(tmp_path / "new", spark=spark).rows().to_pylist()
    assert {(row["window"]["start"].timestamp() < 120, row["results"]["total"] is None) for row in kept} == {
        (True, True),
        (False, False),
    }
    again = uc.evolve(tmp_path / "new", flow(spark, tmp_path, sums=uc.Sum("x")), to=tmp_path / "newer")
    assert again.corrections == 4, "nulls were shown as nulls"
    later = run(flow(spark, tmp_path, sums=uc.Sum("x")), url, tmp_path, "newer")
    assert [row["sums"] for row in later] == [row["total"] for row in rows]


def test_a_checkpoint_without_state_is_not_evolved(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    files = uc.Files(str(tmp_path / "in"), format="parquet", order="name", schema=SCHEMA)
    rows = uc.flow(files, spark=spark, streaming=True, watermark="30 seconds", tuning=uc.Tuning(shards=1))
    one = rows.window("1 minute", "each row", allowed_lateness="1 hour").combine(by="user", n=uc.Count())
    run(one, URLS[0], tmp_path, "old")
    with pytest.raises(StateMismatch, match="has stored no state yet, so there is nothing to evolve"):
        uc.evolve(tmp_path / "old", one, to=tmp_path / "new")


def test_equal_results_are_not_shown_again(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a", FIRST)
    run(flow(spark, tmp_path, n=uc.CountIf(uc.col("x") > 0)), URLS[0], tmp_path, "old")
    now = flow(spark, tmp_path, n=uc.CountIf(uc.col("x") >= 1))
    assert uc.evolve(tmp_path / "old", now, to=tmp_path / "new", history=str(tmp_path / "in")).corrections == 0


def test_only_rows_that_the_query_has_read_are_its_history(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a", FIRST)
    run(flow(spark, tmp_path, n=uc.Count()), URLS[0], tmp_path, "old")
    put(tmp_path / "in", "b", THEN)
    now = flow(spark, tmp_path, n=uc.Count(), total=uc.Sum("x"))
    for number, history in enumerate((tmp_path / "in", tmp_path / "linked", tmp_path / "moved")):
        if history.name == "linked":
            history.symlink_to(tmp_path / "in")
        if history.name == "moved":
            history.mkdir()
            (tmp_path / "in" / "a.parquet").rename(history / "a.parquet")
            with pytest.raises(StateMismatch, match="1 of the 1 files that the query has read are not in the history"):
                uc.evolve(tmp_path / "old", now, to=tmp_path / "lost", history=str(tmp_path / "in"))
            assert not (tmp_path / "lost").exists()
        change = uc.evolve(tmp_path / "old", now, to=tmp_path / f"new{number}", history=str(history))
        assert (change.seed.steps[0].rows, change.corrections) == ({"windows": 5}, 10)
    (tmp_path / "moved" / "a.parquet").rename(tmp_path / "in" / "a.parquet")
    assert run(now, URLS[0], tmp_path, "new2") == expected(tmp_path, n=uc.Count(), total=uc.Sum("x"))


def test_a_grouping_that_is_added_begins_with_what_was_shown(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a", FIRST)
    before = flow(spark, tmp_path, n=uc.Count())
    run(before, URLS[0], tmp_path, "old")
    files = uc.Files(str(tmp_path / "in"), order="name")
    rows = uc.flow(files, spark=spark, streaming=True, watermark="30 seconds", tuning=uc.Tuning(shards=2))
    minutes = rows.window("1 minute", "each row", "retracting", allowed_lateness="1 hour")
    hours = minutes.combine(by="user", n=uc.Count()).window("1 hour", "each row").combine(n=uc.Sum("n"))
    change = uc.evolve(tmp_path / "old", hours, to=tmp_path / "new")
    assert [step.fate for step in change.plan.steps][-1] == "begun"
    put(tmp_path / "in", "b", THEN)
    new = URLS[0].replace("totals", "hours")
    assert [row["n"] for row in run(hours, new, tmp_path, "new")] == [len(FIRST) + len(THEN)]
    put(tmp_path / "in", "c", [(66, "b", 1)])
    assert [row["n"] for row in run(hours, new, tmp_path, "new")] == [len(FIRST) + len(THEN) + 1]
