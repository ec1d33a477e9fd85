"""`uncombine rolling`: the rows of a file with their results, and where they go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import uncombine as uc
from uncombine.cli.command_line import main


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(["rolling", *arguments, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_the_rows_of_a_file_with_their_results(events: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--by", "user", "--period", "m1=1 minute", "--period", "ever=", "--combine", "total=sum:score"]
    rows = printed(capsys, events, *options)
    found = [(row["ts"][11:16], row["m1_total"], row["ever_total"]) for row in rows]
    assert found == [("12:00", 3, 3), ("12:03", 4, 12), ("12:00", 8, 8), ("12:05", 1, 13)]


def test_last_rows_ticks_and_a_file(events: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [row["n"] for row in printed(capsys, events, "--rows", "2", "--combine", "n=count")] == [1, 2, 2, 2]
    ticks = ["--period", "2 minutes", "--every", "2 minutes", "--combine", "n=count", "--closed", "both"]
    assert [row["n"] for row in printed(capsys, events, *ticks)] == [2, 1, 1, 0]
    out = tmp_path / "rolled.parquet"
    assert main(["rolling", events, "--period", "1 day", "--combine", "n=count", "--output", str(out)]) == 0
    table = pq.read_table(out)
    wanted = uc.rolling(table.drop_columns(["n"]), "1 day", n=uc.Count())
    assert table["n"].to_pylist() == wanted["n"].to_pylist() == [1, 3, 2, 4]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--period", "1 hour", "--period", "2 hours"], "have names of their own"),
        ([], "exactly one of period="),
        (["--period", "soon"], "soon"),
        (["--period", "1 hour", "--by", "usr"], "'usr'"),
    ],
)
def test_options_that_do_not_fit(
    events: str, options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rolling", events, *options, "--combine", "n=count"]) == 2
    assert words in capsys.readouterr().err
