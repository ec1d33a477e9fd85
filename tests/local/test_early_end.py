"""Runs that end early: the result is that of the first rows, as many as the rule says, and it says their share."""

from __future__ import annotations

import json
import os
import random
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, UnreadableFile
from uncombine.files import reading
from uncombine.flows.early_end.job_triggers import job_trigger
from uncombine.local import files_until

Row = dict[str, Any]
SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "user": pa.string(), "x": pa.int64(), "diff": pa.int64()})
MINUTE = 60_000_000


def csv(rows: Sequence[Row], path: Path) -> None:
    lines = [",".join("" if row[name] is None else str(row[name]) for name in SCHEMA.names) for row in rows]
    path.write_text("\n".join([",".join(SCHEMA.names), *lines]) + "\n")


def table(rows: Sequence[Row]) -> pa.Table:
    plain = pa.Table.from_pylist(list(rows), SCHEMA.set(0, pa.field("ts", pa.int64())))
    return plain.set_column(0, SCHEMA.field("ts"), plain["ts"].cast(SCHEMA.field("ts").type))


WRITERS: dict[str, Callable[[Sequence[Row], Path], Any]] = {
    "parquet": lambda rows, path: pq.write_table(table(rows), path, row_group_size=3),
    "arrow": lambda rows, path: pf.write_feather(table(rows), path, chunksize=2, compression="uncompressed"),
    "json": lambda rows, path: path.write_text("".join(json.dumps(row | {"ts": stamp(row)}) + "\n" for row in rows)),
    "csv": lambda rows, path: csv([row | {"ts": stamp(row)} for row in rows], path),
}


def stamp(row: Row) -> str:
    minutes, micros = divmod(row["ts"], MINUTE)
    return f"1970-01-01T00:{minutes:02}:{micros // 1_000_000:02}Z"


def draw_files(r: random.Random, folder: Path, form: str) -> dict[str, list[Row]]:
    """Some files of random rows, by their paths, in the order of these."""
    files = {}
    for number in range(r.randint(1, 9)):
        rows = [
            {"ts": r.randrange(300) * 1_000_000, "user": r.choice(["a", "b"]), "x": r.randint(-5, 9), "diff": 1}
            for _ in range(r.choice([0 if form != "json" else 1, 1, 2, 5, 9]))  # an empty file of JSON is damaged
        ]
        path = folder / f"{number:02}.{form}"
        WRITERS[form](rows, path)
        files[str(path)] = rows
    return files


def draw_trigger(r: random.Random, depth: int = 0) -> uc.Trigger:
    """A trigger of counts and percentages of files."""
    if depth < 2 and r.random() < 0.35:
        group = r.choice([uc.FirstOf, uc.AllOf])
        return group(*(draw_trigger(r, depth + 1) for _ in range(r.randint(1, 3))))
    if r.random() < 0.5:
        return uc.AfterCount(r.choice([1, 2, 3, 5, 8, 13, 21, 34]))
    return uc.FilesPercentile(r.choice([1, 10, 25, 33.4, 50, 75, 90, 99, 100]))


def is_due(trigger: uc.Trigger, rows: int, files: int, all_files: int) -> bool:
    """The rule of each trigger, once more."""
    if isinstance(trigger, uc.AfterCount):
        return rows >= trigger.n
    if isinstance(trigger, uc.FilesPercentile):
        return files / all_files >= trigger.percent / 100 - 1e-12
    ask = any if isinstance(trigger, uc.FirstOf) else all
    return ask(is_due(child, rows, files, all_files) for child in trigger.children)


def first_rows(files: dict[str, list[Row]], trigger: uc.Trigger, whole: bool = False) -> tuple[list[Row], int, bool]:
    """The rows that a run sees, row by row, the files that it has read to their end, and whether it was ended."""
    seen: list[Row] = []
    for done, rows in enumerate(files.values()):
        for place, row in enumerate(rows, 1):
            seen.append(row)
            if not whole and place < len(rows) and is_due(trigger, len(seen), done, len(files)):
                return seen, done, True
        if done + 1 < len(files) and is_due(trigger, len(seen), done + 1, len(files)):
            return seen, done + 1, True
    return seen, len(files), False


