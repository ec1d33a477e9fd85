"""`uncombine run`: flows of a user's module, in this process and on Spark, and where their rows go."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from shell_events import EVENTS

from uncombine.cli.command_line import main
from uncombine.local.script_run import LocalRun
from uncombine.sparkops.tables.live_table import LiveTable

MINE = """
import uncombine as uc

events = uc.flow("events.csv")
totals = events.window("1 minute", "early every 1 row", "retracting").combine(by="user", total=uc.Sum("score"))
high = events.where(uc.col("score") > 3).select("user", "score")
same = events.select("user")
history = uc.flow("events.csv", watermark="0 s", processing_time="seen").replay()
late = history.window("1 minute").combine(n=uc.Count())

def made():
    return totals

def failing(rows):
    if rows.num_rows:
        raise ValueError("no such\\nluck")
    return rows

fails = events.map(failing)
"""


@pytest.fixture
def mine(user_module: Callable[[str, str], None], tmp_path: Path) -> Path:
    pyarrow.csv.write_csv(EVENTS, tmp_path / "events.csv")
    user_module("mine_to_run", MINE)
    return tmp_path


def rows_of(capsys: pytest.CaptureFixture[str], name: str, *options: str) -> list[dict[str, Any]]:
    """The rows that a run prints as JSON."""
    assert main(["run", f"mine_to_run:{name}", "--json", *options]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_run_gives_panes(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    panes = rows_of(capsys, "totals")
    assert sum(row["diff"] * row["total"] for row in panes) == 13
    assert set(panes[0]) == {
        *("user", "window_start", "window_end", "total", "event_time", "diff", "timing", "processing_time")
    }
    assert rows_of(capsys, "made", "--final", "--limit", "1") == [
        {
            "user": "ada",
            "window_start": "2024-05-01T12:00:00Z",
            "window_end": "2024-05-01T12:01:00Z",
            "total": 8,
            "event_time": "2024-05-01T12:00:59.999999Z",
        }
    ]
    assert rows_of(capsys, "high") == [{"user": "ada", "score": 4}, {"user": "ada", "score": 5}]
    assert rows_of(capsys, "same", "--final") == [{"user": "ada"}] * 4


def test_a_run_ends_early_and_says_of_which_share_its_rows_are(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "mine_to_run:same", "--until", "2 rows", "--json"]) == 0
    said = capsys.readouterr()
    assert [json.loads(line) for line in said.out.splitlines()] == [{"user": "ada"}] * 2
    assert "the result so far: 0 of 1 file and a part of the next, 0 %" in said.err
    assert main(["run", "mine_to_run:totals", "--until", "90% of files or 1 day", "--table", "parquet:early"]) == 0
    assert capsys.readouterr().err == "wrote the Parquet folder early; the whole result: 1 of 1 file, 100 %\n"
    assert main(["run", "mine_to_run:same", "--until", "watermark"]) == 1
    assert "AfterWatermark(late=AfterCount(1)) says nothing about it" in capsys.readouterr().err


def test_a_run_writes_a_file_or_a_table(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "mine_to_run:totals", "--final", "--output", "totals.parquet"]) == 0
    assert capsys.readouterr().err == "wrote 3 rows into totals.parquet\n"
    assert sorted(pq.read_table("totals.parquet")["total"].to_pylist()) == [1, 4, 8]
    assert main(["run", "mine_to_run:totals", "--table", "parquet:totals", "--key", "total"]) == 0
    assert sorted(pq.read_table("totals")["total"].to_pylist()) == [1, 4, 8]
    assert capsys.readouterr().err == "wrote the Parquet folder totals\n"


def test_windows_that_wait_are_told(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "mine_to_run:late"]) == 0
    told = capsys.readouterr()
    assert told.out.count("ON_TIME") == 2
    assert "1 window waits for the watermark: write .replay(close_at_end=True)" in told.err
    assert "1 row left out (1 late)" in told.err


def test_an_interrupt_shows_the_panes_so_far(
    mine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(self: LocalRun, place: int, *others: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalRun, "_turn", interrupted)
    assert main(["run", "mine_to_run:totals"]) == 130
    assert "the run was interrupted before its end" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["fails"], 1, 'mine_to_run:fails failed at mine_to_run.py:16 (raise ValueError("no such'),
        (["totals", "--key", "user"], 2, "--key is for a table: give --table URL"),
        (["totals", "--checkpoint", "c"], 2, "--checkpoint is for a table: give --table URL"),
        (["totals", "--table", "parquet:t", "--checkpoint", "c"], 2, "--checkpoint is for a stream, and the rows of"),
        (["totals", "--table", "parquet:t", "--final"], 2, "--final is for rows that are shown or written into a file"),
        (["totals", "--table", "parquet:t", "--limit", "1"], 2, "--limit is for rows that are shown, and those of"),
        (["totals", "--table", "parquet:t", "--json"], 2, "--json is for rows that are shown, and those of mine_to_r"),
        (["totals", "--table", "parquet:t", "--key", "usr"], 1, "did you mean 'user'?"),
        (["totals", "--table", "parquett:t"], 2, "a target is one of duckdb:path.db#table"),
        (["totals", "--table", "parquet:t", "--output", "x.csv"], 2, "are two places for the result"),
        (["totals", "--output", "x.txt"], 2, "--output writes a file that ends with .parquet"),
        (["high", "--available-now"], 2, "--available-now is for a table: give --table URL"),
    ],
)
def test_wrong_use_is_one_line(
    arguments: list[str], code: int, says: str, mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *options = arguments
    assert main(["run", f"mine_to_run:{name}", *options]) == code
    told = capsys.readouterr()
    assert told.out == ""
    [line] = told.err.splitlines()
    assert says in line


STREAM = """
import uncombine as uc

