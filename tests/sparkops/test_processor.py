"""Panes of a shard on their way to Spark."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest
from engine import Engine, Handle, Now
from later import Later
from streams import START, rows_flow

import uncombine as uc
from uncombine.panes.shard.parcels import AT, Parcel
from uncombine.sparkops.routes import shard_processor as processor
from uncombine.sparkops.routes.shard_processor import CLOCKS, COUNTS, ShardProcessor, ShardTask

SCHEMA = pa.schema({"k": pa.string(), "ts": pa.timestamp("us", "UTC"), "v": pa.int64()})


def test_panes_go_out_in_pieces_of_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column that crosses to Spark ends at 2 GiB, however many panes of long texts a batch gives."""
    flow = (
        rows_flow(SCHEMA, watermark=uc.Monotonic(), shards=1)
        .window(uc.Fixed("1 minute"), uc.Always())
        .combine(by="k", n=uc.Count())
    )
    keys = [f"{i:03d}" * (2_000 if i == 7 else 10) for i in range(100)]
    rows = pa.Table.from_pylist([{"k": key, "ts": START, "v": 1} for key in keys], SCHEMA)
    monkeypatch.setattr(processor, "OUT_BYTES", 4_000)
    seen: list[pd.DataFrame] = []
    handled = ShardProcessor.handleInputRows

    def watched(*args: object) -> object:
        for frame in handled(*args):  # type: ignore[arg-type]
            seen.append(frame)
            yield frame

    monkeypatch.setattr(ShardProcessor, "handleInputRows", watched)
    panes, counts = Engine(flow).batch(rows, START // 1000)
    assert sorted(panes["k"].to_pylist()) == sorted(keys)
    assert counts[0]["panes_early"] == 100
    assert len(seen) > 5
    parcels = [Parcel.unpack(payload) for frame in seen for payload in frame["payload"].dropna()]
    assert all(parcel.table.nbytes <= 4_000 or parcel.table.num_rows == 1 for parcel in parcels)
    assert all(frame["payload"].dropna().map(len).sum() <= 4_000 or len(frame) == 1 for frame in seen[:-1])
    assert [frame["numbers"].notna().sum() for frame in seen] == [*([0] * (len(seen) - 1)), 1]
    assert len(seen[-1]["numbers"].iloc[-1]) == len(COUNTS) + len(CLOCKS)


def test_another_operator_runs_in_a_stream() -> None:
    """The processor knows the protocol of operators alone. A new worker continues each batch from the state."""
    handle, seen = Handle(), list[list[str]]()
    for now, given in [(1, [("a", 5_000), ("b", 9_000)]), (2, [("a", 7_000)]), (8, [("c", 8_000)]), (20, [])]:
        worker = ShardProcessor(ShardTask(Later, (uc.Watermarks(),), {}, ("none",)))
        worker.init(handle)
        rows = pa.Table.from_pylist([{"id": id, "due": due, AT: now * 1000} for id, due in given])
        parcels = pd.DataFrame({"payload": [Parcel("rows", rows).pack()] if given else []})
        out = pd.concat(list(worker.handleInputRows((0,), iter([parcels]), Now(now))))
        shown = [Parcel.unpack(payload).table["id"].to_pylist() for payload in out["payload"].dropna()]
        numbers = dict(zip((*COUNTS, *CLOCKS), out["numbers"].dropna().iloc[-1], strict=True))
        seen.append([*(id for ids in shown for id in ids), str(numbers["windows_held"]), *map(str, handle.timers)])
    assert seen == [["2", "5"], ["2", "7"], ["a", "c", "1", "9"], ["b", "0"]]
