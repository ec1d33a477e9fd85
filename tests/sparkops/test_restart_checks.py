"""Restarts of changed flows as real queries: refused on the driver before they start, or gone on with."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flow_changes import ON, PAIRS, REAL, SCHEMA, again, counted
from opened import opened
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from seeds import share
from streams import START, changed, read_stream, written

import uncombine as uc
from uncombine.cli.command_line import main
from uncombine.errors import InvalidArgument, StateMismatch
from uncombine.sparkops import restarts
from uncombine.sparkops.checkpoints.before_restart import check_restart

ONCE = {"availableNow": True}
SECOND = 1_000_000


@pytest.fixture(autouse=True)
def _quick(spark: SparkSession) -> Iterator[None]:
    with changed(spark):
        yield


def rows(second: int, schema: pa.Schema = SCHEMA) -> pa.Table:
    made = [
        {
            "id": i,
            "k": "ab"[i % 2],
            "j": "x",
            "v": i,
            "d": 1,
            "ts": START + second * 1_000_000 + i,
            "at": START,
            "gap": 9,
        }
        for i in range(4)
    ]
    return pa.Table.from_pylist(made, schema)


def source_of(spark: SparkSession, folder: Path) -> Callable[..., Any]:
    def source(schema: pa.Schema = SCHEMA, **settings: Any) -> uc.Flow:
        options = {"watermark": "1 minute", "shards": 2, **settings}
        return opened(read_stream(spark, folder, schema), **options)

    return source


def more(folder: Path) -> None:
    """Another file for the next batch."""
    pq.write_table(rows(90), folder / "rows" / "90000.parquet")


def run(writer: Any) -> None:
    query = writer.format("noop").trigger(**ONCE).start()
    query.awaitTermination()


def restart(name: str, spark: SparkSession, folder: Path) -> None:
    """A changed flow on the checkpoint of the first one."""
    pair, place = PAIRS[name], str(folder / "checkpoint")
    source = source_of(spark, written([rows(0)], folder / "rows"))
    run(pair.before(source).write_stream(checkpoint=place))
    more(folder)
    after = pair.after(source)
    if pair.told == ON:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            run(after.write_stream(checkpoint=place))
        return
    with pytest.raises(StateMismatch) as refused:
        after.write_stream(checkpoint=place)
    assert pair.told in str(refused.value)
    if pair.same:
        run(after.write_stream(checkpoint=place, same=pair.same))
        run(after.write_stream(checkpoint=place))  # it is that of the changed flow now


@pytest.mark.parametrize("name", share(REAL))
def test_a_changed_flow_is_refused_before_its_query_starts(name: str, spark: SparkSession, tmp_path: Path) -> None:
    restart(name, spark, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("name", PAIRS)
def test_every_change_as_a_real_query(name: str, spark: SparkSession, tmp_path: Path) -> None:
    restart(name, spark, tmp_path)


def test_a_bare_writer_refuses_in_the_first_batch(spark: SparkSession, tmp_path: Path) -> None:
    source = source_of(spark, written([rows(0)], tmp_path / "rows"))
    pair, place = PAIRS["a key"], str(tmp_path / "checkpoint")
    run(pair.before(source).df.writeStream.option("checkpointLocation", place))
    more(tmp_path)
    with pytest.raises(StreamingQueryException, match=r"StateMismatch: .*part of with_columns 1 was col\('id'\) % 4"):
        run(pair.after(source).df.writeStream.option("checkpointLocation", place))


def test_a_live_table_is_refused_before_its_query_starts(spark: SparkSession, tmp_path: Path) -> None:
    source = source_of(spark, written([rows(0)], tmp_path / "rows"))
    place, url = str(tmp_path / "checkpoint"), f"duckdb:///{tmp_path}/live.db#panes"

    def start(least: int, **options: Any) -> uc.LiveTable:
        flow = counted(source(), **again()).where(uc.col("n") > least)
        return flow.to_table(url, checkpoint=place, trigger=ONCE, **options)

    start(0).awaitTermination()
    with pytest.raises(
        StateMismatch, match=r"where 1 was col\('n'\) > 0 and is col\('n'\) > 1; .*give same=\('where 1'"
    ):
        start(1)
    with pytest.raises(InvalidArgument, match=r"same= names 'where 2'"):
        start(1, same=("where 2",))
    start(1, same=("where 1",)).awaitTermination()


def test_what_an_earlier_version_did_not_note_is_told(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = source_of(spark, written([rows(0)], tmp_path / "rows"))
    place = str(tmp_path / "checkpoint")
    run(counted(source()).write_stream(checkpoint=place))
    noted = restarts.stored_fingerprints(spark, place)
    earlier = [{name: value for name, value in one.items() if name not in ("steps", "code")} for one in noted]
    monkeypatch.setattr(restarts, "stored_fingerprints", lambda *_: earlier)
    with pytest.warns(UserWarning, match=r"that did not note the steps before it, its functions: they are taken for"):
        counted(source()).write_stream(checkpoint=place)


def test_a_checkpoint_that_spark_cannot_read_is_left_to_the_first_batch(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "checkpoint" / "commits").mkdir(parents=True)
    (tmp_path / "checkpoint" / "commits" / "0").write_text("v1\n{}")
    assert restarts.stored_fingerprints(spark, str(tmp_path / "checkpoint")) == []
    assert restarts.stored_fingerprints(spark, str(tmp_path / "nowhere")) == []


def test_a_bounded_flow_has_no_stream_to_write(spark: SparkSession, tmp_path: Path) -> None:
    flow = uc.flow(spark.createDataFrame(rows(0).to_pandas()))
    with pytest.raises(
        InvalidArgument, match=r"this flow is bounded: write flow\.df\.write or flow\.to_table\(target\)"
    ):
        flow.write_stream(checkpoint=str(tmp_path))
    with pytest.raises(InvalidArgument, match=r"has no stream to write"):
        uc.flow(SCHEMA).write_stream(checkpoint=str(tmp_path))


def test_the_command_says_what_a_restart_would_do(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = source_of(spark, written([rows(0)], tmp_path / "rows"))
    place = str(tmp_path / "checkpoint")
    module = tmp_path / "mine_flows.py"
    module.write_text("made = {}\ndef changed(): return made['flow']\nnothing = 3\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import mine_flows

    def check(name: str, *options: str) -> tuple[int, str]:
        mine_flows.made["flow"] = PAIRS[name].after(source)
        code = main(["check", "mine_flows:changed", "--checkpoint", place, *options])
        return code, capsys.readouterr().out

    mine_flows.made["flow"] = PAIRS["a key"].after(source)
    for mistyped in (tmp_path / "chekpoint", tmp_path / "rows"):
        assert main(["check", "mine_flows:changed", "--checkpoint", str(mistyped)]) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert f"'{mistyped}' is no checkpoint of a streaming query: it has no file 'metadata'" in told.err
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "metadata").write_text('{"id": "4"}')
    assert check("a key") == (0, f"{place} has no state: the query starts from nothing\n")
    shutil.rmtree(place)
    run(PAIRS["a key"].before(source).write_stream(checkpoint=place))
    code, text = check("a key")
    assert code == 1
    assert text.startswith("stage 1, a grouping by (part: int64): refused\n  part of with_columns 1 was col('id') % 4")
    assert "give same=('with_columns 1',)" in text
    assert check("a key", "--same", "with_columns 1") == (0, "stage 1, a grouping by (part: int64): goes on\n")
    code, text = check("a key", "--json")
    told = json.loads(text)
    assert (code, told["goes_on"], told["unknown"]) == (1, False, [])
    assert told["steps"][0]["refused"] == ["part of with_columns 1 was col('id') % 4 and is col('id') % 5"]
    assert main(["check", "mine_flows:nothing", "--checkpoint", place]) == 2
    assert "mine_flows:nothing is a int, and check takes a flow" in capsys.readouterr().err


def test_an_open_mode_is_that_of_the_table_that_the_checkpoint_is_of(spark: SparkSession, tmp_path: Path) -> None:
    source = source_of(spark, written([rows(0)], tmp_path / "rows"))

    def flow(size: str) -> uc.Flow:
        return source().window(size, allowed_lateness="10 minutes").combine(n=uc.Count())

    table, plain = str(tmp_path / "table"), str(tmp_path / "plain")
    with flow("5 minutes").to_table(
        f"duckdb:{tmp_path}/live.db#n", checkpoint=table, trigger={"availableNow": True}
    ) as live:
        live.awaitTermination()
    run(flow("5 minutes").write_stream(checkpoint=plain))
    for place in (table, plain):
        assert check_restart(flow("5 minutes"), place).refusal is None
        (step,) = check_restart(flow("10 minutes"), place).steps
        assert [change.text for change in step.changes] == ["window was Fixed('5 minutes') and is Fixed('10 minutes')"]


def test_a_source_without_rows_yet_is_no_change(spark: SparkSession, tmp_path: Path) -> None:
    full = source_of(spark, written([rows(0)], tmp_path / "rows"))
    none = source_of(spark, written([], tmp_path / "none"))
    one, other = counted(full(name="a"), **again()), counted(none(name="b"), **again())
    flow = one.join(other, on="k", within=("0 s", "1 hour"), suffixes=("_a", "_b"))
    place = str(tmp_path / "checkpoint")
    for _ in range(2):
        run(flow.write_stream(checkpoint=place))
        more(tmp_path)
