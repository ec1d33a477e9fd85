"""The files that a user of the command names, and one line for each that cannot be read."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.feather import write_feather

from uncombine.cli.command_line import main

COUNT = ["--window", "global", "--combine", "n=count", "--json"]
GOOD = "ts,score\n2024-05-01T12:00:10Z,3\n2024-05-01T12:03:00Z,4\n"


def count(path: Path | str, *options: str) -> int:
    return main(["replay", str(path), *COUNT, *options])


def test_a_file_whose_name_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log").write_text(GOOD.replace(",", ";"))
    assert count(tmp_path / "log") == 2
    assert "does not end with a known format: give --format" in capsys.readouterr().err
    assert count(tmp_path / "log", "--format", "csv") == 2
    assert "is one column: give --delimiter ';', or --delimiter ',' if it is" in capsys.readouterr().err
    assert count(tmp_path / "log", "--format", "csv", "--delimiter", ";") == 0
    assert json.loads(capsys.readouterr().out)["n"] == 2


def test_a_decimal_comma(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "prices.csv").write_text("ts;price\n2024-05-01T12:00:00Z;1,5\n2024-05-01T12:00:01Z;2,25\n")
    replay = ["replay", str(tmp_path / "prices.csv"), "--window", "1 minute", "--combine", "total=sum:price", "--json"]
    assert main([*replay, "--delimiter", ";", "--decimal-point", ","]) == 0
    assert json.loads(capsys.readouterr().out)["total"] == 3.75
    both = [str(tmp_path / "prices.csv")] * 2
    assert main(["compare", *both, "--delimiter", ";", "--decimal-point", ","]) == 0
    assert main(["compare", *both]) == 2
    assert "give --delimiter ';'" in capsys.readouterr().err
    assert main(["laws", "uncombine:Sum", "--values", both[0]]) == 2
    assert "give --delimiter ';'" in capsys.readouterr().err


def test_a_wrong_number_makes_no_text_of_a_column_with_a_type(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, hand = tmp_path / "a.csv", tmp_path / "hand.csv"
    path.write_text("k;time;x\n01;27/10/2024 00:30:00;22,8\n01;27/10/2024 23:30:00;1,2\n01;28/10/2024 00:10:00;abc\n")
    csv = ["--delimiter", ";", "--decimal-point", ","]
    times = ["--time", "time", "--time-format", "%d/%m/%Y %H:%M:%S", "--time-zone", "Europe/Paris"]
    replay = ["replay", str(path), *csv, *times, "--window", "calendar day Europe/Paris", "--final"]
    assert main([*replay, "--combine", "s=sum:x"]) == 2
    assert "'x' is string: give its type, as by --type seconds=float64" in capsys.readouterr().err
    assert main([*replay, "--combine", "s=sum:x", "--type", "x=float64"]) == 0
    given = capsys.readouterr()
    assert given.out.splitlines()[1].split() == ["2024-10-27", "00:00:00+02:00", "2024-10-28", "00:00:00+01:00", "24.0"]
    assert "1 row cannot be read and is left out, the first in line 4" in given.err
    for wrong, says in (("y=float64", "--type needs column 'y'"), ("x=flat", "--type takes COLUMN=TYPE")):
        assert main([*replay, "--combine", "s=sum:x", "--type", wrong]) == 2
        assert says in capsys.readouterr().err
    hand.write_text("k;x\n01;22,8\n")
    pq.write_table(pa.table({"k": ["01"], "x": [22.8]}), tmp_path / "hand.parquet")
    assert main(["compare", str(tmp_path / "hand.parquet"), str(hand), *csv]) == 0


def test_a_row_that_is_an_error_names_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = "".join(f"2024-05-01T12:00:00Z,{n}\n" for n in range(200_000))
    (tmp_path / "a.csv").write_text(f"ts,n\n{lines}2024-05-01T12:00:00Z,many\n")
    assert count(tmp_path / "a.csv", "--on-bad-row", "error", "--combine", "s=sum:n") == 2
    assert "leave such rows out with --on-bad-row leave_out" in capsys.readouterr().err


def test_a_file_in_another_encoding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "names.csv").write_bytes("ts,name\n2024-05-01T12:00:00Z,J\xe4ger\n".encode("latin-1"))
    assert count(tmp_path / "names.csv", "--by", "name") == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert "1 row cannot be read and is left out, the first in line 2 of" in told.err
    assert count(tmp_path / "names.csv", "--by", "name", "--encoding", "latin-1") == 0
    assert json.loads(capsys.readouterr().out)["name"] == "J\xe4ger"


def test_a_folder_is_read_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for country in ("DE", "FR"):
        (tmp_path / f"country={country}").mkdir()
        (tmp_path / f"country={country}" / "a.csv").write_text(GOOD)
    assert count(tmp_path) == 0
    assert json.loads(capsys.readouterr().out)["n"] == 4
    assert count(tmp_path, "--where", "country=DE") == 0
    assert json.loads(capsys.readouterr().out)["n"] == 2


def test_a_file_with_names_alone_has_no_panes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "names.csv").write_text("ts,score\n")
    assert count(tmp_path / "names.csv") == 0
    assert capsys.readouterr().out == ""
    assert main(["replay", str(tmp_path / "names.csv"), *COUNT[:-1]]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "(no rows)"


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("empty.csv", b"", "Empty CSV file"),
        ("empty.parquet", b"", "cannot be read"),
        ("other.parquet", b"ts,score\n1,2\n", "cannot be read"),
        ("latin.csv", b"ts,n\xe4me\n2024-05-01T12:00:00Z,3\n", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(
    name: str, data: bytes, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(data)
    assert count(tmp_path / name) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert says in line
    assert name in line


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "locked.csv").write_text(GOOD)
    (tmp_path / "locked.csv").chmod(0)
    assert count(tmp_path / "locked.csv") == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "locked.csv" in line


def test_an_empty_folder_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert count(tmp_path) == 2
    assert capsys.readouterr().err == f"uncombine: there is no file '{tmp_path}'\n"


def test_a_store_that_cannot_be_reached_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert count("nosuch://bucket/events.csv") == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "nosuch://bucket cannot be reached" in line


@pytest.mark.parametrize(
    ("arrived", "options"),
    [
        ("2024-05-01T12:00:20", []),
        ("2024-05-01T10:00:20Z", []),
        ("01.05.2024 12:00:20", []),
        ("12:00:20 01/05/2024", ["--processing-time-format", "%H:%M:%S %d/%m/%Y"]),
        ("01.05.2024 12:00:20 +0200", ["--processing-time-format", "%d.%m.%Y %H:%M:%S %z"]),
    ],
)
@pytest.mark.parametrize("event", ["01.05.2024 12:00:10", "2024-05-01T12:00:10", "2024-05-01T10:00:10Z"])
def test_a_zone_is_that_of_all_times_without_one(
    event: str, arrived: str, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also of the times of arrival; times that say their zone keep it."""
    (tmp_path / "a.csv").write_text(f"time;arrived\n{event};{arrived}\n")
    form = ["--time-format", "%d.%m.%Y %H:%M:%S"] if "." in event else []
    if not form and arrived.startswith("01."):
        options = ["--processing-time-format", "%d.%m.%Y %H:%M:%S", *options]
    command = ["replay", str(tmp_path / "a.csv"), "--delimiter", ";", "--time", "time", *form, "--processing-time"]
    replay = [*command, "arrived", "--time-zone", "Europe/Berlin", "--window", "1 minute", "--trigger", "each row"]
    assert main([*replay, *options, "--combine", "n=count", "--json"]) == 0
    row = json.loads(capsys.readouterr().out.splitlines()[0])
    assert (row["window_start"], row["processing_time"]) == ("2024-05-01T12:00:00+02:00", "2024-05-01T12:00:20+02:00")


