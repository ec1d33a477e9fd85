"""Sources of which it is known how far they are read: none that lags is idle, and an empty one holds nothing long."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest

from uncombine.panes.parcels import READS, Parcel
from uncombine.panes.shard.arrivals import arrivals
from uncombine.panes.watermarks.stored_watermarks import read_extra, restored, stored, together
from uncombine.panes.watermarks.watermarks import InputWatermarks, Read, Watermarks
from uncombine.windows.times import MIN_TIME


def told(marks: Watermarks, now: int, reports: dict[str, int], **reads: bool) -> Watermarks:
    """Partitions by their names, each True if it is idle."""
    return marks.told(list(reports.items()), now, reads={name: Read(0, 0, idle) for name, idle in reads.items()})


def test_rule_75_a_partition_that_has_not_spoken_holds_until_it_is_idle() -> None:
    marks = told(Watermarks(), 0, {"a": 50}, a=False, b=False)
    assert marks.least == MIN_TIME
    marks = told(marks, 1, {}, a=False, b=True)
    assert marks.least == 50
    assert marks.idles("b")
    assert not marks.idles("a")


def test_rule_75_a_new_partition_and_one_that_wakes_do_not_move_it_back() -> None:
    marks = told(Watermarks(), 0, {"a": 50}, a=False)
    marks = told(marks, 1, {"a": 80}, a=False, b=False)
    assert marks.least == 50
    marks = told(marks, 2, {"b": 10}, a=False, b=False)
    assert marks.least == 50
    marks = told(marks, 3, {"b": 70}, a=False, b=False)
    assert marks.least == 70


def test_rule_75_when_all_are_idle_it_goes_to_the_latest_time_in_any_order() -> None:
    marks = told(Watermarks(), 0, {"a": 50, "b": 90}, a=False, b=False, c=False)
    assert told(marks, 1, {}, a=True, b=True, c=True).least == 90
    assert told(told(marks, 1, {}, a=True, b=False, c=True), 2, {}, a=True, b=True, c=True).least == 90
    assert told(told(marks, 1, {}, a=False, b=True, c=True), 2, {}, a=True, b=True, c=True).least == 90
    nothing = told(Watermarks(), 0, {}, a=True, b=True)
    assert nothing.least == MIN_TIME
    whole = InputWatermarks((Watermarks(),)).told(
        [[("a", 5)]], 0, reads=[{"a": Read(1, 1, False), "b": Read(0, 0, False)}]
    )
    assert whole.least == MIN_TIME
    idle = {"a": Read(1, 1, True), "b": Read(0, 0, True)}
    assert whole.told([[]], 1, reads=[idle]).least == 5


def test_a_partition_that_is_gone_holds_nothing() -> None:
    marks = told(Watermarks(), 0, {"a": 50}, a=False, b=False)
    assert told(marks, 1, {}, a=False).least == 50


def test_processing_time_alone_makes_none_idle() -> None:
    marks = told(Watermarks(), 0, {"a": 50}, a=False, b=False)
    assert marks.at(10**15).least == MIN_TIME
    assert InputWatermarks((marks, Watermarks())).next_idle == Watermarks().next_idle


@pytest.mark.parametrize("seed", range(40))
def test_rule_75_no_row_that_is_there_and_not_read_is_before_it(seed: int) -> None:
    """Partitions with rows in the order of their times, read a part at a time: it waits for what is unread."""
    r = random.Random(seed)
    rows = {f"t/{n}": sorted(r.randrange(1000) for _ in range(r.randrange(20))) for n in range(r.randrange(1, 5))}
    read, marks = dict.fromkeys(rows, 0), Watermarks()
    for now in range(60):
        reports = []
        for name, times in rows.items():
            stop = min(read[name] + r.randrange(4), len(times))
            assert all(time >= marks.least for time in times[read[name] : stop]), seed
            reports += [(name, time) for time in times[read[name] : stop]]
            read[name] = stop
        reads = {name: Read(read[name], len(times), read[name] == len(times)) for name, times in rows.items()}
        marks = marks.told(reports, now, reads=reads)
    if any(rows.values()) and all(read[name] == len(times) for name, times in rows.items()):
        assert marks.least == max(time for times in rows.values() for time in times)


def test_they_are_stored_and_come_back() -> None:
    marks = told(Watermarks(), 3, {"a": 50}, a=False, b=True)
    whole = InputWatermarks((marks,), marks.least, marks.now)
    text = json.dumps({"made_by": {"stage": "1"}, **stored(whole, ["S"]), "timer": None}).encode()
    extra = read_extra(text)
    assert restored(extra, (Watermarks(),), ["S"]) == whole
    assert restored(extra, (Watermarks(),), ["T"]).inputs[0].reads == {}
    assert together([extra, extra], (Watermarks(),), ["S"]) == whole


def test_a_parcel_has_the_reads_of_a_time() -> None:
    table = pa.Table.from_pylist([{"source": "a", "offset": 1, "end": 9, "idle": False, "at": 5}], schema=READS)
    (by_time,) = arrivals([Parcel.unpack(Parcel("reads", table).pack())])
    assert by_time[5].reads == {"a": Read(1, 9, False)}
