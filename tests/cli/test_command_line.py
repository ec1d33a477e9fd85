"""The command `uncombine`: its parts, its exit codes, and one line for each wrong use."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import stored
from pyspark.sql import SparkSession
from shell_events import REPLAY

import uncombine as uc
from uncombine.cli.command_line import main, parser_of
from uncombine.errors import InvalidArgument


@pytest.mark.weekly
def test_a_reader_that_has_seen_enough_is_no_error(events: str) -> None:
    command = [
        sys.executable,
        "-c",
        "import sys; from uncombine.cli.command_line import main; sys.exit(main(sys.argv[1:]))",
    ]
    run = subprocess.Popen(
        [*command, "replay", events, *REPLAY], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert run.stdout
    assert run.stderr
    run.stdout.close()
    assert run.stderr.read() == ""
    run.stderr.close()
    assert run.wait() == 0


class Terminal(io.StringIO):
    """A text that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_bar_is_shown_on_a_terminal_only(events: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    assert main(["replay", events, *REPLAY, "--json"]) == 0
    plain = capsys.readouterr()
    assert plain.err == ""
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert main(["replay", events, *REPLAY, "--json"]) == 0
    assert capsys.readouterr().out == plain.out
    # The four rows and the end of the input.
    assert re.search(r"replaying .*100%", sys.stderr.getvalue())
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert main(["replay", events, *REPLAY, "--json"]) == 0
    assert sys.stderr.getvalue() == ""


def test_a_warning_is_one_line(events: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--mode", "accumulating", "--trigger", "each row", "--final", "--by", "user"]
    assert main(["replay", events, "--window", "1 hour", "--combine", "n=count", *options]) == 0
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("uncombine: warning: windows can be shown again in mode='accumulating'")


@pytest.mark.weekly
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["relpay"], "there is no command 'relpay': did you mean 'replay'?"),
        (["replay", "{}", "--windwo", "1 minute"], "replay has no option --windwo: did you mean '--window'?"),
        (["replay", "{}", "--until", "50 % of the files"], "replay has no option --until: uncombine run has it"),
        (["replay", "{}", "--changelog", "x"], "write a flow in Python, uc.flow('events.csv', changelog=...), and run"),
        (["rolling", "{}", "--diff", "diff"], "uc.flow('events.csv', diff='diff').rolling('7 days').combine(total="),
        (["--jsn"], "uncombine has no option --jsn: known are '-h', '--help', '--version'"),
        (["replay", "{}", "--window", "1 minute"], "are required: --combine: see uncombine replay --help"),
        (["replay", "{}", *REPLAY, "--limit", "-1"], "argument --limit: must be a whole number of at least 0"),
        (["replay", "{}", *REPLAY, "--combine", "total=count"], "--combine names two results 'total'"),
        (
            ["replay", "{}", *REPLAY, "--processing-time", "user"],
            "column 'user' has no times: 'ada' is not an ISO time",
        ),
        (["replay", "{}", *REPLAY, "--mode", "retract"], "argument --mode: invalid choice: 'retract'"),
        (["replay", "no.parquet", *REPLAY], "there is no file 'no.parquet'"),
        (["replay", "{}", *REPLAY, "--time", "at"], "--time needs column 'at', which the input does not have"),
        (["replay", "{}", *REPLAY, "--window", "tumbling 1 minute"], "'tumbling 1 minute' is not a window such as"),
        (["replay", "{}", *REPLAY, "--window", "sesions 1 minute"], "did you mean 'sessions'?"),
        (["replay", "{}", *REPLAY, "--trigger", "AfterCont(3)"], "there is no AfterCont: did you mean 'AfterCount'?"),
        (["replay", "{}", *REPLAY, "--trigger", "erly every 1 minute"], "did you mean 'early'?"),
        (["replay", "{}", *REPLAY, "--combine", "n=cuont"], "there is no 'cuont', did you mean 'count'?"),
        (["replay", "{}", *REPLAY, "--combine", "sum"], "--combine takes name=function:column"),
        (["replay", "{}", *REPLAY, "--lateness", "soon"], "'soon' is not a length of time"),
        (["replay", "{}", *REPLAY, "--combine", "n=zscore:score"], "known are 'approxcountdistinct'"),
        (["replay", "{}", *REPLAY, "--time", "user"], "column 'user' has no times: 'ada' is not an ISO"),
        (["replay", "{}", *REPLAY, "--where", "user"], "--where takes COLUMN=VALUE such as user=ada"),
        (["replay", "{}", *REPLAY, "--where", "user=eve"], "no row is left by --where 'user=eve'"),
        (["replay", "{}", *REPLAY, "--table", "totals"], "a target is one of duckdb:path.db#table"),
        (["replay", "{}", *REPLAY, "--output", "{}"], "is there already: give --overwrite, or another name"),
        (["laws", "mine.py:Spread"], "laws takes a module and not a file: write mine:Spread in its folder"),
        (["laws", "nowhere"], "laws takes MODULE:NAME"),
        (["laws", "no_such_module:x"], "No module named 'no_such_module'"),
        (["why", "nowhere", "--key", "user"], "--key names a column and its value, such as --key user=ada, but is"),
        (["why", "nowhere", "--row", "ada"], "--row is a row as JSON, such as"),
        (
            ["why", "nowhere", "--row", "{{}}", "--window", "2024-05-01"],
            "why takes --window and --key, or --row, which",
        ),
        (["checkpoint", "nowhere"], "there is no folder 'nowhere': name the checkpoint of a query"),
    ],
)
def test_wrong_use_is_one_line(
    arguments: list[str],
    says: str,
    events: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)  # that of other tests
    assert main([part.format(events) for part in arguments]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("uncombine: ")
    assert says in line


def test_completion_knows_all_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "events.csv").write_text("")
    assert main(["completion", "bash"]) == 0
    script = (
        capsys.readouterr().out
        + """
COMP_WORDS=(uncombine re) COMP_CWORD=1; _shtab_uncombine; echo "${COMPREPLY[@]}"
COMP_WORDS=(uncombine replay --late) COMP_CWORD=2; _shtab_uncombine; echo "${COMPREPLY[@]}"
COMP_WORDS=(uncombine replay ev) COMP_CWORD=2; _shtab_uncombine; echo "${COMPREPLY[@]}"
COMP_WORDS=(uncombine run m --output ev) COMP_CWORD=4; _shtab_uncombine; echo "${COMPREPLY[@]}" """
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "replay\n--lateness\nevents.csv\nevents.csv\n"


def test_without_shtab_completion_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "zsh"]) == 2
    assert capsys.readouterr().err.endswith("not installed: pip install 'uncombine[completion]'\n")


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "replay" in capsys.readouterr().out
    assert parser_of().prog == "uncombine"


