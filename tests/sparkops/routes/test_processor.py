"""Panes of a shard on their way to Spark."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from engine import Engine, Handle, Now
from later import Later
from pyspark.sql import SparkSession
from streams import START, rows_flow

import uncombine as uc
from uncombine.panes.parcels import AT, Parcel
from uncombine.panes.watermarks.watermarks import Watermarks
from uncombine.sparkops.routes import shard_rows
from uncombine.sparkops.routes.shard_processor import ShardProcessor, ShardTask
from uncombine.sparkops.routes.shard_rows import CLOCKS, COUNTS, INPUTS, SHARDS, SOURCES
from uncombine.sparkops.routes.thin_processor import thin
from uncombine.windows.times import MAX_TIME

SCHEMA = pa.schema({"k": pa.string(), "ts": pa.timestamp("us", "UTC"), "v": pa.int64()})


@pytest.mark.weekly
@pytest.mark.parametrize(("packed", "copies"), [(False, 1), (False, 50), (True, 1)])
def test_panes_go_out_in_pieces_of_so_many_bytes(packed: bool, copies: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column that crosses to Spark ends at 2 GiB, however many panes of long texts a batch gives."""
    flow = (
        rows_flow(SCHEMA, watermark=uc.Monotonic(), shards=1)
        .window(uc.Fixed("1 minute"), uc.Always())
        .combine(by="k", n=uc.Count())
    )
    if packed:  # panes with lists travel as parcels
        flow = flow.with_columns(keys=lambda panes: pc.split_pattern(panes["k"], " "))
    if copies > 1:  # a function can give more rows than it was given
        flow = flow.map(lambda panes: pa.concat_tables([panes] * copies))
    keys = [f"{i:03d}" * (2_000 if i == 7 else 10) for i in range(100)]
    rows = pa.Table.from_pylist([{"k": key, "ts": START, "v": 1} for key in keys], SCHEMA)
    monkeypatch.setattr(shard_rows, "OUT_BYTES", 4_000)
    seen: list[pd.DataFrame] = []
    handled = ShardProcessor.handleInputRows

    def watched(*args: object) -> object:
        for frame in handled(*args):  # type: ignore[arg-type]
            seen.append(frame)
            yield frame

    monkeypatch.setattr(ShardProcessor, "handleInputRows", watched)
    panes, counts = Engine(flow).batch(rows, START // 1000)
    assert sorted(panes["k"].to_pylist()) == sorted(keys * copies)
    assert counts[0]["panes_early"] == 100
    assert len(seen) > 5
    assert [frame["counted"].notna().sum() for frame in seen] == [*([0] * (len(seen) - 1)), 1]
    assert len(seen[-1]["counted"].iloc[-1].partition("|")[0].split()) == len(COUNTS) + len(CLOCKS)
    if packed:
        parcels = [Parcel.unpack(payload) for frame in seen for payload in frame["payload"].dropna()]
        assert all(parcel.table.nbytes <= 4_000 or parcel.table.num_rows == 1 for parcel in parcels)
        assert all(frame["payload"].dropna().map(len).sum() <= 4_000 or len(frame) == 1 for frame in seen[:-1])
    else:
        assert all(frame["c0"].str.len().sum() <= 4_000 or len(frame) == 1 for frame in seen[:-1])


def test_counts_are_summed_over_shards_and_clocks_are_those_of_the_slowest(spark: SparkSession) -> None:
    names = (*COUNTS, *CLOCKS)
    shards = [{name: 100 * shard + place for place, name in enumerate(names)} for shard in (1, 2, 3)]
    shards[1]["watermark"] = -MAX_TIME
    for shard in shards:
        shard["output_watermark"] = MAX_TIME  # all are at the end of time
    sources = '[[1, "a|b c", 5, 7, false]]'
    texts = [(shard_rows.as_text(shard, sources if place == 1 else ""),) for place, shard in enumerate(shards)]
    found = spark.createDataFrame([*texts, (None,)], "counted string").agg(shard_rows.counts()).head()
    want = {name: sum(shard[name] for shard in shards) for name in COUNTS}
    want |= {name: min(shard[name] for shard in shards) for name in CLOCKS} | {"output_watermark": None}
    want |= {SHARDS: 3, SOURCES: sources, INPUTS: "[]"}
    assert found["counts"].asDict() == want
    none = spark.createDataFrame([], "counted string").agg(shard_rows.counts()).head()["counts"].asDict()
    assert none == dict.fromkeys(COUNTS, 0) | dict.fromkeys([*CLOCKS, SOURCES]) | {SHARDS: 0, INPUTS: "[]"}


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.string(), ["left", "right"]),
        (pa.struct([("side", pa.int64())]), [{"side": 1}, None]),
        (pa.struct([("timing", pa.string())]), [{"timing": "LATE"}, {"timing": "noon"}]),
    ],
    ids=["text", "another struct", "a struct like it"],
)
def test_a_column_of_the_user_may_be_called_pane(kind: pa.DataType, values: list[object]) -> None:
    """Its values are counted as panes only where they are some."""
    schema = pa.schema({"k": pa.int64(), "ts": pa.timestamp("us", "UTC"), "pane": kind})
    engine = Engine(rows_flow(schema, watermark=uc.Monotonic(), shards=1).distinct("k", within="1 hour"))
    times = pa.array([START, START + 1]).cast(pa.timestamp("us", "UTC"))
    rows = pa.table([pa.array([1, 2]), times, pa.array(values, kind)], schema)
    found, counts = engine.batch(rows, START // 1000)
    assert found["pane"].to_pylist() == rows["pane"].to_pylist()
    assert {counts[0][name] for name in COUNTS if name.startswith("panes_")} == {0}


def test_another_operator_runs_in_a_stream() -> None:
    """The processor knows the protocol of operators alone. A new worker continues each batch from the state."""
    handle, seen = Handle(), list[list[str]]()
    for now, given in [(1, [("a", 5_000), ("b", 9_000)]), (2, [("a", 7_000)]), (8, [("c", 8_000)]), (20, [])]:
        worker = thin(ShardProcessor(ShardTask(Later, (Watermarks(),), {"stage": "1 of 1", "shards": 1}, ("none",))))
        worker.init(handle)
        rows = pa.Table.from_pylist([{"id": id, "due": due, AT: now * 1000} for id, due in given])
        parcels = pd.DataFrame({"payload": [Parcel("rows", rows).pack()] if given else []})
        out = pd.concat(list(worker.handleInputRows((0,), iter([parcels]), Now(now))))
        shown = [Parcel.unpack(payload).table["id"].to_pylist() for payload in out["payload"].dropna()]
        numbers = dict(
            zip((*COUNTS, *CLOCKS), map(int, out["counted"].dropna().iloc[-1].partition("|")[0].split()), strict=True)
        )
        seen.append([*(id for ids in shown for id in ids), str(numbers["windows_held"]), *map(str, handle.timers)])
    assert seen == [["2", "5"], ["2", "7"], ["a", "c", "1", "9"], ["b", "0"]]
