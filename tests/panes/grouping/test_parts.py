"""Steps that would have too many bytes in hand at once, done in parts, against whole ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from seeds import share

import uncombine as uc
from uncombine.panes.grouping import step as step_module
from uncombine.panes.grouping.grouping import Grouping
from uncombine.panes.grouping.operator import Operator
from uncombine.panes.state import store as store_module

SECOND = 1_000_000
SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.string(), "x": pa.int64(), "d": pa.int64()})
LATE = {"allowed_lateness": "2 seconds", "by": "k"}
EARLY = uc.AfterWatermark(early=uc.AfterCount(2), late=uc.AfterCount(1))
DELAYED = uc.Repeatedly(uc.FirstOf(uc.AfterDelay("3 seconds"), uc.AfterWatermark()))
GROUPINGS: dict[str, dict[str, Any]] = {
    "fixed": {"window": uc.Fixed("4 seconds"), "trigger": EARLY, "mode": "retracting", **LATE},
    "no keys": {"window": uc.Fixed("1 second"), "trigger": EARLY, **LATE, "by": ()},
    "gaps": {"window": uc.Sliding("1 second", "3 seconds"), "trigger": DELAYED, **LATE},
    "overlaps, one by one": {"window": uc.Sliding("6 seconds", "2 seconds"), "granularity": "record", **LATE},
    "gaps, one by one": {"window": uc.Sliding("1 second", "3 seconds"), "granularity": "record", **LATE},
    "overlaps, with a window for the late": {
        "window": uc.Sliding("6 seconds", "2 seconds"),
        **LATE,
        "late": "duplicate",
    },
    "sessions": {"window": uc.Sessions("1 second"), "trigger": EARLY, "mode": "retracting", **LATE},
    "sessions of changes": {"window": uc.Sessions("1 second"), "mode": "retracting", "diff": "d", **LATE},
    "percentiles": {
        "window": uc.Fixed("4 seconds"),
        "trigger": uc.Repeatedly(uc.FirstOf(uc.WatermarkPercentile(50), uc.AfterWatermark())),
        **LATE,
    },
    "no end": {"window": uc.Global(), "trigger": uc.Repeatedly(uc.AfterCount(2)), "by": "k"},
}


def bundle(rng: np.random.Generator, batch: int) -> pa.Table:
    size = int(rng.choice([0, 3, 40]))
    columns = [
        rng.integers(max(0, batch - 16) * SECOND, (batch + 8) * SECOND, size),
        rng.choice([f"k{i}" for i in range(30)], size),
        rng.integers(-9, 10, size),
        rng.choice([1, 1, 1, -1], size),
    ]
    return pa.table([pa.array(c).cast(f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def ordered(table: pa.Table) -> list[str]:
    """The rows in an order of their own, without the bags of medians, which can be the same in several ways."""
    bags = [f.name for f in table.schema if f.name.startswith("acc.") and pa.types.is_list(f.type)]
    return sorted(map(repr, table.drop_columns(bags).to_pylist()))


@pytest.mark.weekly
@pytest.mark.parametrize("name", share(GROUPINGS))
def test_a_step_in_parts_is_a_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    grouping = Grouping({"n": uc.Count(), "s": uc.Sum("x"), "m": uc.Median("x")}, **GROUPINGS[name])
    operator, rng = Operator(grouping, SCHEMA), np.random.default_rng(5)
    state = cut = operator.initial()
    taken = []
    take = store_module.Store.take
    monkeypatch.setattr(store_module.Store, "take", lambda self, *args: taken.append(args[2:]) or take(self, *args))
    for batch in range(18):
        rows, mark = bundle(rng, batch), max(0, batch - 4) * SECOND
        times: dict[str, Any] = {"watermark": mark, "processing_time": (batch + 9) * SECOND, "percentiles": {50: mark}}
        whole = operator.step(state, rows, **times)
        with monkeypatch.context() as patch:
            patch.setattr(step_module, "IN_HAND", 1_000)
            patch.setattr(store_module, "CHUNK_BYTES", int(rng.choice([400, 1 << 20])))
            parts = operator.step(cut, rows, **times)
        assert ordered(parts.panes) == ordered(whole.panes)
        assert {why: places.tolist() for why, places in parts.left_out.items() if len(places)} == {
            why: places.tolist() for why, places in whole.left_out.items() if len(places)
        }
        assert parts.output_watermark == whole.output_watermark
        assert operator.next_timer(parts.state) == operator.next_timer(whole.state)
        assert parts.state.counts == whole.state.counts
        state, cut = whole.state, parts.state
        assert ordered(cut.windows.rows()) == ordered(state.windows.rows())
        if state.atoms is not None and cut.atoms is not None:
            assert ordered(cut.atoms.rows()) == ordered(state.atoms.rows())
    assert sum(args[0] is not None for args in taken if args) > 10


def texts(numbers: np.ndarray, size: int) -> pa.Array:
    """A text of so many characters for each number."""
    return pa.array([f"{number:09d}" * (size // 9) for number in numbers.tolist()])


@pytest.mark.soak
def test_more_text_than_an_array_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """2.3 GB of the windows of one shard, taken in hand by one step."""
    monkeypatch.setattr(step_module, "IN_HAND", 128 << 20)
    schema = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "x": pa.string()})
    operator = Operator(Grouping({"m": uc.Max("x")}, uc.Fixed("1 minute"), by="k"), schema)
    state, each, size = operator.initial(), 230, 1_000_000
    for first in range(0, 10 * each, each):
        numbers = np.arange(first, first + each)
        rows = pa.table([pa.array(np.zeros(each, np.int64)), numbers, texts(numbers, size)], names=schema.names)
        state = operator.step(state, rows.cast(schema), watermark=0).state
    assert sum(chunk.table.nbytes for chunk in state.windows.chunks) > 1 << 31
    assert all(chunk.table.nbytes < 1 << 29 for chunk in state.windows.chunks)
    stepped = operator.step(state, schema.empty_table(), watermark=60 * SECOND)
    panes, seen = stepped.panes, 0
    for batch in panes.to_batches():
        for key, text in zip(batch["k"].to_pylist(), batch["m"], strict=True):
            assert text.as_py() == f"{key:09d}" * (size // 9)
            seen += 1
    assert seen == 10 * each
    assert len(stepped.state.windows) == 0