@pytest.mark.spark
def test_a_checkpoint_shows_what_it_holds(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = stored.unpacked(stored.CHECKPOINT, tmp_path) / "checkpoint"
    stored.at_home(folder, tmp_path / "rows")

    def asked(*words: str) -> str:
        assert main(["checkpoint", str(folder), *words]) == 0
        return capsys.readouterr().out

    found = uc.checkpoint(folder, spark=spark)
    with pytest.raises(InvalidArgument, match="a query of several flows, and a seed is of one"):
        found.seed(str(tmp_path / "seed"))
    assert [step.number for step in found.steps] == [1, 2, 3, 4], "it is a query of several flows"
    assert not (tmp_path / "seed").exists()
    lines = asked().splitlines()
    assert lines[0] == f"{folder} after batch {stored.BEFORE - 1}"
    assert len(lines) > 1
    for line in lines[1:]:
        assert re.match(r"step \d, a grouping by .*: .*\d windows.* in [\d,]+ bytes, watermark 2016-01-20 12:0", line)
    assert json.loads(asked("--json"))["batch"] == stored.BEFORE - 1
    assert {"window", "panes", "bytes"} <= set(asked("--rows", "1").splitlines()[0].split())
    assert len(json.loads(asked("--rows", "1", "--json"))) == found.rows(1).num_rows
    assert asked("--largest", "1").count("bytes") == len(found.steps)
    assert "watermark" in asked("--sources").splitlines()[0]
    assert json.loads(asked("--counts", "--json"))["step 1"].keys() == {"dropped", "finished", "unassigned", "bad"}
    assert "dropped" in asked("--counts")
    several = ["--rows", "1", "--sources", "--counts", "--largest", "2"]
    heads = ["rows of step 1", *(f"largest rows of step {n}" for n in (1, 2, 3, 4)), "sources", "counts"]
    assert [line[:-1] for line in asked(*several).splitlines() if line.endswith(":")] == heads
    assert list(json.loads(asked(*several, "--json"))) == heads
    assert main(["why", str(folder)]) == 0
    assert capsys.readouterr().out.strip() == uc.why(found)
    assert main(["why", str(folder), "--batch", "0"]) == 0
    told = capsys.readouterr()
    assert told.out.strip() == uc.why(found.at(0))
    assert told.err.endswith("uncombine: as of the end of batch 0\n")
    by = [name for name, _ in found.steps[0].made_by["by"]]
    row = next(one for one in found.rows(1).to_pylist() if all(one[name] is not None for name in by))
    key = {name: row[name] for name in by}
    words = ["--window", row["window"]["start"].isoformat(), *(f"--key={name}={key[name]}" for name in by)]
    assert main(["why", str(folder), *words]) == 0
    assert capsys.readouterr().out.strip() == uc.why(found, window=row["window"]["start"], **key)
