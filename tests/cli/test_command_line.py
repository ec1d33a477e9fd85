"""The command `uncombine`: what it prints, its exit codes, and one line for each wrong use."""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import stored
from hostile_texts import COSTLY, damaged
from seeds import seeds

import uncombine as uc
from uncombine.cli.command_line import main, parser_of
from uncombine.cli.words import combiner_of
from uncombine.sparkops import checkpoints

EVENTS = pa.table(
    {
        "ts": ["2024-05-01T12:00:10", "2024-05-01T12:03:00", "2024-05-01T12:00:40", "2024-05-01T12:05:00"],
        "seen": ["2024-05-01T12:00:11", "2024-05-01T12:03:01", "2024-05-01T12:04:00", "2024-05-01T12:05:01"],
        "user": ["ada", "ada", "ada", "ada"],
        "score": [3, 4, 5, 1],
    }
)

REPLAY = ["--by", "user", "--window", "fixed 1 minute", "--combine", "total=sum:score", "--lateness", "1 hour"]


@pytest.fixture
def events(tmp_path: Path) -> str:
    pq.write_table(EVENTS, tmp_path / "events.parquet")
    return str(tmp_path / "events.parquet")


def test_a_replay_shows_panes_and_retractions(events: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", events, *REPLAY, "--processing-time", "seen", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    shown = [(row["window_start"][11:16], row["total"], row["diff"], row["timing"]) for row in rows]
    first = [("12:00", 3, 1, "ON_TIME"), ("12:00", 3, -1, "ON_TIME"), ("12:00", 8, 1, "LATE")]
    assert shown == [*first, ("12:03", 4, 1, "ON_TIME"), ("12:05", 1, 1, "ON_TIME")]


def test_a_replay_of_csv_shows_what_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pyarrow.csv.write_csv(EVENTS, tmp_path / "events.csv")
    assert main(["replay", str(tmp_path / "events.csv"), *REPLAY, "--table", "--limit", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["user", "window_start", "window_end", "total", "event_time"]
    assert "ada   2024-05-01 12:00:00Z  2024-05-01 12:01:00Z      8" in "\n".join(lines)
    assert lines[-1] == "... 1 more row"


@pytest.mark.parametrize("ending", ["html", "png"])
def test_a_replay_draws(events: str, tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / f"panes.{ending}"
    assert main(["replay", events, *REPLAY, "--plot", str(out)]) == 0
    assert out.stat().st_size > 5_000
    assert capsys.readouterr().err == f"wrote {out}\n"


def test_a_window_of_all_time_is_shown_at_the_end_of_a_file(events: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", events, "--window", "global", "--combine", "n=count:*", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n"] == 4


def test_a_replay_of_some_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    users = pa.table(
        {"ts": ["2024-05-01T12:00:10Z"] * 3, "user": ["ada", "bob", None], "cents": [1234567.89, 1.5, 0.25]}
    )
    pq.write_table(users, tmp_path / "users.parquet")
    options = ["--window", "fixed 1 minute", "--combine", "total=sum:cents", "--by", "user", "--table"]
    for chosen, last in (("user=ada", "1234567.89"), ("user=", "0.25"), ("cents=1.5", "1.5")):
        assert main(["replay", str(tmp_path / "users.parquet"), *options, "--where", chosen]) == 0
        [_, row] = capsys.readouterr().out.splitlines()
        assert f"  {last}" in row


def test_many_keys_are_drawn_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    users = pa.table({"ts": ["2024-05-01T12:00:10Z"] * 13, "user": [f"user {i}" for i in range(13)]})
    pq.write_table(users, tmp_path / "users.parquet")
    options = ["--window", "fixed 1 minute", "--combine", "n=count", "--by", "user", "--plot", str(tmp_path / "p.html")]
    assert main(["replay", str(tmp_path / "users.parquet"), *options]) == 0
    assert "user 12" in capsys.readouterr().out
    assert "all 13 keys" in (tmp_path / "p.html").read_text(encoding="utf-8")
    assert main(["replay", str(tmp_path / "users.parquet"), *options, "--where", "user=user 3"]) == 0


def test_a_picture_of_another_kind_is_refused_before_the_replay(
    events: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", events, *REPLAY, "--plot", str(tmp_path / "panes.gif")]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "--plot is written as .html, .pdf, .png, .svg, but was given" in shown.err


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


MINE = """
import numpy as np
import pyarrow as pa
import uncombine as uc

good = uc.CountIf("x")

class CountFn(uc.CombineFn):
    capability = uc.Capability.GROUP
    fields = (pa.field("n", pa.int64()),)

    def add(self, groups, *columns, weights=None):
        return self.merge(groups, (pa.array(np.ones(len(columns[0].array), int) if weights is None else weights),))

    def merge(self, groups, accumulators):
        out = np.zeros(groups.count, np.int64)
        np.add.at(out, groups.codes, np.asarray(accumulators[0]))
        return (pa.array(out),)

    def uncombine(self, accumulators, others):
        return (pa.array(np.asarray(accumulators[0]) - np.asarray(others[0])),)

    def extract(self, accumulators):
        return accumulators[0]

columns = uc.from_columns("Columns", CountFn(), output=pa.int64())

def needs(x):
    return uc.Sum(x)

def made():
    return uc.BoolAnd("x")

bad = uc.from_scalar(
    "Bad", create=lambda: 0, add=lambda s, x: s + 1, merge=lambda a, b: a, extract=lambda s: s,
    accumulator=pa.int64(), output=pa.int64(),
)
number = 5
"""


def test_laws_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine_for_laws.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["laws", "mine_for_laws:good", "--examples", "20"]) == 0
    assert capsys.readouterr().out == "mine_for_laws:good keeps the laws of GROUP\n"
    assert main(["laws", "mine_for_laws:made", "--examples", "20", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"combiner": "mine_for_laws:made", "passed": True}
    assert main(["laws", "mine_for_laws:columns", "--examples", "20"]) == 0
    assert capsys.readouterr().out == "mine_for_laws:columns keeps the laws of GROUP\n"
    assert main(["laws", "mine_for_laws:needs"]) == 2
    assert "needs() missing 1 required" in capsys.readouterr().err
    assert main(["laws", "mine_for_laws:bad", "--examples", "20"]) == 1
    assert "law" in capsys.readouterr().err
    for name, says in (("number", "is a int, and laws are those of combiners"), ("none", "has no 'none'")):
        assert main(["laws", f"mine_for_laws:{name}"]) == 2
        assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["replay", "no.parquet", *REPLAY], "there is no file 'no.parquet'"),
        (["replay", "{}", *REPLAY, "--time", "at"], "--time needs column 'at', which the input does not have"),
        (["replay", "{}", *REPLAY, "--window", "tumbling 1 minute"], "'tumbling 1 minute' is not a window such as"),
        (["replay", "{}", *REPLAY, "--trigger", "AfterCont(3)"], "there is no AfterCont: did you mean 'AfterCount'?"),
        (["replay", "{}", *REPLAY, "--trigger", "erly every 1 minute"], "did you mean 'early'?"),
        (["replay", "{}", *REPLAY, "--combine", "n=cuont"], "there is no 'cuont', did you mean 'count'?"),
        (["replay", "{}", *REPLAY, "--combine", "sum:score"], "--combine takes name=function:column"),
        (["replay", "{}", *REPLAY, "--lateness", "soon"], "'soon' is not a length of time"),
        (["replay", "{}", *REPLAY, "--combine", "n=p95:score"], "known are 'approxcountdistinct'"),
        (["replay", "{}", *REPLAY, "--time", "user"], "column 'user' has no times: 'ada' is not an ISO time"),
        (["replay", "{}", *REPLAY, "--where", "user"], "--where takes COLUMN=VALUE such as user=ada"),
        (["replay", "{}", *REPLAY, "--where", "user=eve"], "--where 'user=eve' leaves no row of 4"),
        (["laws", "mine.py:Spread"], "laws takes a module and not a file: write mine:Spread in its folder"),
        (["laws", "nowhere"], "laws takes MODULE:NAME"),
        (["laws", "no_such_module:x"], "No module named 'no_such_module'"),
        (["checkpoint", "nowhere"], "there is no folder 'nowhere'"),
    ],
)
def test_wrong_use_is_one_line(
    arguments: list[str], says: str, events: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([part.format(events) for part in arguments]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("uncombine: ")
    assert says in line


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("top=TopK('x', 3)", ("top", uc.TopK("x", 3))),
        ("best=arg_max:user:score", ("best", uc.ArgMax("user", "score"))),
        ("m=avg:x", ("m", uc.Mean("x"))),
        ("n=Sum(col('x').str.len_chars())", ("n", uc.Sum(uc.col("x").str.len_chars()))),
        ("n=CollectSet(concat(col('x'), '-'))", ("n", uc.CollectSet(uc.concat(uc.col("x"), "-")))),
    ],
)
def test_texts_are_values(text: str, value: object) -> None:
    assert combiner_of(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').getcwd()",
        "Sum(open('x'))",
        "Sum(1 + 1)",
        "Sum(",
        "TopK()",
        "Sum(col('x').str)",
        "Sum(col('x').call('os'))",
        "Sum(col('x').str._of('a'))",
    ],
)
def test_texts_are_not_run(text: str) -> None:
    with pytest.raises(uc.UncombineError):
        combiner_of(f"a={text}")


def test_completion_knows_all_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    script = (
        capsys.readouterr().out
        + """
COMP_WORDS=(uncombine re) COMP_CWORD=1; _shtab_uncombine; echo "${COMPREPLY[@]}"
COMP_WORDS=(uncombine replay --late) COMP_CWORD=2; _shtab_uncombine; echo "${COMPREPLY[@]}" """
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "replay\n--lateness\n"


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
def test_a_checkpoint_shows_its_stages(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = stored.unpacked(stored.CHECKPOINT, tmp_path) / "checkpoint"
    stored.at_home(checkpoint, tmp_path / "rows")
    assert main(["checkpoint", str(checkpoint)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{checkpoint}: last batch {stored.BEFORE - 1}"
    heads = [line for line in lines if line.startswith("stage ")]
    assert heads
    for head in heads:
        assert re.fullmatch(r"stage \d of \d: 2 shards, [\d,]+ bytes, watermark 2016-01-20T12:0\d:.*Z", head)
    assert {line.split("  ")[0] for line in lines} >= {"rows in windows", "combiners", "watermark strategy"}


def test_a_checkpoint_can_be_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = checkpoints.StoredStage("1 of 1", {"stage": "1 of 1"}, ["Monotonic()"], 2, {"windows": 3}, 99, 0)
    monkeypatch.setattr(checkpoints, "read_checkpoint", lambda path: checkpoints.StoredFlow(path, 4, [stage]))
    assert main(["checkpoint", "c", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["last_batch"], found["stages"][0]["watermark"]) == (4, "1970-01-01T00:00:00Z")
    assert found["stages"][0]["held"] == {"windows": 3}


OF_EXPRESSIONS = [
    "Max(col('ts').dt.truncate('1 hour') - datetime.timedelta(seconds=5))",
    "Mean(col('x').call('round', options={'ndigits': 2}))",
    "Sum(coalesce(abs(col('x')), 0) // 2)",
]


@pytest.mark.parametrize("text", COSTLY, ids=lambda text: text[:20])
def test_texts_that_cost_too_much_are_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(uc.UncombineError) as refused:
        combiner_of(f"a={text}")
    assert len(str(refused.value)) < 6000


@pytest.mark.parametrize("seed", seeds(1, 40))
def test_texts_with_damage_are_read_or_refused(seed: int) -> None:
    good = ["a=TopK('x', 3)", "p=quantile:x:0.9", "a=Sum('x').where(col('y') > 2)", "a=avg:x", "n=count:*"]
    good += [f"a={made}" for made in OF_EXPRESSIONS]
    for text in damaged(random.Random(seed), good, 250):
        with contextlib.suppress(uc.UncombineError):
            combiner_of(text)


@pytest.mark.parametrize(
    "made", ["Sum('x').where(col('y') > 2)", "(Sum('x') / Count())", "Quantile('x', 0.5)", *OF_EXPRESSIONS]
)
def test_a_combiner_is_written_on_the_command_line_as_it_prints_itself(made: str) -> None:
    assert repr(combiner_of(f"total={made}")) == f"('total', {made})"
