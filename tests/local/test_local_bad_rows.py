"""Rows of files that cannot be read, in this process: what a flow needs, what it shows, and what stops it."""

from __future__ import annotations

import gzip
import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import uncombine as uc
from uncombine.errors import InvalidArgument, UnreadableFile
from uncombine.files import reading, text_files
from uncombine.local import data_files

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "user": pa.string(), "x": pa.int64(), "note": pa.int64()})
LINES = [
    "ts,user,x,note",
    "2024-01-01T00:00:01Z,ada,1,0",
    "2024-01-01T00:00:02Z,ada,many,0",
    "2024-01-01T00:00:03Z,bob,4,?",
    "2024-01-01T00:00:04Z,bob",
    ",bob,8,0",
    "2024-01-01T00:00:05Z,ada,16,0",
]


def write(folder: Path, *lines: str, name: str = "a.csv") -> Path:
    (folder / name).write_text("\n".join(lines or LINES))
    return folder


def sums(path: Any, *, spoil: Callable[[uc.Flow], uc.Flow] = lambda flow: flow, **options: Any) -> uc.Flow:
    options = {"schema": SCHEMA, "on_bad_row": "leave_out", **options}
    return spoil(uc.flow(uc.Files(path, **options))).window("1 minute").combine(by="user", total=uc.Sum("x"))


def totals(flow: uc.Flow) -> dict[str, int]:
    return {row["user"]: row["total"] for row in flow.run().to_pylist()}


def told(flow: uc.Flow) -> list[tuple[int, str]]:
    rows = [row for row in flow.run().left_out.to_pylist() if row["why"] == "unreadable"]
    return [(row["line"], row["text"]) for row in rows]


@pytest.mark.parametrize("way", ["threads", "operators"])
def test_rule_68_the_columns_that_a_flow_needs_decide(way: str, tmp_path: Path) -> None:
    """In threads only they are read, and otherwise all columns are."""

    def one_by_one(flow: uc.Flow) -> uc.Flow:
        return flow if way == "threads" else flow.in_order("user")

    flow = sums(write(tmp_path), spoil=one_by_one)
    if way == "threads":
        assert "rows are combined in threads" in flow.explain()
        assert totals(flow) == {"ada": 17, "bob": 4}
        assert told(flow) == [(3, LINES[2]), (5, LINES[4])]
        assert flow.run().counts() == {
            "dropped": 0,
            "finished": 0,
            "unassigned": 0,
            "bad": 1,
            "unreadable": 2,
            "held": 0,
        }
        [bad] = [row["row"] for row in flow.run().left_out.to_pylist() if row["why"] == "bad"]
        assert bad == {"ts": None, "user": "bob", "x": 8, "note": 0}
    else:  # a step over single rows gives all columns, so it needs them
        assert totals(flow) == {"ada": 17}
        assert [line for line, _ in told(flow)] == [3, 4, 5]
    counted = uc.flow(uc.Files(tmp_path, schema=SCHEMA, on_bad_row="leave_out"))
    alone = counted.window("1 minute", "early each row", "retracting").combine(n=uc.Count())
    assert "in one thread" in alone.explain()
    assert (alone.run().table()["n"].to_pylist(), [line for line, _ in told(alone)]) == ([4], [5])
    kept = alone.run([uc.Elements([{"ts": 0}]), uc.Watermark(None)])
    assert kept.counts()["unreadable"] == 0, "a script has its own rows"


def test_rule_68_rows_left_out_are_shown_with_null_for_what_cannot_be_read(tmp_path: Path) -> None:
    write(tmp_path, LINES[0], "2024-01-01T00:00:01Z,ada,1,0", ",bob,8,?", "x,y")
    result = sums(tmp_path).run()
    [bad, unreadable] = sorted(result.left_out.to_pylist(), key=lambda row: row["why"])
    assert bad["row"] == {"ts": None, "user": "bob", "x": 8, "note": None}
    assert (unreadable["row"], unreadable["file"], unreadable["line"]) == (None, str(tmp_path / "a.csv"), 4)
    assert unreadable["stage"] == 1


def test_the_default_is_an_error_that_names_the_line_and_the_ways_out(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile) as error:
        sums(write(tmp_path), on_bad_row=None).run()
    assert error.value.path == str(tmp_path / "a.csv")
    words = str(error.value)
    assert re.search(r"a\.csv cannot be read: line 3: 'many' is no int64: give schema= .*, write it again, ", words)
    assert words.endswith(
        "leave such rows out with on_bad_row='leave_out', or read past such files with on_bad_file='skip'"
    )


def test_a_replay_leaves_them_out(tmp_path: Path) -> None:
    write(tmp_path)
    for option, is_error in [(None, False), ("leave_out", False), ("error", True)]:
        files = uc.Files(tmp_path, schema=SCHEMA, on_bad_row=option)
        source = uc.flow(files, watermark="1 minute", processing_time="ts").replay(close_at_end=True)
        flow = source.window("1 minute").combine(by="user", total=uc.Sum("x"))
        if is_error:
            with pytest.raises(UnreadableFile, match="line 3"):
                flow.run()
        else:
            assert (totals(flow), [line for line, _ in told(flow)]) == ({"ada": 17, "bob": 4}, [3, 5])


