"""Times in texts of CSV and JSON: those of the calendar, by the clocks of their column, as in Python's datetime."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch, UnreadableFile

ZONES = ["UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia"]
FORMATS = ["%d.%m.%Y %H:%M:%S", "%Y/%m/%d %H:%M", "%d %b %Y %H:%M:%S"]


def instant(text: str, forms: list[str], zone: str) -> datetime | None:
    """The first instant at which the clocks of a zone show a time; None for a text that is none that they show."""
    for form in forms:
        try:
            local = datetime.strptime(text, form).replace(tzinfo=ZoneInfo(zone))
        except ValueError:
            continue
        shown = local.astimezone(UTC)
        return shown if shown.astimezone(ZoneInfo(zone)).replace(tzinfo=None) == local.replace(tzinfo=None) else None
    return None


def drawn(r: random.Random, form: str) -> str:
    """A time with a day from 0 to 32 of a month from 0 to 13, often in an hour in which clocks change."""
    year, month = r.choice([1900, 1969, 2011, 2023, 2024]), r.choice([3, 3, 10, 10, 12, *range(14)])
    day, hour, minute, second = r.choice([31, *range(33)]), r.choice([0, 1, 2, 3, 24, *range(25)]), r.randrange(61), 9
    names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    parts = {"Y": f"{year}", "m": f"{month:02}", "d": f"{day:02}", "H": f"{hour:02}", "M": f"{minute:02}"}
    parts |= {"S": f"{second:02}", "b": names[month % 12]}
    for name, text in parts.items():
        form = form.replace(f"%{name}", text)
    return form


def read(path: Path, zone: str, **options: Any) -> tuple[list[datetime], list[int]]:
    """The times of a file, and the lines of the rows that cannot be read."""
    kinds = pa.schema({"at": pa.timestamp("us", zone), "n": pa.int64()})
    flow = uc.flow(uc.Files(path, schema=kinds, on_bad_row="leave_out", **options), time="at")
    run = flow.with_columns(when=uc.col("at")).combine(by="n", when=uc.CollectList("when")).run()
    times = {row["n"]: row["when"][0] for row in run.to_pylist()}
    return [times[n] for n in sorted(times)], run.left_out["line"].to_pylist()


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("seed", seeds(4))
def test_parsers_read_the_days_of_the_calendar(seed: int, zone: str, tmp_path: Path) -> None:
    r = random.Random(seed)
    forms = r.sample(FORMATS, r.choice([1, 2]))
    texts = [drawn(r, r.choice(FORMATS)) for _ in range(50)]
    (tmp_path / "a.csv").write_text("at;n\n" + "".join(f"{text};{n}\n" for n, text in enumerate(texts)))
    expected = [instant(text, forms, zone) for text in texts]
    times, bad = read(tmp_path, zone, delimiter=";", timestamp_parsers=forms)
    assert times == [time for time in expected if time is not None]
    assert bad == [line for line, time in enumerate(expected, 2) if time is None]
    assert 2 < len(bad) < 50


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("seed", seeds(4))
def test_iso_texts_without_a_zone_are_by_the_clocks_of_their_column(seed: int, zone: str, tmp_path: Path) -> None:
    r = random.Random(seed)
    texts = [drawn(r, "%Y-%m-%dT%H:%M:%S") for _ in range(50)]
    (tmp_path / "a.json").write_text("".join(json.dumps({"at": text, "n": n}) + "\n" for n, text in enumerate(texts)))
    expected = [instant(text, ["%Y-%m-%dT%H:%M:%S"], zone) for text in texts]
    times, bad = read(tmp_path, zone)
    assert times == [time for time in expected if time is not None]
    assert bad == [line for line, time in enumerate(expected, 1) if time is None]


def test_a_text_with_a_zone_has_its_own(tmp_path: Path) -> None:
    texts = ["2024-06-30T12:00:00Z", "2024-06-30T12:00:00+05:00", "2024-06-30T12:00:00", "30.06.2024 12:00 +0500"]
    (tmp_path / "a.csv").write_text("at,n\n" + "".join(f"{text},{n}\n" for n, text in enumerate(texts)))
    times, bad = read(tmp_path, "Europe/Berlin")
    assert [time.hour for time in times] == [12, 7, 10]
    assert bad == [5]
    both: Any = [pacsv.ISO8601, "%d.%m.%Y %H:%M %z"]
    times, bad = read(tmp_path, "Europe/Berlin", timestamp_parsers=both)
    assert ([time.hour for time in times], bad) == ([12, 7, 10, 7], [])


def test_a_day_that_is_none_is_an_error_of_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("at\n30.06.2024\n31.06.2024\n")
    files = uc.Files(tmp_path, schema=pa.schema({"at": pa.timestamp("us")}), timestamp_parsers=["%d.%m.%Y"])
    with pytest.raises(UnreadableFile, match=r"line 3: '31\.06\.2024' is no timestamp"):
        uc.flow(files, time="at").window("1 day").combine(n=uc.Count()).run()
    with pytest.raises(InvalidArgument, match="has '%e', and the directives are"):
        uc.flow(uc.Files(tmp_path, timestamp_parsers=["%e.%m.%Y"]))


def test_times_of_a_zone_within_a_struct_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"at": {"t": "2024-06-30T12:00:00"}}\n')
    kind = pa.struct({"t": pa.timestamp("us", "Europe/Berlin")})
    with pytest.raises(TypeMismatch, match="'at' of schema= has times of Europe/Berlin within it"):
        uc.flow(uc.Files(tmp_path, schema=pa.schema({"at": kind})))


def test_messages_have_the_clocks_of_their_schema() -> None:
    schema = pa.schema({"at": pa.timestamp("us", "Europe/Berlin")})
    for format, form in ((uc.messages.Csv(schema), "{}"), (uc.messages.Json(schema), '{{"at": "{}"}}')):
        values = pa.array([form.format(f"2024-{day}").encode() for day in ("06-30T12:00:00", "03-31T02:30:00")])
        decoded = format.decode(values)
        assert [at.astimezone(UTC).hour for at in decoded.table["at"].to_pylist()] == [10]
        assert decoded.good.to_pylist() == [True, False]