WALL = [datetime(2026, 11, 3, 14, 5), datetime(2026, 11, 3, 23, 30), datetime(2026, 7, 4, 0, 10)]
"""Times of a clock in Berlin, where it is one or two hours later than UTC."""


@pytest.mark.parametrize("form", ["texts", "german", "parquet", "arrow", "utc"])
def test_hours_of_times_are_those_of_the_clock_that_is_named(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In keys and conditions, of files whose times say no zone and of those that are in UTC; results have its times."""
    zone, options = ZoneInfo("Europe/Berlin"), ["--time-zone", "Europe/Berlin"]
    aware = [at.replace(tzinfo=zone) for at in WALL]
    kinds = {"parquet": pa.timestamp("us"), "arrow": pa.timestamp("ms"), "utc": pa.timestamp("us", "UTC")}
    if form in kinds:
        path = tmp_path / f"rows.{'arrow' if form == 'arrow' else 'parquet'}"
        rows = pa.table({"ts": pa.array(aware if form == "utc" else WALL, kinds[form])})
        (write_feather if form == "arrow" else pq.write_table)(rows, str(path))
    else:
        path = tmp_path / "rows.csv"
        written = [f"{at:%d.%m.%Y %H:%M:%S}" if form == "german" else f"{at}" for at in WALL]
        path.write_text("\n".join(["ts", *written]))
        options += ["--time-format", "%d.%m.%Y %H:%M:%S"] if form == "german" else []
    command = ["replay", str(path), *options, "--window", "global", "--combine", "at=max:ts", "--final", "--json"]
    assert main([*command, "--by", "hour=col('ts').dt.hour()"]) == 0
    found = {row["hour"]: row["at"] for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert found == {at.hour: at.isoformat() for at in aware}
    if form != "german":  # a condition over such a column is one of texts
        assert main([*command, "--where", "col('ts').dt.hour() >= 23"]) == 0
        [row] = map(json.loads, capsys.readouterr().out.splitlines())
        assert row["at"] == "2026-11-03T23:30:00+01:00"
    assert main([*command, "--where", "ts>=2026-11-03 14:05", "--processing-time", "ts"]) == 0
    [row] = map(json.loads, capsys.readouterr().out.splitlines())
    assert row["at"] == "2026-11-03T23:30:00+01:00"


def test_windows_of_days_begin_in_utc_and_the_command_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text("ts\n2026-05-01T23:30:00\n2026-05-02T00:30:00\n")
    command = ["replay", str(tmp_path / "a.csv"), "--time-zone", "Europe/Berlin", "--combine", "n=count", "--json"]
    for window, starts, note in (
        ("1 day", ["2026-05-01T02:00:00+02:00"], True),
        ("calendar day Europe/Berlin", ["2026-05-01T00:00:00+02:00", "2026-05-02T00:00:00+02:00"], False),
        ("1 hour", ["2026-05-01T23:00:00+02:00", "2026-05-02T00:00:00+02:00"], False),
    ):
        assert main([*command, "--window", window]) == 0
        said = capsys.readouterr()
        assert [json.loads(line)["window_start"] for line in said.out.splitlines()] == starts
        assert ("--window 'calendar day Europe/Berlin' has those" in said.err) == note


def test_a_bad_value_in_a_column_that_nothing_reads_loses_no_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text("ts,k,n,other\n2026-05-01T12:00:00Z,a,1,x\n2026-05-01T12:00:01Z,a,y,2\n")
    types = ["--type", "n=int64", "--type", "other=int64"]
    command = ["replay", str(tmp_path / "a.csv"), *types, "--window", "1 hour", "--by", "k", "--json"]
    for needs, count in (
        (["--combine", "n=count"], 2),
        (["--combine", "n=CountIf(col('n') > 0)"], 1),
        (["--combine", "n=count", "--where", "other>=0"], 1),
        (["--combine", "n=count", "--by", "more=col('n') + 1"], 1),
        (["--combine", "n=count", "--diff", "n"], 1),
    ):
        assert main([*command, *needs]) == 0
        said = capsys.readouterr()
        assert sum(json.loads(line)["n"] for line in said.out.splitlines()) == count
        assert ("cannot be read" in said.err) == (count == 1)
        assert ("nothing reads column 'n', so its wrong values are no bad rows: --where 'n!='" in said.err) == (
            needs == ["--combine", "n=count"] or "--where" in needs
        )


def test_texts_that_stand_for_no_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("ts,n\n2026-05-01T12:00:00Z,1\n2026-05-01T12:00:01Z,-\n2026-05-01T12:00:02Z,\n")
    command = ["replay", str(tmp_path / "a.csv"), "--window", "1 hour", "--combine", "n=count", "--json"]
    assert main([*command, "--combine", "s=sum:n", "--null-value", "-", "--null-value", "n/a"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["n"], row["s"]) == (3, 1)
    assert main([*command, "--combine", "s=CountIf(col('n') > 0)"]) == 2
    assert "does not work on string and int64: give its type, as by --type" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["texts", "german", "parquet", "utc"])
def test_times_that_a_clock_shows_twice_are_told(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Unless the file says which they are."""
    wall = [datetime(2026, 10, 25, 1, 30), datetime(2026, 10, 25, 2, 30), datetime(2026, 10, 25, 2, 45)]
    options = ["--time-format", "%d.%m.%Y %H:%M"] if form == "german" else []
    path = tmp_path / ("a.parquet" if form == "parquet" else "a.csv")
    if form == "parquet":
        pq.write_table(pa.table({"ts": pa.array(wall, pa.timestamp("us"))}), path)
    else:
        texts = [f"{at:%d.%m.%Y %H:%M}" if form == "german" else f"{at:%Y-%m-%d %H:%M:%S}" for at in wall]
        if form == "utc":
            texts = ["2026-10-25T00:30:00Z", "2026-10-25T00:45:00Z", "2026-10-25T01:30:00Z"]
        path.write_text("\n".join(["ts", *texts]))
    command = ["replay", str(path), *options, "--window", "1 hour", "--in-order", "--combine", "n=count", "--json"]
    assert main([*command, "--time-zone", "Europe/Berlin"]) == 0
    told = "2 rows have times that the clock of Europe/Berlin shows twice, such as 2026-10-25 02:30: they are taken"
    assert (told in capsys.readouterr().err) == (form != "utc")
    assert main(command) == 0
    assert "twice" not in capsys.readouterr().err


def test_times_of_arrival_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("ts;seen\n2024-05-01T12:00:10Z;01.05.2024\n")
    assert count(tmp_path / "a.csv", "--delimiter", ";", "--processing-time", "seen") == 2
    assert "--processing-time-format has the format of others" in capsys.readouterr().err
    (tmp_path / "a.csv").write_text("ts;seen\n2024-05-01T12:00:10Z;01.05.2024\n2024-05-01T12:00:11Z;never\n")
    form = ["--processing-time-format", "%d.%m.%Y"]
    assert count(tmp_path / "a.csv", "--delimiter", ";", "--processing-time", "seen", *form) == 2
    assert "in the format '%d.%m.%Y', and 'never' is none" in capsys.readouterr().err
