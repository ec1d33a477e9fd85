"""Rows of a person leave a checkpoint, and what a table shows of them is retracted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from evolved_queries import FIRST, THEN, URLS, expected, flow, put, run
from pyspark.sql import SparkSession

import uncombine as uc
from uncombine.errors import InvalidArgument, StateMismatch, TypeMismatch


def test_a_live_table_has_no_row_of_a_person(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a", FIRST)
    one = flow(spark, tmp_path, n=uc.Count())
    run(one, URLS[0], tmp_path, "old")
    made = uc.checkpoint(tmp_path / "old", spark=spark).delete(where=uc.col("user") == "a", to=str(tmp_path / "new"))
    assert list(made.deleted.values()) == [2]
    assert made.retracted == 2
    assert made.remains[0] == f"the former checkpoint {str(tmp_path / 'old')!r}, until you delete it"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["seed"]
    others = [row for row in expected(tmp_path, n=uc.Count()) if row["user"] != "a"]
    assert run(one, URLS[0], tmp_path, "new") == others, "no new data"
    put(tmp_path / "in", "b", THEN)
    after = run(one, URLS[0], tmp_path, "new")
    assert [row for row in after if row["user"] != "a"] == [
        row for row in expected(tmp_path, n=uc.Count()) if row["user"] != "a"
    ]
    assert [row["n"] for row in after if row["user"] == "a"] == [1], "rows that come later are new ones"


def test_a_later_step_takes_the_rows_out_of_its_contents(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a", FIRST)

    def users(rows: uc.Flow) -> uc.Flow:
        minutes = rows.window("1 minute", "each row", "retracting", allowed_lateness="1 hour")
        return minutes.combine(by="user", n=uc.Count()).window("1 hour", "each row").combine(n=uc.Sum("n"))

    files = uc.Files(str(tmp_path / "in"), order="name")
    two = users(uc.flow(files, spark=spark, streaming=True, watermark="30 seconds", tuning=uc.Tuning(shards=2)))
    assert [row["n"] for row in run(two, URLS[0], tmp_path, "old")] == [5]
    made = uc.checkpoint(tmp_path / "old", spark=spark).delete(user="a", to=str(tmp_path / "new"))
    assert made.remains[0].startswith("step 2, a grouping by (): values inside contents of other keys")
    put(tmp_path / "in", "b", THEN)
    assert [row["n"] for row in run(two, URLS[0], tmp_path, "new")] == [3 + len(THEN)]


def test_a_person_leaves_a_step_that_remembers_rows_when_the_flow_has_a_filter_after_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The way of the page: a filter and a history, one run, and then the deletion of what the step remembers."""
    (tmp_path / "in").mkdir()
    row = pa.schema({"id": pa.int64(), "user": pa.string(), "score": pa.int64(), "ts": pa.timestamp("us", "UTC")})
    files = uc.Files(str(tmp_path / "in"), format="text", order="name")

    def told(name: str, *changes: tuple[str, int, str, int]) -> None:
        lines = []
        for place, (op, key, user, score) in enumerate(changes):
            after = None if op == "d" else {"id": key, "user": user, "score": score, "ts": key}
            before = {"id": key} if op == "d" else None
            lines.append({"op": op, "before": before, "after": after, "source": {"lsn": 10 * ord(name) + place}})
        (tmp_path / "in" / f"{name}.json").write_text("\n".join(map(json.dumps, lines)) + "\n")

    def totals(without: str | None = None) -> uc.Flow:
        changelog = uc.changelog.Debezium(keys="id", order="source.lsn", schema=row)
        rows = uc.flow(
            files, spark=spark, streaming=True, changelog=changelog, watermark="1 hour", tuning=uc.Tuning(shards=2)
        )
        rows = rows if without is None else rows.where(uc.col("user") != without)
        return rows.window("1 day", "each row", "retracting").combine(by="user", total=uc.Sum("score"))

    def shown(without: str | None, checkpoint: str) -> dict[str, int]:
        rows = run(totals(without), URLS[0], tmp_path, checkpoint)
        return {row["user"]: row["total"] for row in rows}

    told("a", ("c", 1, "ada", 3), ("c", 2, "bob", 5), ("c", 3, "ada", 1))
    assert shown(None, "old") == {"ada": 4, "bob": 5}
    change = uc.evolve(tmp_path / "old", totals("ada"), history=files, to=tmp_path / "evolved")
    assert change.remains[0].startswith("step 1, upserts: the last row of each key, also where a filter leaves it out")
    assert shown("ada", "evolved") == {"bob": 5}
    found = uc.checkpoint(tmp_path / "evolved", spark=spark)
    assert "ada" in str(found.rows(1).to_pylist())
    made = found.delete(where=uc.col("user") == "ada", to=tmp_path / "without")
    assert list(made.deleted.values()) == [2, 0]
    told("b", ("u", 2, "bob", 6), ("d", 1, "", 0), ("c", 4, "eve", 7), ("u", 3, "ada", 9), ("d", 3, "", 0))
    assert shown("ada", "without") == {"bob": 6, "eve": 7}
    assert "ada" not in str(uc.checkpoint(tmp_path / "without", spark=spark).rows(1).to_pylist())
    same = uc.Files(str(tmp_path / "in"), format="text", order="name", filter=uc.col("value") != "")
    plan = uc.evolve(tmp_path / "without", totals("ada"), history=same, dry_run=True)
    assert "filter= of files is no part of a flow" in str(plan)
    uc.evolve(tmp_path / "without", totals("eve"), history=files, to=tmp_path / "last")
    with pytest.raises(InvalidArgument, match="since its checkpoint was made of another one"):
        uc.checkpoint(tmp_path / "last", spark=spark).rows(1)


