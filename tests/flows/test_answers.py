"""The ways to ask a flow for its rows: each gives those of a run in this process, or says how Spark is asked."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from programs import program
from pyspark.sql import SparkSession
from seeds import share

import uncombine as uc
from uncombine.errors import InvalidArgument, LibraryMissing

MINUTE = 60_000_000
ROWS = [{"ts": (7 * i % 5) * MINUTE + i, "k": "ab"[i % 2], "x": i} for i in range(40)]
FLOW = uc.flow(ROWS).window("1 minute").combine(by="k", total=uc.Sum("x"))


def totals() -> dict[tuple[str, int], int]:
    """The sum of each key and minute, in plain Python."""
    out: dict[tuple[str, int], int] = {}
    for row in ROWS:
        key = (row["k"], row["ts"] // MINUTE)
        out[key] = out.get(key, 0) + row["x"]
    return out


def test_rows_are_a_list_of_dicts() -> None:
    rows = FLOW.collect()
    assert {(row["k"], row["window"]["start"].minute): row["total"] for row in rows} == totals()
    assert rows == FLOW.run().collect() == list(FLOW.run())


@pytest.mark.parametrize("flat", [False, True])
def test_tables_of_other_libraries_have_the_same_rows(flat: bool) -> None:
    table = FLOW.to_arrow(flat=flat)
    assert table.to_pylist() == FLOW.run().to_arrow(flat=flat).to_pylist()
    frame = FLOW.to_pandas(flat=flat)
    pd.testing.assert_frame_equal(frame, FLOW.run().to_pandas(flat=flat))
    assert list(frame["total"]) == table["total"].to_pylist()
    assert ("window_start" in table.column_names) == flat
    if flat:
        keys = zip(frame["k"], frame["window_start"].dt.minute, strict=True)
        assert dict(zip(keys, frame["total"], strict=True)) == totals()


@pytest.mark.parametrize("flat", [False, True])
def test_polars_has_the_same_rows(flat: bool) -> None:
    pl = pytest.importorskip("polars")
    frame = FLOW.to_polars(flat=flat)
    assert isinstance(frame, pl.DataFrame)
    assert frame.to_dicts() == FLOW.to_arrow(flat=flat).to_pylist()
    made = pl.from_arrow(FLOW.run())  # since Polars 2 a series of structs, for anything that only gives Arrow
    made = made if isinstance(made, pl.DataFrame) else made.struct.unnest()
    for same in (made, pl.DataFrame(FLOW.run()), pl.from_arrow(FLOW.run().panes)):
        assert same.equals(FLOW.to_polars())
    lazy = frame.lazy().select("event_time", "total")
    assert uc.flow(lazy, time="event_time").agg(x=uc.Sum("total")).collect()[0]["x"] == frame["total"].sum()


def test_without_polars_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(LibraryMissing, match=r"^to_polars\(\) needs a library .*: pip install 'uncombine\[polars\]'$"):
        FLOW.to_polars()


def test_narwhals_and_duckdb_take_a_result() -> None:
    duckdb = pytest.importorskip("duckdb")
    result = FLOW.run()
    assert duckdb.sql("SELECT sum(total) FROM result").fetchall() == [(sum(row["x"] for row in ROWS),)]
    nw = pytest.importorskip("narwhals")
    assert nw.from_arrow(result, backend="pyarrow")["total"].to_list() == result["total"].to_pylist()


def test_the_first_rows_are_a_result_of_the_same_run() -> None:
    late = [*ROWS, {"ts": None, "k": "a", "x": 1}]
    flow = uc.flow(late).window("1 minute").combine(by="k", total=uc.Sum("x"))
    head, whole = flow.head(3), flow.run()
    assert head["total"].to_pylist() == whole["total"].to_pylist()[:3]
    assert head.counts() == whole.counts() != {}
    assert len(flow.head()) == 5
    assert len(flow.head(0)) == 0
    assert repr(head).splitlines()[-1] == "1 row left out (1 bad): see left_out"
    with pytest.raises(
        InvalidArgument, match=r"to_table\(\) takes a whole result of flow.run\(\), and not a part of one"
    ):
        head.to_table("duckdb:///nowhere.db#t")
    for rows in (-1, 2.5, True, "3"):
        with pytest.raises(InvalidArgument, match="rows= must be a whole number of at least 0, but is "):
            flow.head(rows)  # type: ignore[arg-type]


def test_rows_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    FLOW.show()
    assert capsys.readouterr().out == f"{FLOW.run()!r}\n"
    FLOW.show(2)
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 1 + 2 + 1
    assert shown[-1] == f"... {len(totals()) - 2} more rows"


WAYS: dict[str, Callable[[uc.Flow], Any]] = {
    "collect": lambda flow: flow.collect(),
    "head": lambda flow: flow.head(),
    "show": lambda flow: flow.show(),
    "to_arrow": lambda flow: flow.to_arrow(),
    "to_pandas": lambda flow: flow.to_pandas(),
    "to_polars": lambda flow: flow.to_polars(),
}


def test_every_way_is_tested() -> None:
    from uncombine.flows.answers import Answers

    assert sorted([*WAYS, "run"]) == sorted(name for name in vars(Answers) if not name.startswith("_"))


@pytest.mark.parametrize("way", WAYS)
def test_over_spark_the_sentence_has_a_call_that_gives_the_rows(
    way: str, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = uc.flow(
        spark.createDataFrame([("a", 5)], "k string, x long").selectExpr("timestamp'2016-01-20' ts", "k", "x")
    )
    flow = flow.select("ts", "k", "x")
    with pytest.raises(InvalidArgument) as refused:
        WAYS[way](flow)
    said, _, call = str(refused.value).partition(": write ")
    assert said == f"{way}() runs a flow in this process, and Spark runs this one"
    if way == "to_polars":
        assert call == "polars.from_arrow(flow.df.toArrow())"
        return
    answer = eval(call, {"flow": flow})
    if way == "show":
        assert "|  a|  5|" in capsys.readouterr().out
    elif way == "to_arrow":
        assert answer["x"].to_pylist() == [5]
    else:
        assert (
            answer.x.tolist() if way == "to_pandas" else [row.x for row in ([answer] if way == "head" else answer)]
        ) == [5]


@pytest.mark.parametrize("way", [*WAYS, "run"])
def test_rows_without_an_end_are_refused(way: str, spark: SparkSession) -> None:
    rates = spark.readStream.format("rate").load()
    flow = uc.flow(rates, time="timestamp", watermark="1 minute").window("1 minute").combine(n=uc.Count())
    with pytest.raises(InvalidArgument) as refused:
        {**WAYS, "run": lambda flow: flow.run()}[way](flow)
    assert str(refused.value) == (
        f"{way}() ends with its rows, and those of a stream have no end: write flow.to_table(target, "
        "checkpoint=folder), or flow.write_stream(checkpoint=folder); flow.run(script) tries it out"
    )


def test_columns_without_rows_need_a_script() -> None:
    flow = uc.flow(pa.schema({"ts": pa.timestamp("us", "UTC")}))
    with pytest.raises(
        InvalidArgument, match=r"a source of the flow has columns and no rows: write flow.run\(script\)"
    ):
        flow.combine(n=uc.Count()).collect()


def interrupted(*arguments: str) -> tuple[int, str, str]:
    """A program that is interrupted when it says that it is in the middle of a run."""
    command = [sys.executable, program("interrupt"), *arguments]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    run = subprocess.Popen(command, text=True, **pipes)  # type: ignore[call-overload]
    assert run.stdout.readline() == "here\n"
    run.send_signal(signal.SIGINT)
    out, err = run.communicate("\n", timeout=120)
    return run.returncode, out, err


@pytest.mark.weekly
def test_an_interrupt_of_a_script_keeps_the_entries_before() -> None:
    code, out, err = interrupted("script")
    left = json.loads(out)
    assert (code, left["kind"]) == (0, "KeyboardInterrupt"), err
    assert (left["totals"], left["steps"]) == ([4, 5, 6], [0, 1, 4])
    held = "the first minute is over, and the row of entry 5 is not in a window yet"
    assert left["counts"] == {"dropped": 1, "finished": 0, "unassigned": 0, "bad": 1, "unreadable": 0, "held": 2}, held
    assert (left["why"], left["dropped_rows"], left["watermarks"]) == (["late", "bad"], [[3, 0]], 5)
    assert left["last"] == "the run was interrupted in entry 5 of 7; 2 rows left out (1 bad, 1 late): see left_out"
    assert left["notes"] == [
        "the run was interrupted in entry 5 of 7: `result` of this interrupt (sys.last_value.result in a shell) is its "
        "result so far"
    ]
    assert left["refused"].startswith("to_table() takes a whole result")


@pytest.mark.full
def test_an_interrupt_of_a_replay_keeps_the_turns_before() -> None:
    code, out, err = interrupted("replay")
    left = json.loads(out)
    assert code == 0, err
    assert left["totals"] == [0] * 700, "a turn has 10 of the 1,000 processing times"
    assert left["last"] == "... 680 more rows; the run was interrupted before its end"


@pytest.mark.weekly
def test_an_interrupt_of_threads_ends_them(tmp_path: Path) -> None:
    code, out, err = interrupted("threads", str(tmp_path))
    left = json.loads(out)
    assert code == 0, err
    assert left["totals"] == []
    assert left["last"] == "0 panes; the run was interrupted before its end"


@pytest.mark.weekly
def test_an_interrupt_that_nobody_catches_ends_the_program_as_any_other() -> None:
    code, out, err = interrupted("uncaught")
    assert (code, out) == (-signal.SIGINT, "")
    assert err.splitlines()[-2] == "KeyboardInterrupt"
    assert err.splitlines()[-1].startswith("the run was interrupted in entry 5 of 7")


@pytest.mark.weekly
@pytest.mark.filterwarnings("ignore:stage 1 has left out")
@pytest.mark.parametrize("turns", share([1, 3, 1_000]))
def test_the_number_of_turns_changes_no_result(turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps of a run are played turn by turn, and a result does not show where one ends."""
    from uncombine.local import script_run

    def run() -> uc.Result:
        rows = [{"ts": (i * 37 % 50) * MINUTE, "seen": i * MINUTE, "k": "abc"[i % 3], "x": i} for i in range(200)]
        flow = uc.flow(rows, watermark="3 minutes", processing_time="seen").replay()
        early = flow.window("10 minutes", "early every 5 minutes", "retracting", allowed_lateness="1 minute")
        sums = early.combine(by="k", x=uc.Sum("x"))
        dated = sums.with_columns(event_time=uc.when(uc.col("x") % 2 == 0, uc.col("event_time"), None))
        return dated.window("1 hour", "every 3 rows").combine(x=uc.Sum("x")).run()

    whole = run()
    assert set(whole.left_out["stage"].to_pylist()) == {1, 2}
    monkeypatch.setattr(script_run, "TURNS", turns)
    again = run()
    assert again == whole
    assert again.left_out.equals(whole.left_out)
    assert (again.dropped_rows, again.counts()) == (whole.dropped_rows, whole.counts())
    assert whole.num_rows > 20
    assert whole.left_out.num_rows > 20


@pytest.mark.weekly
def test_a_warning_names_the_line_of_the_user() -> None:
    rows = [{"ts": (i * 37 % 50) * MINUTE, "seen": i * MINUTE} for i in range(200)]
    played = uc.flow(rows, watermark="1 minute", processing_time="seen").replay()
    flow = played.window("1 minute").combine(n=uc.Count())
    with pytest.warns(UserWarning, match="has left out") as told:  # noqa: PT031
        flow.run()
        flow.collect()
        uc.flow(rows).window("1 minute").combine(n=uc.Count()).show()
    assert [one.filename for one in told] == [__file__, __file__]