def bounded(spark):
    return uc.flow("rows", spark=spark).window("1 minute").combine(by="user", total=uc.Sum("score"))

def endless(spark):
    rows = uc.flow("rows", spark=spark, streaming=True, watermark="0 s")
    return rows.window("1 minute", "each row").combine(by="user", total=uc.Sum("score"))

def fails(spark):
    numbers = uc.flow("rows", spark=spark).with_columns(n=uc.col("user").cast("int64"))
    return numbers.window("1 minute").combine(total=uc.Median("n"))
"""


@pytest.mark.spark
def test_flows_on_spark(
    spark: Any,
    user_module: Callable[[str, str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "rows").mkdir()
    at = EVENTS["ts"].cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    pq.write_table(EVENTS.set_column(0, "ts", at), tmp_path / "rows" / "a.parquet")
    # The session is running already, and has another working folder.
    user_module("mine_on_spark", STREAM.replace('"rows"', repr(str(tmp_path / "rows"))))
    assert main(["run", "mine_on_spark:bounded", "--final", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted(row["total"] for row in rows) == [1, 4, 8]
    assert main(["run", "mine_on_spark:fails"]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("uncombine: mine_on_spark:fails failed on Spark: OutOfRange: col('user').cast")

    for options, says in (
        ([], "the rows of mine_on_spark:endless have no end: keep the result in a table with --table and --checkpoint"),
        (["--table", "parquet:live"], "have no end: give --checkpoint, the folder of its progress"),
        (["--table", "parquet:live", "--checkpoint", "c", "--available-now", "--every", "1 s"], "give one of them"),
    ):
        assert main(["run", "mine_on_spark:endless", *options]) == 2
        assert says in capsys.readouterr().err
    place = ["--table", f"parquet:{tmp_path}/live", "--checkpoint", str(tmp_path / "checkpoint")]
    assert main(["run", "mine_on_spark:endless", *place, "--available-now", "--json"]) == 0
    told = capsys.readouterr()
    assert sorted(json.loads(line)["total"] for line in told.out.splitlines()) == [1, 4, 8]
    assert re.search(r"^[\d:]{8} the Parquet folder .*: batch 0, [\d.]+ s: 4 rows in, ", told.err, re.MULTILINE)

    def interrupted(live: LiveTable, timeout: float) -> None:
        live.processAllAvailable()
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(LiveTable, "awaitTermination", interrupted)
    pq.write_table(EVENTS.set_column(0, "ts", at), tmp_path / "rows" / "b.parquet")
    left_out = ["--left-out", f"parquet:{tmp_path}/bad"]
    assert main(["run", "mine_on_spark:endless", *place, *left_out]) == 1
    assert "keeps all windows of a key in one shard (rows left out by foreach_batch() or left_out=" in (
        capsys.readouterr().err
    )
    assert main(["run", "mine_on_spark:endless", *place, "--json", "--quiet"]) == 130
    told = capsys.readouterr()
    assert sorted(json.loads(line)["total"] for line in told.out.splitlines()) == [2, 4, 8]
    assert "follows its input; Ctrl-C ends it" in told.err
    assert ": batch " not in told.err
