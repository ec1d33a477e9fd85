"""Rows that come to no step: what cannot be read of them is counted and shown, in streams, replays and live tables."""

from __future__ import annotations

import json
import logging
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from bounded import Bounded, cut
from opened import flow_over
from pyspark.sql import SparkSession
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.flows.settings import Settings
from uncombine.sparkops.naming import parsed

ROW = pa.schema({"ts": pa.timestamp("us", "UTC"), "id": pa.int64(), "x": pa.int64()})
FORM = uc.changelog.Debezium(schema=ROW)


def row(number: int) -> dict[str, int]:
    return {"ts": number, "id": number, "x": number}


def drawn(seed: int) -> tuple[list[str], list[int], int]:
    """Messages, the rows that are left of them in the order of their ids, and the number of bad ones."""
    r, texts, ids, bad = random.Random(seed), list[str](), list[int](), 0
    for number in range(r.randrange(1, 20)):
        good = r.random() < 0.6
        wrong = r.choice(["oops", "[]", '{"op": "?"}', json.dumps({"op": "u", "before": None, "after": row(number)})])
        texts.append(json.dumps({"op": "c", "after": row(number)}) if good else wrong)
        ids += [number] if good else []
        bad += not good
    return texts, ids, bad


@pytest.mark.parametrize("seed", seeds(5, 200))
def test_every_message_is_a_row_or_is_left_out(seed: int) -> None:
    """In this process and in a replay on Spark; a run over a table ends with an error instead."""
    texts, ids, bad = drawn(seed)
    messages = pa.table({"value": texts})
    local = uc.flow(messages.schema, changelog=FORM)
    half = len(texts) // 2
    result = local.run([uc.Elements(messages.slice(0, half)), uc.Elements(messages.slice(half))])
    assert sorted(result["id"].to_pylist()) == ids
    assert result.counts() == {"bad": bad, "unreadable": 0}
    assert Counter(result.left_out["why"].to_pylist()) == Counter({"bad": bad} if bad else {})
    assert Counter(result.left_out["stage"].to_pylist()) == Counter({None: bad} if bad else {})
    settings = Settings("ts", "20 seconds", processing_time="ts", replay=True)
    replay = flow_over(Bounded(cut(messages, 2, seed), messages.schema, seed), settings, FORM)
    assert sorted(replay.df.toArrow()["id"].to_pylist()) == ids
    if bad:
        with pytest.raises(InvalidArgument, match=r"."):
            uc.flow(messages, changelog=FORM).run()


@pytest.mark.parametrize("seed", seeds(3, 50))
def test_a_union_counts_the_messages_of_its_parts(seed: int) -> None:
    (one, ids, bad), (other, more, worse) = drawn(seed), drawn(seed + 1000)
    schema = pa.schema({"value": pa.string()})
    direct, ordered = (uc.flow(schema, changelog=FORM, name=name) for name in "ab")
    names = ["event_time", "id", "x", "diff"]
    union = uc.union(direct.rename(ts="event_time").select(*names), ordered.in_order().select(*names))
    script = [uc.Elements(pa.table({"value": texts}), input=name) for name, texts in (("a", one), ("b", other))]
    result = union.run([*script, uc.Watermark(None)])
    assert Counter(result["id"].to_pylist()) == Counter(ids) + Counter(more)
    assert result.counts()["bad"] == bad + worse == result.left_out.num_rows


@pytest.mark.spark
def test_a_live_table_counts_and_logs_what_it_leaves_out(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    update = json.dumps({"op": "u", "before": None, "after": row(2)})
    (folder / "a.txt").write_text("\n".join(["oops", json.dumps({"op": "c", "after": row(1)}), update]))

    def orders() -> uc.Flow:
        lines = spark.readStream.schema("value string").text(str(folder))
        return uc.flow(lines, watermark="1 minute", changelog=FORM)

    with caplog.at_level(logging.INFO, "uncombine"):
        live = orders().to_table(
            f"duckdb:{tmp_path}/o.db#o", keys="id", checkpoint=tmp_path / "c", trigger={"availableNow": True}
        )
        live.awaitTermination()
        progress: Any = uc.progress(live)
        assert [one["id"] for one in live.arrow().to_pylist()] == [1]
        assert (progress.rows_bad, progress.stages) == (2, ())
        spark._jsparkSession.sparkContext().listenerBus().waitUntilEmpty()
    assert any("2 bad messages left out" in record.getMessage() for record in caplog.records)
    with pytest.raises(InvalidArgument, match="no step that keeps state"):
        uc.checkpoint(live).counts()
    found: list[Any] = []
    query = orders().left_out.writeStream.foreachBatch(lambda df, _: found.extend(df.collect()))
    query.option("checkpointLocation", str(tmp_path / "l")).trigger(availableNow=True).start().awaitTermination()
    assert [(one.stage, one.why) for one in found] == [(None, "bad")] * 2
    numbered = tmp_path / "json"
    numbered.mkdir()
    (numbered / "a.json").write_text('{"ts": 1}\n{"ts": "x"}\n{"ts": 3}\n')
    lines = uc.Files(numbered, schema=pa.schema({"ts": pa.int64()}))
    files = uc.flow(lines, spark=spark, streaming=True, watermark="1 minute", time_format="s")
    writer = files.write_stream(checkpoint=tmp_path / "f").format("noop").trigger(availableNow=True)
    plain = writer.start()
    plain.awaitTermination()
    told: Any = uc.progress(plain)
    assert (told.rows_unreadable, told.rows_bad) == (1, 0)
    assert any(map(parsed, plain.lastProgress["observedMetrics"]))
