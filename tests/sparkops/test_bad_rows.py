"""Rows of files that cannot be read, on Spark: those that this process leaves out, in batch and in streams."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import uncombine as uc
from uncombine.files.file_format import FileFormat
from uncombine.files.unreadable_rows import UNREADABLE
from uncombine.sparkops import files_input
from uncombine.sparkops.naming import query_of_task
from uncombine.sparkops.planners.data_source import LIMITS
from uncombine.sparkops.progress import progress_of

pytestmark = pytest.mark.spark

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "user": pa.string(), "x": pa.int64(), "more": pa.int64()})
TIME = "2024-01-01T00:0{}:00Z"


def csv(folder: Path) -> None:
    """Two files of rows, of which some are bad, one of them in a column that no flow here needs."""
    folder.mkdir(parents=True)
    good = [f"{TIME.format(i % 3)},{'ada' if i % 2 else 'bob'},{i},1" for i in range(40)]
    bad = ["2024-01-01,ada", f"{TIME.format(0)},ada,many,1", "later,ada,5,1", f"{TIME.format(0)},eve,7,?"]
    (folder / "a.csv").write_text("\n".join(["ts,user,x,more", *good[:20], *bad, *good[20:30]]))
    (folder / "b.csv").write_text("\n".join(["ts,user,x,more", *good[30:], f",{'null time'},1,1"]))


def json_lines(folder: Path) -> None:
    folder.mkdir(parents=True)
    rows = [{"ts": TIME.format(i % 3), "user": "ada", "x": i} for i in range(20)]
    lines = [*map(json.dumps, rows), "no json", '{"ts": "2024-01-01T00:00:00Z", "x": 1.5}', json.dumps({"x": 3})]
    (folder / "a.json").write_text("\n".join(lines))


def minutes(flow: uc.Flow) -> uc.Flow:
    return flow.window("1 minute").combine(by="user", total=uc.Sum("x"))


def here(folder: Path, **options: Any) -> tuple[Counter[Any], Counter[Any]]:
    """The panes and the rows left out of a run in this process."""
    result = minutes(uc.flow(uc.Files(folder, schema=SCHEMA, on_bad_row="leave_out"), **options)).run()
    return panes_of(result.to_pylist()), left_out_of(result.left_out.to_pylist())


def panes_of(rows: list[dict[str, Any]]) -> Counter[Any]:
    return Counter((row["user"], row["window"]["start"].timestamp(), row["total"]) for row in rows)


def left_out_of(rows: list[dict[str, Any]]) -> Counter[Any]:
    told = ("stage", "side", "why", "file", "line", "text")
    return Counter((*(row[name] for name in told), row["row"] and row["row"]["x"]) for row in rows)


def dicts(df: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in df.collect()]


@pytest.mark.parametrize("write", [csv, json_lines])
def test_rule_68_bounded_files(write: Any, spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in")
    panes, left_out = here(tmp_path / "in")
    assert sum(left_out.values()) >= 3
    assert {why for _, _, why, *_ in left_out} == {"bad", "unreadable"}
    flow = minutes(uc.flow(uc.Files(tmp_path / "in", schema=SCHEMA, on_bad_row="leave_out"), spark=spark))
    assert panes_of(dicts(flow.df)) == panes
    assert left_out_of(dicts(flow.left_out)) == left_out
    strict = minutes(uc.flow(uc.Files(tmp_path / "in", schema=SCHEMA), spark=spark))
    with pytest.raises(Exception, match=r"cannot be read: line 2[12]: .*on_bad_row='leave_out'"):
        strict.df.collect()


@pytest.mark.parametrize("write", [csv, json_lines])
def test_rule_68_a_stream_leaves_them_out_and_counts_them(write: Any, spark: SparkSession, tmp_path: Path) -> None:
    """Without an option, with the rows beside the panes, and by the panes alone."""
    write(tmp_path / "in")
    panes, left_out = here(tmp_path / "in", watermark="1 minute")
    files = uc.Files(tmp_path / "in", schema=SCHEMA)
    flow = minutes(uc.flow(files, spark=spark, streaming=True, watermark=uc.EachBatch()))
    shown, rows = list[dict[str, Any]](), list[dict[str, Any]]()

    def keep(batch: DataFrame, beside: DataFrame, number: int) -> None:
        shown.extend(dicts(batch))
        rows.extend(dicts(beside))

    query = (
        flow.foreach_batch(keep).option("checkpointLocation", str(tmp_path / "one")).trigger(availableNow=True).start()
    )
    query.awaitTermination()
    assert (panes_of(shown), left_out_of(rows)) == (panes, left_out)
    counts = [flow for one in query.recentProgress for flow in progress_of(one).flows.values()]
    unreadable = sum(n for (_, _, why, *_), n in left_out.items() if why == "unreadable")
    assert sum(one.rows_unreadable for one in counts) == unreadable > 0
    assert re.search(rf"\d+ rows left out \(.*\b{unreadable} unreadable\), watermark", str(counts[0]))

    alone = list[dict[str, Any]]()
    writer = flow.write_stream(checkpoint=tmp_path / "two").foreachBatch(lambda df, _: alone.extend(dicts(df)))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    assert panes_of(alone) == panes
    [one] = [flow for one in query.recentProgress for flow in progress_of(one).flows.values() if flow.rows_unreadable]
    assert one.rows_unreadable == unreadable


@pytest.mark.skipif(not LIMITS, reason="limits of batches need Spark 4.2")
def test_rule_68_files_in_an_order(spark: SparkSession, tmp_path: Path) -> None:
    """The watermark waits for the second file, whose rows would be late, beside unreadable rows of the first."""
    csv(tmp_path / "in")
    _, left_out = here(tmp_path / "in", watermark="1 minute")
    files = uc.Files(tmp_path / "in", schema=SCHEMA, order="time", max_files_per_batch=1)
    options: dict[str, Any] = {"watermark": "0 s", "tuning": uc.Tuning(wake=False)}
    flow = minutes(uc.flow(files, spark=spark, streaming=True, **options))
    rows, numbers = list[dict[str, Any]](), list[int]()

    def keep(batch: DataFrame, beside: DataFrame, number: int) -> None:
        rows.extend(dicts(beside))
        numbers.append(number)

    query = (
        flow.foreach_batch(keep).option("checkpointLocation", str(tmp_path / "one")).trigger(availableNow=True).start()
    )
    query.awaitTermination()
    assert (left_out_of(rows), len(numbers) > 1) == (left_out, True)


def test_rule_68_a_replay_leaves_them_out_unless_it_is_told_otherwise(spark: SparkSession, tmp_path: Path) -> None:
    csv(tmp_path / "in")
    for given in (spark, None):
        options: dict[str, Any] = {"watermark": "1 minute", "processing_time": "ts"}
        source = uc.flow(uc.Files(tmp_path / "in", schema=SCHEMA), spark=given, **options).replay(close_at_end=True)
        flow = minutes(source)
        panes = dicts(flow.df) if given else flow.run().to_pylist()
        assert panes_of(panes) == here(tmp_path / "in")[0]
        rows = dicts(flow.left_out) if given else flow.run().left_out.to_pylist()
        assert sum(row["why"] == "unreadable" for row in rows) == 3
        strict = uc.Files(tmp_path / "in", schema=SCHEMA, on_bad_row="error")
        flow = minutes(uc.flow(strict, spark=given, **options).replay(close_at_end=True))
        with pytest.raises(Exception, match="line 22"):
            _ = dicts(flow.df) if given else flow.run()


def test_rule_68_unions_joins_and_flows_without_a_step(spark: SparkSession, tmp_path: Path) -> None:
    csv(tmp_path / "in")
    json_lines(tmp_path / "other")

    def both(given: SparkSession | None) -> list[uc.Flow]:
        sources = [
            uc.flow(uc.Files(tmp_path / folder, schema=SCHEMA, on_bad_row="leave_out"), spark=given, name=folder)
            for folder in ("in", "other")
        ]
        return [minutes(uc.union(*sources)), sources[0].join(sources[1], on="user", within=("0 s", "1 minute"))]

    for mine, theirs in zip(both(None), both(spark), strict=True):
        result = mine.run()
        wanted = Counter((r["stage"], r["side"], r["why"], r["file"], r["line"]) for r in result.left_out.to_pylist())
        found = Counter((r["stage"], r["side"], r["why"], r["file"], r["line"]) for r in dicts(theirs.left_out))
        assert found == wanted
        assert sum(why == "unreadable" for _, _, why, *_ in wanted.elements()) == 6, (
            "a union and a join take all columns"
        )
        assert theirs.df.count() == result.num_rows
    plain = uc.flow(uc.Files(tmp_path / "in", schema=SCHEMA, on_bad_row="leave_out"), spark=spark)
    assert (
        plain.df.count()
        == uc.flow(uc.Files(tmp_path / "in", schema=SCHEMA, on_bad_row="leave_out")).run().num_rows
        == 41
    )


def test_rule_64_messages_in_files(spark: SparkSession, tmp_path: Path) -> None:
    """A line that is no message of a changelog, and a message that is bad, are treated alike."""
    tmp_path.joinpath("in").mkdir()
    row = {"ts": "2024-01-01T00:00:00Z", "user": "ada", "x": 1}
    lines = [json.dumps({**row, "op": op}) for op in ("c", "c", "d", "?")]
    (tmp_path / "in" / "a.json").write_text("\n".join([*lines, "no json"]))
    schema = pa.schema([*SCHEMA.remove(3), ("op", pa.string())])
    form = uc.changelog.Ops("op", {"c": 1, "d": -1})
    for given in (None, spark):
        left = minutes(
            uc.flow(uc.Files(tmp_path / "in", schema=schema, on_bad_row="leave_out"), spark=given, changelog=form)
        )
        panes = left.run().to_pylist() if given is None else dicts(left.df)
        rows = left.run().left_out.to_pylist() if given is None else dicts(left.left_out)
        assert [pane["total"] for pane in panes] == [1]
        assert sorted(row["why"] for row in rows) == ["bad", "unreadable"]
        strict = minutes(uc.flow(uc.Files(tmp_path / "in", schema=schema), spark=given, changelog=form))
        with pytest.raises(Exception, match=r"line 5|must be one of c, d"):
            _ = strict.run() if given is None else dicts(strict.df)


def test_the_log_of_a_task_names_the_query_and_the_batch(spark: SparkSession, tmp_path: Path) -> None:
    """With its id where it has no name; a task of no stream names none."""

    def told(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from (pa.RecordBatch.from_pydict({"told": [query_of_task()]}) for _ in batches)

    assert {row.told for row in spark.range(1).mapInArrow(told, "told string").collect()} == {""}
    texts = set[str]()
    rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    writer = rates.mapInArrow(told, "told string").writeStream.trigger(once=True)
    writer = writer.foreachBatch(lambda df, _: texts.update(row.told for row in df.collect()))
    writer.queryName("sales of a day").option("checkpointLocation", str(tmp_path / "a")).start().awaitTermination()
    assert texts == {" (query 'sales of a day', batch 0)"}
    texts.clear()
    nameless = rates.mapInArrow(told, "told string").writeStream.trigger(once=True)
    nameless = nameless.foreachBatch(lambda df, _: texts.update(row.told for row in df.collect()))
    query = nameless.option("checkpointLocation", str(tmp_path / "b")).start()
    query.awaitTermination()
    assert texts == {f" (query id {query.id}, batch 0)"}


def test_the_log_of_a_task_names_the_first_line_of_the_first_file(capsys: pytest.CaptureFixture[str]) -> None:
    """Rows are not found in the order of their lines, since some are screened before the others are tried."""

    def read(*_: Any, leave_out: Callable[[pa.Table], None]) -> Iterator[pa.Table]:
        for file, lines in (("/in/a", [12, 10]), ("/in/a", [6]), ("/in/b", [2])):
            leave_out(
                pa.table(
                    [[file] * len(lines), lines, ["?"] * len(lines), [f"'{line}?' is no int64" for line in lines]],
                    schema=UNREADABLE,
                )
            )
        yield from ()

    def task(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        yield from (batch for table in tables for batch in table.to_batches())

    split = pa.RecordBatch.from_pydict({"path": ["/in/a"], "first": [None], "last": [None]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files_input, "read", read)
        form = FileFormat("csv", SCHEMA, "/in")
        list(files_input.ReadFiles(form, task, ("x",), None, packed=False)([split]))
    told = "left out: 4 rows that cannot be read, the first at /in/a, line 6: '6?' is no int64, so give schema= if"
    assert f"{told} the value is right (double for numbers with fractions)" in capsys.readouterr().err
