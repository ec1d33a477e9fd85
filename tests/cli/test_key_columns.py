"""Keys of the command line that are computed from the rows."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from uncombine.cli.command_line import main

ROWS = pa.table(
    {
        "ts": [f"2024-05-01T{hour:02}:{minute:02}:00Z" for hour in (9, 10) for minute in (5, 25, 45)],
        "user": ["ada", "bob", "ada", "ada", "bob", "bob"],
        "n": [1, 2, 3, 4, 5, 6],
    }
)


@pytest.fixture
def rows(tmp_path: Path) -> str:
    pyarrow.csv.write_csv(ROWS, tmp_path / "rows.csv")
    return str(tmp_path / "rows.csv")


def shown(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_replay_has_a_result_for_each_hour_of_the_day(rows: str, capsys: pytest.CaptureFixture[str]) -> None:
    hour = "hour=col('ts').dt.convert_time_zone('Europe/Berlin').dt.hour()"
    command = ["replay", rows, "--by", hour, "--by", "user", "--window", "global", "--combine", "total=sum:n"]
    assert main([*command, "--final", "--json"]) == 0
    found = {(row["hour"], row["user"]): row["total"] for row in shown(capsys)}
    assert found == {(11, "ada"): 4, (11, "bob"): 2, (12, "ada"): 4, (12, "bob"): 11}


def test_rolling_takes_one_too(rows: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["rolling", rows, "--by", "odd=col('n') % 2", "--period", "1 hour", "--combine", "total=sum:n"]
    assert main([*command, "--json"]) == 0
    assert [row["total"] for row in shown(capsys)] == [1, 2, 4, 6, 8, 10]


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("col('ts').dt.hour()", "has no name for its column: write --by name=col"),
        ("user=col('n') % 2", "makes a column 'user', and the file has one"),
        ("hour=col('when').dt.hour()", "needs column 'when'"),
        ("hour=col('ts').dt.hours()", "hours"),
    ],
)
def test_what_is_no_key_is_said(rows: str, by: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", rows, "--by", by, "--window", "global", "--combine", "n=count"]) != 0
    assert words in capsys.readouterr().err
