"""`uncombine compare`: its words, its JSON, and its exit codes."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import uncombine as uc
from uncombine.cli import comparisons
from uncombine.cli.command_line import main
from uncombine.tables.comparison.comparison import Comparison

OLD = pa.table({"k": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]})
NEW = pa.table({"k": ["a", "b", "d"], "x": [1.0, 2.0 + 1e-9, 3.0]})

MINE = """
import uncombine as uc

rows = uc.flow([{"ts": 0, "k": "a", "x": 1.0}, {"ts": 1, "k": "b", "x": 2.0}])
both = rows.select("k", "x")

def made():
    return both

def on_spark(spark):
    df = spark.createDataFrame([(0, "a", 1.0)], "ts bigint, k string, x double")
    return uc.flow(df, time=uc.col("ts").cast_time("us")).select("k", "x")

def failing(table):
    if table.num_rows:
        raise ValueError("no such\\nluck")
    return table

fails = both.map(failing)
window = rows.window("1 minute")
"""


@pytest.fixture
def sides(user_module: Callable[[str, str], None], tmp_path: Path) -> Path:
    pq.write_table(OLD, tmp_path / "old.parquet")
    pyarrow.csv.write_csv(NEW, tmp_path / "new.csv")
    user_module("mine_to_compare", MINE)
    return tmp_path


def test_sides_that_differ(sides: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "old.parquet", "new.csv", "--keys", "k"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "old and new differ: 1 row changed, 1 only in old, 1 only in new, 1 equal"
    assert lines[3].split() == ["changed", "b", "2.0", "2.000000001"]
    assert main(["compare", "old.parquet", "new.csv", "--keys", "k", "--tolerance", "1e-6", "--examples", "1"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("1 row only in old, 1 only in new, 2 equal")
    assert len(lines) == 3


def test_sides_that_are_the_same(sides: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "old.parquet", str(sides / "old.*")]) == 0
    assert main(["compare", "mine_to_compare:both", "mine_to_compare:made", "--keys", "k,x"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "old and new are the same: 3 rows",
        "old and new are the same: 2 rows",
    ]


def test_weights_that_are_named(sides: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changes = pa.table({"k": ["a", "b", "c", "z", "z"], "x": [1.0, 2.0, 3.0, 0.0, 0.0], "w": [1, 1, 1, 1, -1]})
    pq.write_table(changes, sides / "changes.parquet")
    assert main(["compare", "old.parquet", "changes.parquet", "--diff", "w"]) == 0
    assert main(["compare", "old.parquet", "changes.parquet"]) == 2
    assert "only new has 'w'" in capsys.readouterr().err


def test_the_result_as_json(sides: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "old.parquet", "new.csv", "--keys", "k", "--json", "--examples", "2"]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts == {
        "same": False,
        **dict.fromkeys(("equal", "changed", "only_old", "only_new"), 1),
        "changed_columns": {"x": 1},
        "examples": [
            {"difference": "changed", "k": "b", "x_old": 2.0, "x_new": 2.000000001},
            {"difference": "only in old", "k": "c", "x_old": 3.0, "x_new": None},
        ],
    }


def test_columns_and_the_clock_of_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at = datetime(2026, 5, 1, 10, tzinfo=UTC)
    pq.write_table(pa.table({"at": [at], "n": [1], "more": ["x"]}), tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("at,n\n2026-05-01T12:00:00,1\n")
    command = ["compare", str(tmp_path / "a.parquet"), str(tmp_path / "b.csv")]
    assert main([*command, "--columns", "at,n", "--time-zone", "Europe/Berlin"]) == 0
    assert main([*command, "--columns", "at,n"]) == 1
    assert main([*command, "--columns", "n"]) == 0
    assert main([*command, "--columns", "n,m"]) == 2
    assert "--columns needs column 'm'" in capsys.readouterr().err


def test_options_of_csv(sides: Path) -> None:
    (sides / "semicolons.txt").write_text("k;x\na;1.0\nb;2.0\nc;3.0\n")
    (sides / "again.txt").write_text("k;x\nb;2.0\na;1.0\nc;3.0\n")
    assert main(["compare", "semicolons.txt", "again.txt", "--format", "csv", "--delimiter", ";"]) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["old.parquet", "nothing.csv"], "there is no file 'nothing.csv'"),
        (["old.parquet", "duckdb:shop.db#totals"], "new is a live table"),
        (["old.parquet", "mine_to_compare:nothing"], "the module 'mine_to_compare' has no 'nothing'"),
        (["old.parquet", "mine_to_compare:window"], "ends with window(...), which is no flow yet"),
        (["mine_to_compare:fails", "mine_to_compare:both"], "ValueError: no such"),
        (["old.parquet", "new.csv", "--keys", "z"], "keys= needs column 'z'"),
        (["old.parquet", "new.csv", "--tolerance", "x"], "must be a number such as 1e-9, but is 'x'"),
        (["old.parquet", "new.csv", "--tolerance", "0.1"], "tolerance= needs keys="),
        (["old.parquet", "new.csv", "--examples", "-1"], "--examples"),
        (["old.parquet"], "the following arguments are required: NEW"),
        (["old.parquet", "new.csv", "--key", "k", "--nothing"], "compare has no option --nothing"),
    ],
)
def test_an_error_is_a_sentence_and_2(
    sides: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *arguments]) == 2
    told = capsys.readouterr()
    assert words in told.err
    assert told.out == ""
    assert len(told.err.splitlines()) == 1


def test_a_flow_of_spark_with_a_file(sides: Path, spark: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "mine_to_compare:on_spark", str(sides / "old.parquet"), "--keys", "k"]) == 1
    assert capsys.readouterr().out.startswith("old and new differ: 2 rows only in new, 1 equal")


STREAMS = """
import uncombine as uc

