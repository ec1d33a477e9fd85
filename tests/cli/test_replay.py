"""`uncombine replay`: the panes of a file, and where they go."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from shell_events import EVENTS, REPLAY

import uncombine as uc
from uncombine.cli.command_line import main
from uncombine.local.script_run import LocalRun


def test_a_replay_shows_panes_and_retractions(events: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", events, *REPLAY, "--processing-time", "seen", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    shown = [(row["window_start"][11:16], row["total"], row["diff"], row["timing"]) for row in rows]
    first = [("12:00", 3, 1, "ON_TIME"), ("12:00", 3, -1, "ON_TIME"), ("12:00", 8, 1, "LATE")]
    assert shown == [*first, ("12:03", 4, 1, "ON_TIME"), ("12:05", 1, 1, "ON_TIME")]


def test_a_replay_of_csv_shows_what_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pyarrow.csv.write_csv(EVENTS, tmp_path / "events.csv")
    assert main(["replay", str(tmp_path / "events.csv"), *REPLAY, "--final", "--limit", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["user", "window_start", "window_end", "total"]
    assert lines[1] == "ada   2024-05-01 12:00:00Z  2024-05-01 12:01:00Z      8"
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
    options = ["--window", "fixed 1 minute", "--combine", "total=sum:cents", "--by", "user", "--final"]
    for chosen, last in (("user=ada", "1234567.89"), ("user=", "0.25"), ("cents=1.5", "1.5")):
        assert main(["replay", str(tmp_path / "users.parquet"), *options, "--where", chosen]) == 0
        [_, row] = capsys.readouterr().out.splitlines()
        assert row.endswith(f"  {last}")


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


def test_rows_that_are_left_out_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["ts,score", "2024-05-01T12:00:10Z,3", "five", "2024-05-01T12:03:00Z,4", "x,y,z"]
    path = tmp_path / "events.csv"
    path.write_text("\n".join([*lines, "2024-05-01T12:00:40Z,5"]))
    late = [str(path), "--window", "1 minute", "--combine", "total=sum:score", "--json"]
    assert main(["replay", *late]) == 0
    told = capsys.readouterr()
    assert [json.loads(line)["total"] for line in told.out.splitlines()] == [3, 4]
    assert told.err.splitlines() == [
        f"uncombine: 2 rows cannot be read and are left out, the first in line 3 of {path}: 'five'",
        "uncombine: 1 more row left out (1 late)",
        "uncombine: a row is late if its window ended before the latest time so far less --lag '0 seconds' and "
        "--lateness '0 seconds': make one as long as the disorder of the file, which is 2 minutes 20 seconds, or give "
        "--in-order",
    ]
    assert main(["replay", *late, "--in-order"]) == 0
    told = capsys.readouterr()
    assert [json.loads(line)["total"] for line in told.out.splitlines()] == [8, 4]
    assert told.err.count("left out") == 1  # of the rows that cannot be read
    assert main(["replay", *late, "--in-order", "--processing-time", "ts"]) == 2
    assert "--in-order and --processing-time both say" in capsys.readouterr().err
    assert main(["replay", *late, "--on-bad-row", "error"]) == 2
    assert "line 3" in capsys.readouterr().err


def test_times_of_another_form_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "events.csv"
    path.write_text("day,amount\n31.01.2024,3\n01.02.2024,4\n31.02.2024,5\n")
    options = ["--time", "day", "--time-format", "%d.%m.%Y", "--window", "1 month", "--combine", "total=sum:amount"]
    assert main(["replay", str(path), *options, "--final", "--json"]) == 0
    told = capsys.readouterr()
    starts = [(row["window_start"], row["total"]) for row in map(json.loads, told.out.splitlines())]
    assert starts == [("2024-01-01T00:00:00Z", 3), ("2024-02-01T00:00:00Z", 4)]
    assert told.err.startswith("uncombine: 1 row cannot be read and is left out, the first in line 4 of ")
    assert main(["replay", str(path), *options, "--on-bad-row", "error"]) == 2
    assert "line 4: '31.02.2024' is no timestamp" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("zone", "condition", "amounts"),
    [
        ([], "day>=2024-02-01", [4, 6]),
        ([], "day>=2024-02-01T01:00+01:00", [4, 6]),
        ([], "day=2024-02-01", [4]),
        ([], "day!=2024-02-01", [3, 6]),
        (["--time-zone", "Europe/Paris"], "day<2024-02-01", [3]),
        (["--time-zone", "Europe/Paris"], "day<2024-02-01T00:00Z", [3, 4]),
    ],
)
def test_conditions_compare_times_and_not_their_texts(
    zone: list[str], condition: str, amounts: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [("31.01.2024", 3), ("01.02.2024", 4), ("31.02.2024", 5), ("02.03.2024", 6)]
    days = {"%d.%m.%Y": "{2}.{1}.{0}", "%Y %m %d": "{0} {1} {2}", "": "{0}-{1}-{2}"}
    for form, ending in product(days, ("json", "csv", "csv, typed")):
        path, typed = tmp_path / f"{len(form)}.{ending[:4].strip(',')}", form == "" or ending != "csv"
        lines = [{"day": days[form].format(*day.split(".")[::-1]), "amount": amount} for day, amount in rows]
        if ending == "json":
            path.write_text("\n".join(map(json.dumps, lines)))
        else:
            path.write_text("\n".join(["day,amount", *(f"{one['day']},{one['amount']}" for one in lines)]))
        options = ["--time", "day", *(["--time-format", form] if form else []), *zone]
        options += ["--type", "day=string"] if typed else []
        window = ["--window", "global", "--final", "--json", "--combine", "all=collect_list:amount"]
        assert main(["replay", str(path), *options, *window, "--where", condition]) == 0
        told = capsys.readouterr()
        assert json.loads(told.out)["all"] == amounts, (form, ending)
        assert ("1 bad" if typed else "1 row cannot be read") in told.err


def test_what_is_left_is_written_into_a_table(events: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", events, *REPLAY, "--table", f"parquet:{tmp_path}/totals"]) == 0
    assert capsys.readouterr().err == f"wrote the Parquet folder {tmp_path}/totals\n"
    assert sorted(pq.read_table(tmp_path / "totals")["total"].to_pylist()) == [1, 4, 8]
    assert main(["replay", events, *REPLAY, "--table", f"parquet:{tmp_path}/totals"]) == 2
    assert "is there already, and a run makes a new one: give --overwrite, or name another" in capsys.readouterr().err
    for place in ("parquet:{}/totals", "duckdb:{}/shop.db#totals", "duckdb:{}/shop.db#totals"):
        table = place.format(tmp_path)
        assert main(["replay", events, *REPLAY, "--where", "score!=4", "--table", table, "--overwrite"]) == 0
    assert sorted(pq.read_table(tmp_path / "totals")["total"].to_pylist()) == [1, 8]
    with duckdb.connect(str(tmp_path / "shop.db"), read_only=True) as db:
        assert db.sql("SELECT total FROM totals ORDER BY total").fetchall() == [(1,), (8,)]


def test_an_interrupt_shows_the_panes_so_far(
    events: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The third entry is interrupted, after that of the first pane."""
    turn = LocalRun._turn

    def interrupted(self: LocalRun, place: int, *others: object) -> None:
        if place == 2:
            raise KeyboardInterrupt
        turn(self, place, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(LocalRun, "_turn", interrupted)
    assert main(["replay", events, *REPLAY, "--json"]) == 130
    told = capsys.readouterr()
    assert [json.loads(row)["total"] for row in told.out.splitlines()] == [3]
    assert told.err == "uncombine: the run was interrupted in entry 2 of 5\n"


def test_the_panes_are_those_of_the_flow(events: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--window", "sessions 2 minutes", "--trigger", "early every 1 row", "--combine", "total=sum:score"]
    assert main(["replay", events, *options, "--lag", "1 minute", "--lateness", "1 hour", "--json"]) == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    flow = uc.flow(EVENTS.schema.set(0, pa.field("ts", pa.timestamp("us", "UTC"))), watermark="1 minute")
    windows = flow.window("sessions 2 minutes", "early every 1 row", "retracting", allowed_lateness="1 hour")
    rows = [uc.Elements([row]) for row in EVENTS.to_pylist()]
    panes = windows.combine(total=uc.Sum("score")).run([*rows, uc.Watermark(None)])
    assert [(row["total"], row["diff"]) for row in shown] == [(row["total"], row["diff"]) for row in panes]


def test_a_secret_in_an_address_is_refused_and_not_shown(
    events: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for option, path in (("--output", "s3://key:SEKRET@bucket/x.csv"), ("--plot", "s3://key:SEKRET@bucket/x.html")):
        assert main(["replay", events, *REPLAY, option, path]) == 2
        assert "SEKRET" not in "".join(capsys.readouterr())


def test_rows_that_were_left_out_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times = ["2024-05-01T12:00:10Z", "2024-05-01T12:09:00Z", "2024-05-01T12:00:20Z"]
    lines = [f"{ts},{x}" for ts, x in zip(times, (1, 2, 3), strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["ts,x", *lines, "2024-05-01T12:00:30Z,four", ""]))
    out = tmp_path / "left.json"
    options = ["--type", "x=int64", "--window", "1 minute", "--combine", "total=sum:x", "--left-out", str(out)]
    assert main(["replay", str(tmp_path / "a.csv"), *options]) == 0
    told = capsys.readouterr().err
    assert f"wrote the rows that were left out into {out}" in told
    assert "a row is late if its window ended before the latest time so far less --lag '0 seconds'" in told
    rows = {row["why"]: row for row in map(json.loads, out.read_text().splitlines())}
    assert (rows["late"]["row"]["x"], rows["unreadable"]["line"], rows["unreadable"]["text"]) == (
        3,
        5,
        "2024-05-01T12:00:30Z,four",
    )
    assert main(["replay", str(tmp_path / "a.csv"), *options]) == 2
    assert "is there already: give --overwrite" in capsys.readouterr().err
    assert main(["replay", str(tmp_path / "a.csv"), *options, "--overwrite"]) == 0
    assert main(["replay", str(tmp_path / "a.csv"), *options[:-2], "--overwrite"]) == 2
    assert "--overwrite is for files that are written: give --output or --left-out FILE" in capsys.readouterr().err


def test_a_combiner_takes_the_times_and_not_their_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Texts such as 31.05.2024 are in another order than their times."""
    out = tmp_path / "left.json"
    path = tmp_path / "events.csv"
    path.write_text("day,page\n31.05.2024,first\n01.06.2024,second\n31.06.2024,none\n")
    options = ["--time", "day", "--time-format", "%d.%m.%Y", "--window", "1 year", "--final", "--json"]
    combined = ["--combine", "one=first:page:day", "--combine", "last=max:day", "--left-out", str(out)]
    assert main(["replay", str(path), *options, *combined]) == 0
    [row] = map(json.loads, capsys.readouterr().out.splitlines())
    assert (row["one"], row["last"]) == ("first", "2024-06-01T00:00:00Z")
    [bad] = map(json.loads, out.read_text().splitlines())
    assert (bad["why"], bad["line"], bad["text"]) == ("unreadable", 4, "31.06.2024,none")


def test_rows_that_arrive_together_are_told(events: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", events, *REPLAY, "--steps", "2"]) == 0
    assert (
        "rows arrived 2 at a time, which can make other rows late: --steps 4 replays each alone"
        in capsys.readouterr().err
    )
    assert main(["replay", events, *REPLAY]) == 0
    assert "at a time" not in capsys.readouterr().err
    ordered = ["--in-order", "--final", "--steps", "2", "--json"]
    assert main(["replay", events, *REPLAY, *ordered, "--trigger", "each row"]) == 0
    steps = capsys.readouterr()
    assert "at a time" in steps.err
    assert main(["replay", events, *REPLAY, *ordered]) == 0
    assert capsys.readouterr() == (steps.out, steps.err.partition("\n")[2])


def test_files_of_a_folder_come_by_their_names_or_by_their_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their times are the median of each, which a late row in the last of them does not move."""
    starts = {"a": 120, "b": 0, "c": 60}
    for name, start in starts.items():
        minutes = [*range(start, start + 30), *([1] if name == "a" else [])]
        lines = [f"2024-05-01T{minute // 60:02}:{minute % 60:02}:00Z,1" for minute in minutes]
        (tmp_path / f"{name}.csv").write_text("\n".join(["ts,score", *lines]))
    command = ["replay", str(tmp_path), "--window", "1 minute", "--combine", "total=sum:score", "--final", "--json"]
    for options, late in (([], 61), (["--file-order", "time"], 1), (["--in-order"], 0)):
        assert main([*command, *options]) == 0
        told = capsys.readouterr()
        assert sum(json.loads(line)["total"] for line in told.out.splitlines()) == 91 - late
        assert ("--file-order time reads them by their times" in told.err) == (late == 61)
        assert ("which is 2 hours 29 minutes" in told.err) == (late == 61)
        assert ("which is 2 hours 28 minutes" in told.err) == (late == 1)


def test_a_key_that_no_picture_has_is_told_with_those_that_there_are(
    events: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = ["--plot", str(tmp_path / "panes.svg"), "--plot-where", "user=eve"]
    assert main(["replay", events, *REPLAY, *picture]) == 2
    told = capsys.readouterr().err
    assert "no pane and no row has user='eve', so there is nothing to draw: user has 'ada'" in told
    assert main(["replay", events, *REPLAY, *picture, "--by", "user"]) == 2
    assert "--by names 'user' twice: give it once" in capsys.readouterr().err


def test_a_picture_of_one_key_and_some_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times = [f"2024-05-01T12:{minute:02}:00Z" for minute in range(20)]
    users = ["ada" if minute % 2 else "grace" for minute in range(20)]
    pyarrow.csv.write_csv(pa.table({"ts": times, "user": users, "score": range(100, 120)}), tmp_path / "two.csv")
    part = ["--plot-where", "user=ada", "--plot-between", "2024-05-01T12:00", "2024-05-01T12:06"]
    printed, pages = [], []
    for scope in ([], part):
        command = ["replay", str(tmp_path / "two.csv"), *REPLAY, "--json", "--plot", str(tmp_path / "panes.html")]
        assert main([*command, *scope]) == 0
        printed.append(capsys.readouterr().out)
        page = (tmp_path / "panes.html").read_text()
        pages.append({number for number in range(100, 120) if f'"{number}"' in page})
    assert printed[0] == printed[1]
    assert pages == [set(range(100, 120)), {101, 103, 105}]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--plot-where", "user=ada"], "give its file too, by --plot"),
        (["--plot", "a.png", "--plot-where", "team=ada"], "--plot-where"),
        (["--plot", "a.png", "--plot-where", "ada"], "takes COLUMN=VALUE such as user=ada"),
        (["--plot", "a.png", "--plot-between", "noon", "evening"], "takes two times, such as 2024-05-01T12:00:00Z"),
        (["--plot", "a.png", "--plot-between", "2024-05-01", "2024-04-01"], "turn the two round"),
    ],
)
def test_a_part_that_cannot_be_drawn_is_said_first(
    events: str, given: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", events, *REPLAY, *given]) != 0
    assert words in capsys.readouterr().err
