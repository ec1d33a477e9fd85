"""The rows of the shuffle: parcels that are large cross it in parts, and come out as they went in."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest
from combining import drawn_combining
from seeds import seeds

from uncombine.sparkops import wire
from uncombine.sparkops.session import SETTINGS
from uncombine.sparkops.wire import PART_BYTES, WIRE, in_parts, payloads, whole, wire_batch

Row = tuple[int, int, bytes]


def drawn_rows(draw: random.Random, most: int) -> list[Row]:
    """Rows, some of them equal, with payloads around the length of a part, and with those that look like parts."""
    rows: list[Row] = []
    for _ in range(draw.randrange(1, 12)):
        size = draw.choice([0, 1, most - 1, most, most + 1, 2 * most, draw.randrange(5 * most)])
        start = draw.choice([b"", b"", wire._PART])
        rows.append((draw.randrange(3), draw.randrange(3), start + draw.randbytes(size)))
        if draw.random() < 0.3:
            rows.append(rows[-1])
    return rows


@pytest.mark.parametrize("seed", seeds(300))
def test_parcels_come_out_as_they_went_in(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In any order of the parts, in batches of any size."""
    draw = random.Random(seed)
    most = draw.choice([1, 7, 100, 5000])
    monkeypatch.setattr(wire, "PART_BYTES", most)
    rows = drawn_rows(draw, most)
    sent = wire_batch(rows)
    assert sent.schema == WIRE
    assert max(map(len, sent["payload"].to_pylist())) <= most + 32
    order = list(range(sent.num_rows))
    if draw.random() < 0.8:
        draw.shuffle(order)
    cut = draw.randrange(len(order) + 1)
    table = pa.Table.from_batches([sent])
    batches = [b for part in (order[:cut], order[cut:]) for b in table.take(pa.array(part, pa.int64())).to_batches()]
    got = [(shard, lo, payload.to_pybytes()) for shard, lo, payload in payloads(batches)]
    assert Counter(got) == Counter(rows)


def test_parcels_in_order_stay_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """A merging task takes it that no parcel comes after those of a later place."""
    monkeypatch.setattr(wire, "PART_BYTES", 10)
    rows = [(0, lo, bytes([lo]) * size) for lo, size in enumerate([5, 35, 10, 11, 200, 1])]
    assert [(shard, lo, payload.to_pybytes()) for shard, lo, payload in payloads([wire_batch(rows)])] == rows


def test_a_small_parcel_travels_as_it_is() -> None:
    rows = [(1, 2, b"x" * PART_BYTES)]
    assert list(in_parts(rows)) == rows


@pytest.mark.parametrize("lost", [0, 1, 3])
def test_a_part_that_is_lost_is_an_error(lost: int) -> None:
    rows = list(in_parts([(0, 0, b"y" * (3 * PART_BYTES + 1)), (0, 0, b"small")]))
    assert len(rows) == 5
    with pytest.raises(ValueError, match="1 parcels came without some of their parts"):
        list(whole(rows[:lost] + rows[lost + 1 :]))


def test_a_batch_of_parcels_has_64_megabytes_at_most() -> None:
    """Spark sends so many rows to Python at once, whatever bytes they have."""
    assert SETTINGS["spark.sql.execution.arrow.maxBytesPerBatch"] == str(2**31 - 1)
    assert int(SETTINGS["spark.sql.execution.arrow.maxRecordsPerBatch"]) * (PART_BYTES + 32) <= 64 << 20


def test_random_flows_draw_the_length_of_a_part() -> None:
    lengths = set()
    for seed in range(50):
        with drawn_combining(seed):
            lengths.add(wire.PART_BYTES)
    assert min(lengths) < 100
    assert PART_BYTES in lengths