def stream(spark):
    rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    return uc.flow(rates, time="timestamp", watermark="1 minute", tuning=uc.Tuning(shards=1))

def counts(spark):
    return stream(spark).window("global", "each row").combine(n=uc.Count())

def most(spark):
    return stream(spark).window("global", "each row").combine(n=uc.Max("value"))
"""


@dataclass
class Live:
    """A comparison of streams that has had some batches, and that goes on until Ctrl-C."""

    comparisons: list[Comparison]
    note: Callable[[Comparison, int], object]

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def awaitTermination(self, timeout: float) -> bool:
        for number, one in enumerate(self.comparisons):
            self.note(one, number)
        signal.raise_signal(signal.SIGINT)
        return False

    @property
    def comparison(self) -> Comparison:
        return self.comparisons[-1]


@pytest.mark.parametrize(("last", "code"), [(OLD, 0), (NEW, 1)])
def test_streams_are_compared_after_each_batch(
    last: pa.Table,
    code: int,
    user_module: Callable[[str, str], None],
    spark: object,
    capsys: pytest.CaptureFixture[str],
) -> None:
    user_module("streams_to_compare", STREAMS)
    asked: dict[str, Any] = {}
    some = [uc.compare(OLD, one, keys="k") for one in (NEW, last)]

    def compare(old: Any, new: Any, *, on_batch: Callable[[Comparison, int], object], **options: Any) -> Live:
        asked.update(options)
        return Live(some, on_batch)

    sides = ["streams_to_compare:counts", "streams_to_compare:most"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparisons, "compare", compare)
        assert main(["compare", *sides, "--keys", "k", "--every", "1 second"]) == code
    assert asked == {
        "keys": ["k"],
        "diff": None,
        "tolerance": None,
        "examples": 10,
        "trigger": {"processingTime": "1 second"},
    }
    told = capsys.readouterr()
    assert "Ctrl-C ends it" in told.err
    assert told.out == f"batch 0: {some[0]}\nbatch 1: {some[1]}\n{some[1]}\n"


def test_a_trigger_is_for_streams(sides: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "old.parquet", "new.csv", "--available-now"]) == 2
    assert "trigger= compares two streams on Spark, and old is none" in capsys.readouterr().err