def test_wrong_deletions_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a", FIRST)
    one = flow(spark, tmp_path, n=uc.Count())
    run(one, URLS[0], tmp_path, "old")
    found, new = uc.checkpoint(tmp_path / "old", spark=spark), str(tmp_path / "new")
    wrong: Any = "user = 'a'"
    with pytest.raises(TypeMismatch, match="takes a condition such as"):
        found.delete(where=wrong, to=new)
    with pytest.raises(InvalidArgument, match="names no column"):
        found.delete(where=uc.coalesce(True), to=new)
    with pytest.raises(InvalidArgument, match="the state has 'user'"):
        found.delete(where=uc.col("name") == "a", to=new)
    with pytest.raises(InvalidArgument, match="needs a key or a condition: write user='ada'"):
        found.delete(to=new)
    with pytest.raises(InvalidArgument, match=r"where=col\('who'\) == 'a' reads, .* the state has 'user'"):
        found.delete(who="a", to=new)
    with pytest.raises(InvalidArgument, match=r"where=col\('who'\).is_null\(\) reads"):
        found.delete(who=None, to=new)
    assert not Path(new).exists()
    put(tmp_path / "in", "b", THEN)
    run(one, URLS[0], tmp_path, "old")
    with pytest.raises(InvalidArgument, match="leave at"):
        uc.checkpoint(tmp_path / "old", spark=spark).at(0).delete(where=uc.col("user") == "a", to=new)
    query = one.write_stream(checkpoint=tmp_path / "running").format("noop").start()
    try:
        query.processAllAvailable()
        with pytest.raises(StateMismatch, match="runs, and its state moves on"):
            uc.checkpoint(tmp_path / "running", spark=spark).delete(where=uc.col("user") == "a", to=new)
    finally:
        query.stop()
        query.awaitTermination()


def test_a_sink_gets_the_retractions_with_the_first_batch(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a", FIRST)
    files = uc.Files(str(tmp_path / "in"), order="name")
    rows = uc.flow(files, spark=spark, streaming=True, watermark="30 seconds", tuning=uc.Tuning(shards=2))
    one = rows.window("1 minute", "each row", "retracting").combine(by="user", n=uc.Count())
    out: list[pa.Table] = []

    def written(checkpoint: str) -> list[tuple[str, int, int]]:
        out.clear()
        stream = one.write_stream(checkpoint=tmp_path / checkpoint)
        stream = stream.foreachBatch(lambda df, batch: out.append(df.toArrow()))
        stream.trigger(availableNow=True).start().awaitTermination()
        return [(row["user"], row["n"], row["diff"]) for table in out for row in table.to_pylist()]

    written("old")
    uc.checkpoint(tmp_path / "old", spark=spark).delete(where=uc.col("user") == "a", to=str(tmp_path / "new"))
    put(tmp_path / "in", "b", [(62, "d", 10)])
    assert sorted(written("new")) == [("a", 1, -1), ("a", 1, -1), ("d", 1, -1), ("d", 2, 1)]