def test_a_file_that_is_skipped_tells_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if so much of it is read that it is read a second time."""
    whole = gzip.compress("\n".join(LINES * 500).encode())
    (tmp_path / "b.csv.gz").write_bytes(whole[: len(whole) // 2])
    write(tmp_path)
    for held in (1 << 20, 10):
        monkeypatch.setattr(reading, "SPLIT_BYTES", held)
        flow = sums(tmp_path, on_bad_file="skip")
        with pytest.warns(UserWarning, match=r"skipped: .*b\.csv\.gz"):
            result = flow.run()
        assert {row["file"] for row in result.left_out.to_pylist()} - {None} == {str(tmp_path / "a.csv")}
        assert result.counts()["unreadable"] == 2
    with pytest.raises(UnreadableFile, match=r"b\.csv\.gz"):
        sums(tmp_path).run()
    skipped = sums(tmp_path / "a.csv", on_bad_file="skip", on_bad_row="error")
    with pytest.warns(UserWarning, match=r"skipped: .*a\.csv cannot be read: line 3: .*on_bad_row='leave_out'$"):
        assert skipped.run().num_rows == 0


def test_rule_68_a_filter_and_folders_are_asked_after_it(tmp_path: Path) -> None:
    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
        write(tmp_path / f"day={day}")
    schema = SCHEMA.append(pa.field("day", pa.int32()))
    flow = sums(tmp_path, schema=schema, filter=(uc.col("day") == 2) & (uc.col("x") > 1))
    assert totals(flow) == {"ada": 16, "bob": 4}
    assert {row["file"] for row in flow.run().left_out.to_pylist() if row["why"] == "unreadable"} == {
        str(tmp_path / "day=2" / "a.csv")
    }
    by_note = sums(tmp_path, schema=schema, filter=uc.col("note") == 0)
    assert sorted(line for line, _ in told(by_note)) == [3, 3, 4, 4, 5, 5]
    source = uc.flow(uc.Files(tmp_path, schema=schema, on_bad_row="leave_out", filter=uc.col("note") == 0))
    in_one_thread = source.window("1 minute", "early each row").combine(n=uc.Count())
    assert sorted(line for line, _ in told(in_one_thread)) == [4, 4, 5, 5]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_columns_are_inferred_from_the_rows_that_can_be_read(form: str, tmp_path: Path) -> None:
    rows = [{"ts": f"2024-01-01T00:00:0{i}Z", "user": "ada", "x": i} for i in range(5)]
    if form == "csv":
        lines = ["ts,user,x", *(",".join(map(str, row.values())) for row in rows)]
        lines[2:2] = ["2024-01-01T00:00:09Z,ada", "a,b,c,d"]
    else:
        lines = [json.dumps(row) for row in rows]
        lines[1:1] = ["{", "no json", "[1]", "null"]
        lines += [json.dumps({**rows[0], "x": "text"}), json.dumps({**rows[0], "more": 5})]
    write(tmp_path, *lines, name=f"a.{form}")
    flow = sums(tmp_path, schema=None)
    assert flow.source_schema.field("x").type == pa.int64()
    assert flow.source_schema.field("ts").type == pa.timestamp("us", "UTC")
    assert totals(flow) == {"ada": 10}
    assert [line for line, _ in told(flow)] == ([3, 4] if form == "csv" else [2, 3, 4, 10])
    with pytest.raises(UnreadableFile, match="line 3" if form == "csv" else "line 2"):
        sums(tmp_path, schema=None, on_bad_row="error").run()


def test_lines_of_which_none_is_json_have_no_columns(tmp_path: Path) -> None:
    write(tmp_path, "no", "json", name="a.json")
    with pytest.raises(UnreadableFile, match="it has no line of JSON that can be read"):
        sums(tmp_path, schema=None)
    flow = sums(tmp_path)
    assert (flow.run().num_rows, [line for line, _ in told(flow)]) == (0, [1, 2])


def test_a_json_file_that_begins_with_null_is_read(tmp_path: Path) -> None:
    """Arrow 26 ends the process."""
    write(tmp_path, "null", "{}", '{"ts": "2024-01-01T00:00:00Z", "user": "ada", "x": 5}', name="a.json")
    for schema in (SCHEMA, None):
        result = sums(tmp_path, schema=schema).run()
        assert (result["total"].to_pylist(), result.counts()["bad"]) == ([5], 2)


def test_a_quote_that_is_not_closed_takes_its_line_alone(tmp_path: Path) -> None:
    rows = [f"2024-01-01T00:00:0{i % 10}Z,ada,{i},0" for i in range(100)]
    rows[40] = '2024-01-01T00:00:00Z,"ada,40,0'
    flow = sums(write(tmp_path, LINES[0], *rows))
    assert totals(flow) == {"ada": sum(range(100)) - 40}
    assert told(flow) == [(42, rows[40])]
    alone = [LINES[0], '2024-01-01T00:00:00Z,"ada', 'eve",1,0', '2024-01-01T00:00:00Z,"bob",2,0']
    flow = sums(write(tmp_path, *alone))
    assert (totals(flow), told(flow)) == ({"bob": 2}, [(2, alone[1]), (3, alone[2])])
    for first, second in [('2024-01-01T00:00:00Z,"ada,1,0', "x"), ("x", '2024-01-01T00:00:00Z,"ada,1,0')]:
        write(tmp_path, LINES[0], first, "", second)
        with pytest.raises(UnreadableFile, match="line 2"):
            sums(tmp_path, on_bad_row="error").run()
    two = [LINES[0], '2024-01-01T00:00:00Z,"ada\neve",1,0', "2024-01-01T00:00:00Z,bob,x,0"]
    write(tmp_path, *two)
    with pytest.raises(
        UnreadableFile, match=r"line 2: a quote is not closed \(values of several lines need newlines_in_"
    ):
        sums(tmp_path, on_bad_row="error").run()
    several = sums(tmp_path, newlines_in_values=True)
    assert (totals(several), told(several)) == ({"ada\neve": 1}, [(4, two[2])])


def test_threads_change_neither_rows_nor_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "BLOCK", 300)
    monkeypatch.setattr(data_files, "READER_BYTES", 100)
    r = np.random.default_rng(1)
    for i in range(6):
        rows = [f"2024-01-01T00:0{j % 10}:00Z,u{j % 3},{j if r.random() > 0.1 else 'x'},0" for j in range(100)]
        write(tmp_path, LINES[0], *rows, name=f"{i}.csv")
    flow, before = sums(tmp_path), pa.cpu_count()
    try:
        results = []
        for count in (1, 4):
            pa.set_cpu_count(count)
            result = flow.run()
            results.append((sorted(map(repr, result.to_pylist())), result.left_out.to_pylist(), result.counts()))
    finally:
        pa.set_cpu_count(before)
    assert results[0] == results[1]
    assert results[0][2]["unreadable"] > 20


def test_a_changelog_in_files_is_as_strict_as_its_rows(tmp_path: Path) -> None:
    rows = [{"ts": "2024-01-01T00:00:00Z", "user": "ada", "x": 1, "op": op} for op in ("c", "c", "?", "d")]
    write(tmp_path, *map(json.dumps, rows), "{", name="a.json")
    schema = SCHEMA.remove(3).append(pa.field("op", pa.string()))
    form = uc.changelog.Ops("op", {"c": 1, "d": -1})

    def flow(option: Any) -> uc.Flow:
        source = uc.flow(uc.Files(tmp_path, schema=schema, on_bad_row=option), changelog=form)
        return source.window("1 minute").combine(by="user", total=uc.Sum("x"))

    result = flow("leave_out").run()
    assert (result["total"].to_pylist(), result.counts()["bad"], result.counts()["unreadable"]) == ([1], 1, 1)
    with pytest.raises(UnreadableFile, match="line 5"):
        flow(None).run()
    write(tmp_path, *map(json.dumps, rows), name="a.json")
    with pytest.raises(InvalidArgument, match="must be one of c, d"):
        flow(None).run()


def test_a_flow_without_a_step_has_them_in_its_result(tmp_path: Path) -> None:
    result = uc.flow(uc.Files(write(tmp_path), schema=SCHEMA, on_bad_row="leave_out")).run()
    assert (result.num_rows, result.counts()) == (3, {"bad": 0, "unreadable": 3})
    assert [row["stage"] for row in result.left_out.to_pylist()] == [None, None, None]
    assert "3 rows left out (3 unreadable): see left_out" in repr(result)
    assert uc.flow([{"ts": 0}]).run().counts() == {"bad": 0, "unreadable": 0}


def test_only_formats_of_text_have_such_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": [0]}).cast(pa.schema({"ts": pa.timestamp("us", "UTC")})), tmp_path / "a.parquet")
    with pytest.raises(
        InvalidArgument, match=r"on_bad_row= is for CSV and JSON, and these are parquet files, .*on_bad_file="
    ):
        uc.flow(uc.Files(tmp_path, on_bad_row="leave_out"))
    with pytest.raises(InvalidArgument, match="on_bad_row= must be 'error' or 'leave_out', but is 'skip'"):
        uc.flow(uc.Files(write(tmp_path, *LINES[:2]) / "a.csv", on_bad_row="skip"))  # type: ignore[arg-type]
    assert repr(uc.Files("a.csv", on_bad_row="leave_out")) == "Files('a.csv', on_bad_row='leave_out')"


def test_good_files_are_read_once_and_warn_of_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, *LINES[:2], LINES[-1])
    monkeypatch.setattr(
        text_files.CsvRows, "rows", lambda *given: pytest.fail("no row of a good file is read by itself")
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert totals(sums(tmp_path)) == {"ada": 17}
