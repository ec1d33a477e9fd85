"""The planner of files, in this process: each file is in one batch, in order, and the hold is that of those that wait.

Times are written into the files, or given to the planner, so that a plain list of Python can say what must come out.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from seeds import seeds

from uncombine.errors import UnreadableFile
from uncombine.files.describing import describe
from uncombine.sparkops.planners import file_planner
from uncombine.sparkops.planners.file_planner import FilePlanner, in_parts
from uncombine.sparkops.planners.planner import Offset
from uncombine.windows.times import MAX_TIME

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC")})


def write(path: Path, times: list[int | None], changed: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"ts": pa.array(times, SCHEMA.field("ts").type)}), path)
    os.utime(path, (1_600_000_000 + changed,) * 2)


def planner(folder: Path, order: Any = "time", most: int | None = None, **options: Any) -> FilePlanner:
    given = {name: options.pop(name) for name in ("start", "cores") if name in options}
    form = describe(str(folder), "parquet", SCHEMA, **options)
    return FilePlanner(form, order, "ts", most=most, **given)


def logged(offset: Offset) -> Offset:
    """The offset as it comes back from the log of a checkpoint."""
    return dict(json.loads(json.dumps(offset)))


def batch(planner: FilePlanner, start: Offset, end: Offset) -> tuple[list[str], list[int]]:
    """The names of the files of a batch in any order, and the holds that its tasks send."""
    rows = [row for task in planner.tasks(start, end) for row in task.to_pylist()]
    assert all((row["path"] is None) == (row["hold"] is not None) for row in rows)
    return sorted(Path(row["path"]).name for row in rows if row["path"]), [row["hold"] for row in rows if row["hold"]]


def batches(planner: FilePlanner, most: int | None = None) -> list[list[str]]:
    """The names of the files of all batches until nothing is left."""
    offset, out = planner.begin(), list[list[str]]()
    while (end := logged(planner.after(offset, most))) != offset:
        out.append(batch(planner, offset, end)[0])
        offset = end
    return out


def test_files_come_in_the_order_that_is_asked_for(tmp_path: Path) -> None:
    for name, time, changed in [("a", 30, 2), ("b", 10, 3), ("c", 20, 1), ("d", 10, 4)]:
        write(tmp_path / f"{name}.parquet", [time, 99], changed)
    for order, want in [("time", "bdca"), ("name", "abcd"), ("modified", "cabd")]:
        got = batches(planner(tmp_path, order), 1)
        assert [name for [name] in got] == [f"{name}.parquet" for name in want], order


@pytest.mark.parametrize("seed", seeds(60))
def test_random_arrivals_are_read_once_and_hold_the_watermark(seed: int, tmp_path: Path) -> None:
    """Files come and go between batches, and the process of the planner ends at any time."""
    r = random.Random(seed)
    most = r.choice([1, 2, 5, None])
    least: dict[str, int] = {}
    here, read = set[str](), set[str]()
    order = r.choice(["time", "time", "name"])
    now = planner(tmp_path, order)
    offset = now.begin()
    for _ in range(r.randrange(4, 15)):
        for _ in range(r.randrange(6)):
            name = f"{r.randrange(10**6):06}.parquet"
            if name not in least:
                times = [r.randrange(1, 1_000) for _ in range(3)]
                write(tmp_path / name, list(times))
                least[name] = min(times)
                here.add(name)
        for name in sorted(here):
            if r.random() < 0.1:
                (tmp_path / name).unlink()
                here.remove(name)
        if r.random() < 0.3:
            now = planner(tmp_path, order)
        end = logged(now.after(offset, most))
        if r.random() < 0.2:  # the batch is planned again, by a new process
            now = planner(tmp_path, order)
        got, holds = batch(now, offset, end) if end != offset else ([], [])
        by_order = sorted(here - read, key=lambda name: (least[name] if order == "time" else 0, name))
        want, left = by_order[:most], by_order[most:] if most else []
        assert got == sorted(want)
        read |= set(got)
        hold = min((least[name] for name in left), default=None) if order == "time" else None
        assert end["hold"] == hold
        assert holds in ([], [MAX_TIME if hold is None else hold])
        assert bool(holds) == (end["hold"] != offset["hold"])
        offset = end


def test_a_batch_is_the_same_whenever_it_is_planned(tmp_path: Path) -> None:
    """Files that have come since, or are gone, change nothing of a batch that is in the log."""
    for i in range(4):
        write(tmp_path / f"{i}.parquet", [10 * i + 1])
    first = planner(tmp_path)
    start = first.begin()
    end = logged(first.after(start, 3))
    want = batch(first, start, end)
    write(tmp_path / "early.parquet", [1])
    (tmp_path / "2.parquet").unlink()
    assert batch(planner(tmp_path), start, end) == want == (["0.parquet", "1.parquet", "2.parquet"], [31])
    tasks = [[task.to_pylist() for task in one.tasks(start, end)] for one in (first, planner(tmp_path))]
    assert tasks[0] == tasks[1]  # so that sums of floats have the same bits


def test_a_file_that_comes_later_with_an_older_time_is_read(tmp_path: Path) -> None:
    write(tmp_path / "b.parquet", [50])
    now = planner(tmp_path)
    one = now.after(now.begin(), 1)
    write(tmp_path / "a.parquet", [7], changed=-1_000)
    two = now.after(one, 1)
    assert batch(now, one, two) == (["a.parquet"], [])
    assert now.after(two, 1) == two


def test_the_hold_goes_when_the_file_goes_that_it_waits_for(tmp_path: Path) -> None:
    for i in range(2):
        write(tmp_path / f"{i}.parquet", [10 * i + 1])
    now = planner(tmp_path)
    one = now.after(now.begin(), 1)
    assert one["hold"] == 11
    (tmp_path / "1.parquet").unlink()
    two = now.after(one, 1)
    assert batch(now, one, two) == ([], [MAX_TIME])
    assert now.after(two, 1) == two


def test_times_are_looked_up_once_and_only_where_files_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def least_time(_: object, column: str, path: str) -> int:
        asked.append(Path(path).stem)
        return int(Path(path).stem)

    monkeypatch.setattr(file_planner, "least_time", least_time)
    for i in range(5):
        write(tmp_path / f"{i}.parquet", [i])
    now = planner(tmp_path)
    one = now.after(now.begin(), 2)
    two = now.after(one, 2)
    assert (sorted(asked), two["hold"]) == (["0", "1", "2", "3", "4"], 4)
    write(tmp_path / "5.parquet", [5])
    three = now.after(two, 2)
    assert (len(asked), three["hold"], len(three["files"])) == (5, None, 2)
    write(tmp_path / "4.parquet", [4, 4])  # it is read, however it changes
    assert now.after(three, 2) == three


def test_files_without_a_time_come_first_and_hold_nothing(tmp_path: Path) -> None:
    write(tmp_path / "z.parquet", [None])
    write(tmp_path / "y.parquet", [])
    for i in range(3):
        write(tmp_path / f"{i}.parquet", [10 * i + 1])
    now = planner(tmp_path)
    one = now.after(now.begin(), 1)
    assert (list(one["files"]), one["hold"]) == ([f"{tmp_path}/y.parquet"], 1)
    assert batches(now, 2) == [["y.parquet", "z.parquet"], ["0.parquet", "1.parquet"], ["2.parquet"]]


def test_a_damaged_file_is_an_error_or_comes_first(tmp_path: Path) -> None:
    for i in range(3):
        write(tmp_path / f"{i}.parquet", [10 * i + 1])
    (tmp_path / "9.parquet").write_bytes(b"PAR1 this is none PAR1")
    now = planner(tmp_path)
    with pytest.raises(UnreadableFile, match=r"9\.parquet cannot be read"):
        now.after(now.begin(), 2)
    skipping = planner(tmp_path, on_bad_file="skip")
    assert batches(skipping, 2) == [["0.parquet", "9.parquet"], ["1.parquet", "2.parquet"]]


def test_files_of_the_start_are_left_out(tmp_path: Path) -> None:
    for i in range(4):
        write(tmp_path / f"{i}.parquet", [10 * i + 1])
    start = [f"{tmp_path}/0.parquet", f"{tmp_path}/3.parquet", f"{tmp_path}/gone.parquet"]
    assert batches(planner(tmp_path, start=start)) == [["1.parquet", "2.parquet"]]
    assert batches(planner(tmp_path, start=start), 1) == [["1.parquet"], ["2.parquet"]]


def test_frozen_it_takes_what_is_there(tmp_path: Path) -> None:
    for i in range(3):
        write(tmp_path / f"{i}.parquet", [10 * i + 1])
    now = planner(tmp_path)
    now.freeze()
    write(tmp_path / "later.parquet", [1])
    assert batches(now, 2) == [["0.parquet", "1.parquet"], ["2.parquet"]]


def test_a_folder_may_come_later(tmp_path: Path) -> None:
    now = planner(tmp_path / "later")
    assert now.after(now.begin(), None) == now.begin()
    write(tmp_path / "later" / "a.parquet", [1])
    assert batches(now) == [["a.parquet"]]


@pytest.mark.parametrize("seed", seeds(20))
def test_parts_have_each_file_once_and_about_one_size(seed: int) -> None:
    r = random.Random(seed)
    sizes: Mapping[str, int] = {f"{i:03}": r.choice([0, 1 << 10, 1 << 20, 90 << 20]) for i in range(r.randrange(40))}
    cores = r.choice([1, 2, 16])
    parts = in_parts(list(sizes.items()), cores)
    assert sorted(path for part in parts for path in part) == sorted(sizes)
    assert all(parts)
    assert len(parts) >= min(cores, len(sizes))
    loads = [sum(sizes[path] for path in part) for part in parts]
    assert max(loads, default=0) - min(loads, default=0) <= (90 << 20) + (4 << 20) * len(sizes)