def plain_minutes(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """Totals by minute and user, in plain Python."""
    groups: dict[tuple[int, str], list[int]] = {}
    for row in rows:
        groups.setdefault((row["ts"] // MINUTE, row["user"]), []).append(row["x"])
    return sorted((minute, user, len(xs), sum(xs), max(xs)) for (minute, user), xs in groups.items())


def minutes(flow: uc.Flow) -> uc.Flow:
    return flow.window("1 minute").combine(by="user", n=uc.Count(), total=uc.Sum("x"), most=uc.Max("x"))


def shown(result: uc.Result) -> list[tuple[Any, ...]]:
    rows = result.to_pylist()
    return sorted(
        (int(row["window"]["start"].timestamp()) // 60, row["user"], row["n"], row["total"], row["most"])
        for row in rows
    )


@pytest.mark.parametrize("seed", seeds(64))
def test_rule_104_the_result_is_that_of_the_first_rows(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the sizes of tables are, of parts of files, and of what is read before its turn."""
    r = random.Random(seed)
    monkeypatch.setattr(reading, "ROWS", r.choice([1, 2, 4, 1 << 20]))
    monkeypatch.setattr(files_until, "PART_BYTES", r.choice([1, 1000, 32 << 20]))
    monkeypatch.setattr(files_until, "AHEAD_BYTES", r.choice([0, 100, 64 << 20]))
    form = r.choice([*WRITERS])
    files, trigger = draw_files(r, tmp_path, form), draw_trigger(r)
    rows, done, ended = first_rows(files, trigger)
    flow = minutes(uc.flow(uc.Files(tmp_path, schema=SCHEMA)))
    result = flow.run(until=trigger)
    seen = result.seen
    assert seen is not None
    assert shown(result) == plain_minutes(rows)
    assert (seen.rows, seen.files, seen.all_files) == (len(rows), done, len(files))
    assert seen.share == done / len(files)
    assert (seen.ended_by is not None) == ended
    sizes = [os.path.getsize(path) for path in files]
    assert (seen.bytes, seen.all_bytes) == (sum(sizes[:done]), sum(sizes))
    part = ended and sum(map(len, [*files.values()][:done])) < len(rows)
    assert list(seen.paths) == [*files][: done + part]


@pytest.mark.parametrize("count", range(1, 15))
@pytest.mark.parametrize("most", [1, 2, 3])
def test_rule_104_a_count_is_exact_in_any_table_of_a_file(
    count: int, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "ROWS", most)
    rows = [{"ts": n, "user": "a", "x": n, "diff": 1} for n in range(14)]
    WRITERS["parquet"](rows[:5], tmp_path / "1.parquet")
    WRITERS["parquet"](rows[5:], tmp_path / "2.parquet")
    result = uc.flow(tmp_path).select("x").run(until=uc.AllOf(uc.AfterCount(count), uc.AfterCount(2)))
    assert result["x"].to_pylist() == list(range(max(count, 2)))


BUILDS: dict[str, Callable[[uc.Flow], uc.Flow]] = {
    "rows": lambda rows: rows.select("ts", "user", "x"),
    "sessions": lambda rows: rows.window("sessions 10 seconds").combine(by="user", total=uc.Sum("x")),
    "distinct": lambda rows: rows.drop("diff").distinct("user", within="1 minute"),
    "two steps": lambda rows: minutes(rows).window("5 minutes").combine(most=uc.Max("total")),
    "a function": lambda rows: rows.map(lambda table: table).window("1 minute").combine(mid=uc.Median("x")),
    "retracting": lambda rows: rows.window("1 minute", "early every 2 rows", "retracting").combine(n=uc.Count()),
    "itself twice": lambda rows: minutes(rows).join(rows.window("1 minute").combine(by="user", k=uc.Count()), "user"),
    "a lookup of itself": lambda rows: rows.drop("diff").join_asof(minutes(rows), by="user"),
    "a union with itself": lambda rows: minutes(uc.union(rows.where(uc.col("x") > 3), rows)),
}


def sorted_rows(result: uc.Result) -> list[str]:
    names = [name for name in result.column_names if name not in ("pane", "step")]
    return sorted(json.dumps(row, default=str) for row in result.select(names).to_pylist())


@pytest.mark.parametrize("seed", seeds(32))
@pytest.mark.parametrize("build", BUILDS)
def test_rule_104_any_flow_over_the_rows_that_were_seen(build: str, seed: int, tmp_path: Path) -> None:
    r = random.Random(f"{seed} {build}")
    files, trigger = draw_files(r, tmp_path, r.choice([*WRITERS])), draw_trigger(r)
    result = BUILDS[build](uc.flow(uc.Files(tmp_path, schema=SCHEMA))).run(until=trigger)
    rows, _, _ = first_rows(files, trigger)
    assert sorted_rows(result) == sorted_rows(BUILDS[build](uc.flow(table(rows))).run())


@pytest.mark.parametrize("seed", seeds(8))
def test_rule_104_until_that_never_fires_changes_nothing(seed: int, tmp_path: Path) -> None:
    r = random.Random(seed)
    files = draw_files(r, tmp_path, r.choice([*WRITERS]))
    flow = minutes(uc.flow(uc.Files(tmp_path, schema=SCHEMA)))
    result = flow.run(until="1000000 rows or 1000 days")
    assert result.seen is not None
    assert shown(result) == shown(flow.run())
    assert (result.seen.share, result.seen.ended_by) == (1.0, None)
    assert result.seen.words == f"the whole result: {len(files)} of {len(files)} file{'s' * (len(files) > 1)}, 100 %"


class Clock:
    """A clock that says the next of some times whenever it is asked, and the last one from then on."""

    def __init__(self, *times: int) -> None:
        self.times = list(times)

    def __call__(self) -> int:
        return self.times.pop(0) if len(self.times) > 1 else self.times[0]


def some_files(folder: Path, count: int = 5, form: str = "csv") -> dict[str, list[Row]]:
    files = {}
    for number in range(count):
        rows = [{"ts": number * MINUTE, "user": "a", "x": number, "diff": 1}] * 2
        WRITERS[form](rows, folder / f"{number}.{form}")
        files[str(folder / f"{number}.{form}")] = rows
    return files


@pytest.mark.parametrize("done", range(1, 6))
def test_rule_105_a_clock_is_asked_after_each_file(done: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run begins at 7 s, and the clock jumps to ten minutes later when it is asked after the file `done`."""
    files = some_files(tmp_path)
    start = 7_000_000
    monkeypatch.setattr(files_until, "micros_now", Clock(*[start] * done, start + 10 * MINUTE))
    result = minutes(uc.flow(tmp_path)).run(until="10 minutes")
    assert result.seen is not None
    assert (result.seen.files, result.seen.rows) == (done, 2 * done)
    assert result.seen.ended_by == (uc.AfterDelay("10 minutes") if done < 5 else None)
    assert shown(result) == plain_minutes([row for rows in [*files.values()][:done] for row in rows])


def test_rule_105_the_time_is_that_since_the_run_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some_files(tmp_path)
    monkeypatch.setattr(files_until, "micros_now", Clock(7, 10 * MINUTE + 6))
    assert minutes(uc.flow(tmp_path)).run(until="10 minutes").seen.ended_by is None  # type: ignore[union-attr]
    monkeypatch.setattr(files_until, "micros_now", Clock(7, 10 * MINUTE + 7))
    assert minutes(uc.flow(tmp_path)).run(until="10 minutes").seen.files == 1  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", seeds(16))
def test_rule_105_whenever_a_clock_ends_a_run_its_rows_are_the_first(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = random.Random(seed)
    files = draw_files(r, tmp_path, r.choice([*WRITERS]))
    jump = r.randint(0, 12)
    monkeypatch.setattr(files_until, "micros_now", Clock(*[0] * jump, 3_600_000_000))
    count = r.choice([3, 10, 1000])
    result = minutes(uc.flow(uc.Files(tmp_path, schema=SCHEMA))).run(until=f"{count} rows or 1 hour")
    seen = result.seen
    assert seen is not None
    rows = [row for some in files.values() for row in some]
    assert shown(result) == plain_minutes(rows[: seen.rows])
    assert seen.rows <= max(count, 0)
    assert sum(map(len, [*files.values()][: seen.files])) <= seen.rows


def test_rule_105_a_large_file_ends_after_a_table_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is read a table at a time, and the clock is asked after each but the last."""
    monkeypatch.setattr(reading, "ROWS", 3)
    rows = [{"ts": n * 1_000_000, "user": "a", "x": n, "diff": 1} for n in range(12)]
    WRITERS["parquet"](rows, tmp_path / "one.parquet")
    monkeypatch.setattr(files_until, "micros_now", Clock(0, 0, 3_600_000_000))
    result = minutes(uc.flow(tmp_path)).run(until="1 hour")
    assert result.seen is not None
    assert (result.seen.files, result.seen.rows, len(result.seen.paths)) == (0, 6, 1)
    assert result.seen.words == "the result so far: 0 of 1 file and a part of the next, 0 %"
    assert shown(result) == plain_minutes(rows[:6])


def test_rule_106_a_damaged_file_after_the_end_is_not_read(tmp_path: Path) -> None:
    some_files(tmp_path, form="parquet")
    (tmp_path / "3.parquet").write_bytes(b"PAR1 damaged PAR1")
    flow = minutes(uc.flow(tmp_path))
    assert flow.run(until="60 % of the files").seen.files == 3  # type: ignore[union-attr]
    with pytest.raises(UnreadableFile, match=r"3\.parquet"):
        flow.run(until="80 % of the files")


def test_rule_106_a_file_that_is_skipped_counts_as_read(tmp_path: Path) -> None:
    files = some_files(tmp_path, form="parquet")
    (tmp_path / "1.parquet").write_bytes(b"PAR1 damaged PAR1")
    flow = minutes(uc.flow(uc.Files(tmp_path, on_bad_file="skip")))
    with pytest.warns(UserWarning, match=r"skipped: .*1\.parquet"):
        result = flow.run(until="60 % of the files")
    good = [*files.values()]
    assert shown(result) == plain_minutes([*good[0], *good[2]])
    assert result.seen is not None
    assert (result.seen.files, result.seen.rows) == (3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert flow.run(until="1 row").seen.rows == 1  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", seeds(16))
def test_rule_106_files_whose_bad_rows_are_left_out_are_read_to_their_end(seed: int, tmp_path: Path) -> None:
    r = random.Random(seed)
    files, trigger = draw_files(r, tmp_path, "csv"), draw_trigger(r)
    bad = set()
    for path in files:
        if r.random() < 0.5:
            bad.add(path)
            with Path(path).open("a") as file:
                file.write("1970-01-01T00:00:00Z,a,many,1\n")
    rows, done, _ = first_rows(files, trigger, whole=True)
    flow = minutes(uc.flow(uc.Files(tmp_path, schema=SCHEMA, on_bad_row="leave_out")))
    result = flow.run(until=trigger)
    assert shown(result) == plain_minutes(rows)
    assert result.seen is not None
    assert (result.seen.files, result.seen.rows) == (done, len(rows))
    assert sorted(result.left_out["file"].to_pylist()) == sorted(bad & {*[*files][:done]})


@pytest.mark.parametrize("seed", seeds(8))
def test_rule_106_rows_without_a_time_are_left_out_of_the_first_rows_alone(seed: int, tmp_path: Path) -> None:
    """They are looked up in a second reading, which ends where the first one did."""
    r = random.Random(seed)
    files, trigger = draw_files(r, tmp_path, "parquet"), draw_trigger(r)
    for path, rows in files.items():
        for row in rows:
            row["ts"] = None if r.random() < 0.4 else row["ts"]
        WRITERS["parquet"](rows, Path(path))
    seen, _, _ = first_rows(files, trigger)
    result = minutes(uc.flow(uc.Files(tmp_path, schema=SCHEMA))).run(until=trigger)
    assert shown(result) == plain_minutes([row for row in seen if row["ts"] is not None])
    assert [row["x"] for row in result.left_out["row"].to_pylist()] == [row["x"] for row in seen if row["ts"] is None]


def test_rule_104_rows_are_counted_after_the_filter_and_folders_out_of_it_are_no_files(tmp_path: Path) -> None:
    for day in (1, 2, 3, 4):
        folder = tmp_path / f"day={day}"
        folder.mkdir()
        some_files(folder, count=2, form="parquet")
    source = uc.Files(tmp_path, filter=(uc.col("day") > 2) & (uc.col("x") > 0))
    seen = uc.flow(source).run(until="2 rows").seen  # of each folder the rows of the second file are left
    assert seen is not None
    assert (seen.files, seen.all_files, seen.rows) == (2, 4, 2)
    assert uc.flow(source).run(until="3 rows").seen.paths[-1].endswith("day=4/1.parquet")  # type: ignore[union-attr]
    assert uc.flow(source).run(until="50 % of the files").seen.files == 2  # type: ignore[union-attr]


def test_rule_104_messages_are_counted_and_none_is_cut_in_two(tmp_path: Path) -> None:
    def change(x: int, before: int | None = None) -> str:
        old = None if before is None else {"ts": 5, "user": "a", "x": before}
        new = {"ts": 5, "user": "a", "x": x}
        return json.dumps({"op": "c" if before is None else "u", "before": old, "after": new})

    (tmp_path / "a.json").write_text("\n".join([change(3), change(4, 3), change(9, 4)]))
    rows = uc.flow(tmp_path, changelog=uc.changelog.Debezium(), time=uc.col("ts").cast_time("us"))
    totals = rows.combine(by="user", total=uc.Sum("x"))
    for count, total in ((1, 3), (2, 4), (3, 9)):
        result = totals.run(until=f"{count} rows")
        assert result.seen is not None
        assert (result["total"].to_pylist(), result.seen.rows) == ([total], count)


def test_rule_104_files_come_by_their_names_or_by_their_last_changes(tmp_path: Path) -> None:
    files = some_files(tmp_path, count=3)
    for path, time in zip(files, (300, 100, 200), strict=True):
        os.utime(path, (time, time))

    def first(order: Any) -> str:
        seen = uc.flow(uc.Files(tmp_path, order=order)).run(until="1 % of the files").seen
        assert seen is not None
        return Path(seen.paths[0]).name

    assert [first(None), first("name"), first("modified")] == ["0.csv", "0.csv", "1.csv"]
    with pytest.raises(InvalidArgument, match="order='time' looks for the least time in each"):
        first("time")


@pytest.mark.parametrize("close", [False, True])
def test_rule_104_a_replay_is_that_of_the_first_rows(close: bool, tmp_path: Path) -> None:
    files = some_files(tmp_path, form="parquet")

    def replayed(rows: Any) -> uc.Flow:
        source = uc.flow(rows, watermark="0 s", processing_time="ts").replay(close_at_end=close)
        return source.window("1 minute", "early every 1 row", "retracting").combine(total=uc.Sum("x"))

    rows = [row for some in files.values() for row in some]
    result = replayed(tmp_path).run(until="3 rows")
    assert result.seen is not None
    assert result.seen.rows == 3
    assert sorted_rows(result) == sorted_rows(replayed(table(rows[:3])).run())


def test_rule_104_a_seed_of_the_first_rows_goes_on_with_the_others(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    rows = [row for some in some_files(tmp_path / "in", form="parquet").values() for row in some]

    def totals(source: Any) -> uc.Flow:
        past = uc.flow(source, watermark="1 day", processing_time="ts").replay()
        return past.window("1 hour", mode="retracting").combine(total=uc.Sum("x"))

    seed = totals(tmp_path / "in").run(until="60 % of the files").seed(tmp_path / "seed")
    others = [uc.Elements(table(rows[6:])), uc.Watermark(None)]
    assert totals(table(rows)).run(others, start=seed)["total"].to_pylist() == [sum(row["x"] for row in rows)]


def test_a_table_has_the_first_rows_and_the_run_says_how_many(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    files = some_files(tmp_path / "in")
    flow = uc.flow(tmp_path / "in").window("global", "each row").combine(by="user", total=uc.Sum("x"))
    seen = flow.to_table(f"parquet:{tmp_path}/out", until="60 % of the files or 1 hour")
    rows = [row for some in [*files.values()][:3] for row in some]
    assert pq.read_table(tmp_path / "out")["total"].to_pylist() == [sum(row["x"] for row in rows)]
    assert (seen.files, seen.rows, seen.share, seen.ended_by) == (3, 6, 0.6, uc.FilesPercentile(60))
    assert flow.to_table(f"parquet:{tmp_path}/whole") is None


def test_the_table_of_a_result_has_the_same_rows_when_it_runs_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mode is left open, so the table takes the panes of a second run, which asks no clock."""
    (tmp_path / "in").mkdir()
    some_files(tmp_path / "in")
    flow = uc.flow(tmp_path / "in", watermark="1 minute")
    monkeypatch.setattr(files_until, "micros_now", Clock(0, 0, 3_600_000_000, 0))
    result = flow.window("1 day", "early every 1 row").combine(total=uc.Sum("x")).run(until="1 hour")
    assert result.seen is not None
    assert result.seen.files == 2
    result.to_table(f"parquet:{tmp_path}/out")
    assert pq.read_table(tmp_path / "out")["total"].to_pylist() == [2]


def test_the_share_is_shown_with_the_result(tmp_path: Path) -> None:
    some_files(tmp_path)
    result = minutes(uc.flow(tmp_path)).run(until="80% of files")
    assert repr(result).endswith("the result so far: 4 of 5 files, 80 %")
    assert "the result so far: 4 of 5 files, 80 %" in result._repr_html_()
    assert "4 of 5 files" in repr(result.head(1))
    assert minutes(uc.flow(tmp_path)).run().seen is None
    with pytest.raises(AttributeError):
        result.seen.share = 1.0  # type: ignore[misc, union-attr]


def test_explain_says_what_ends_a_run(tmp_path: Path) -> None:
    some_files(tmp_path)
    flow = minutes(uc.flow(tmp_path))
    assert flow.explain(until="90 % of the files or 10 minutes or 1 row").splitlines()[-5:] == [
        "  files are read one after the other until this fires:",
        "    when any of these has fired:",
        "      when 90 % of the files have been read",
        "      when a clock is asked 10 minutes or more after the run began",
        "      when 1 row has been read",
    ]
    assert "until" not in flow.explain()


@pytest.mark.parametrize(
    ("text", "trigger"),
    [
        ("90 % of the files", uc.FilesPercentile(90)),
        ("after 99.5 percent of files", uc.FilesPercentile(99.5)),
        ("1000 rows", uc.AfterCount(1000)),
        ("after 1 row", uc.AfterCount(1)),
        ("10 minutes", uc.AfterDelay("10 minutes")),
        ("90% of files OR 10 minutes", uc.FirstOf(uc.FilesPercentile(90), uc.AfterDelay("10 minutes"))),
        ("AllOf('after 5 rows', FilesPercentile(2))", uc.AllOf(uc.AfterCount(5), uc.FilesPercentile(2))),
    ],
)
def test_a_trigger_of_a_job_in_words(text: str, trigger: uc.Trigger) -> None:
    assert job_trigger(text) == trigger


@pytest.mark.parametrize(
    ("until", "sentence"),
    [
        ("watermark", "has no windows and no watermark, so AfterWatermark"),
        ("every 5 rows", r"Repeatedly\(AfterCount\(5\)\) says nothing about it"),
        ("90 % of the sources", r"WatermarkPercentile\(90\) says nothing about it"),
        ("5 rows of event time", "is not a trigger"),
        ("5 seconds of event time", "domain='event'"),
        ("each row or 5 rows", r"Always\(\) says nothing about it"),
        ("5 rwos", "did you mean 'rows'"),
        ("0 % of the files", "from 1 to 100"),
        (5, "until= takes a trigger"),
        (uc.FirstOf(uc.AfterCount(5), uc.OnResult(uc.col("n") > 5)), r"OnResult\(col\('n'\) > 5\) says nothing"),
        ("1 row or " * 1000, "has at most 2000 characters"),
    ],
)
def test_other_triggers_are_refused(until: Any, sentence: str, tmp_path: Path) -> None:
    some_files(tmp_path, count=1)
    for way in (uc.flow(tmp_path).run, uc.flow(tmp_path).explain):
        with pytest.raises(InvalidArgument, match=sentence):
            way(until=until)


def test_sources_that_are_not_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    some_files(tmp_path / "a")
    some_files(tmp_path / "b")
    rows = [{"ts": 0, "user": "a", "x": 1}]
    for flow, sentence in (
        (uc.flow(rows), "this flow reads a table of 1 rows"),
        (uc.flow([uc.Elements(rows)]), "this flow reads a script of 1 entries"),
        (uc.union(uc.flow(tmp_path / "a"), uc.flow(tmp_path / "b")), "one source of files, and this flow has 2"),
    ):
        with pytest.raises(InvalidArgument, match=sentence):
            flow.run(until="5 rows")
        with pytest.raises(InvalidArgument, match=sentence):
            flow.to_table(f"parquet:{tmp_path}/out", until="5 rows")
        with pytest.raises(InvalidArgument, match=sentence):
            flow.explain(until="5 rows")
    with pytest.raises(InvalidArgument, match="a script ends where you end it"):
        uc.flow(tmp_path / "a").run([uc.Elements(rows)], until="5 rows")


def test_spark_refuses_it_and_says_what_to_do(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    some_files(tmp_path / "in")
    bounded = minutes(uc.flow(tmp_path / "in", spark=spark))
    stream = minutes(uc.flow(tmp_path / "in", spark=spark, streaming=True, watermark="1 minute"))
    for flow, sentence in ((bounded, "leave spark= of"), (stream, "the rows of a stream have none")):
        with pytest.raises(InvalidArgument, match=sentence):
            flow.run(until="5 rows")
        with pytest.raises(InvalidArgument, match=sentence):
            flow.explain(until="5 rows")
        with pytest.raises(InvalidArgument, match=sentence):
            flow.to_table(f"parquet:{tmp_path}/out", until="90 % of the files")
    with pytest.raises(InvalidArgument, match="a script ends where you end it"):
        bounded.run([], until="5 rows")


def test_a_window_does_not_wait_for_files(tmp_path: Path) -> None:
    some_files(tmp_path)
    for trigger in ("after 90 % of the files", uc.Repeatedly(uc.FirstOf(uc.FilesPercentile(90), uc.AfterCount(1)))):
        with pytest.raises(InvalidArgument, match=r"give it to flow\.run\(until=\)"):
            uc.flow(tmp_path).window("1 minute", trigger).combine(n=uc.Count())
