"""The page of an animation: its data are those of the run, and it needs nothing around it."""

from __future__ import annotations

import html
import json
import random
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, UnknownColumn

AT = datetime(2024, 5, 1, 9, tzinfo=UTC)
END = uc.Watermark(None)
ROWS = pa.schema({"ts": pa.timestamp("us", "UTC"), "user": pa.string(), "x": pa.int64()})


def arrivals(count: int, users: int, seed: int = 1) -> list[Any]:
    """Entries of one to three rows, some of them late, and the end."""
    r, now, script = random.Random(seed), AT, list[Any]()
    for _ in range(count):
        now += timedelta(milliseconds=r.choice([1, 1500, 10_000, 40_000]))
        rows = [
            {"ts": now - timedelta(seconds=r.choice([0, 5, 90])), "user": f"u{r.randrange(users)}", "x": r.randrange(9)}
            for _ in range(r.choice([1, 1, 3]))
        ]
        script.append(uc.Elements(rows, at=now))
    return [*script, uc.Watermark(None, at=now + timedelta(minutes=1))]


def run(script: list[Any], by: list[str], window: Any = "1 minute") -> uc.Result:
    flow = uc.flow(ROWS, watermark="10 seconds")
    trigger = uc.AfterWatermark(early=uc.AfterCount(2), late=uc.AfterCount(1))
    return (
        flow.window(window, trigger, mode="retracting", allowed_lateness="1 minute")
        .combine(by=by, total=uc.Sum("x"))
        .run(script)
    )


def data_in(page: str) -> dict[str, Any]:
    """The data that the script of a page draws."""
    found: dict[str, Any] = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    return found


@pytest.mark.parametrize("seed", seeds(8))
def test_the_page_has_the_panes_and_the_rows_of_the_run(seed: int) -> None:
    script = arrivals(30, users=3, seed=seed)
    result = run(script, ["user"], random.Random(seed).choice(["1 minute", "sessions 20 seconds", "global"]))
    data = data_in(uc.plot.animation(result, script).html)

    def time(millis: float | None) -> datetime | None:
        start = datetime.fromtimestamp(data["origin"] / 1000, UTC)
        return None if millis is None else start + timedelta(milliseconds=millis)

    starts, ends = (map(time, data["windows"][end]) for end in ("start", "end"))
    windows = list(zip(starts, ends, data["windows"]["key"], strict=True))
    shown = [
        (data["keys"][windows[window][2]], windows[window][:2], value, diff, timing, step)
        for window, value, diff, timing, step in zip(
            *(data["panes"][name] for name in ("window", "value", "diff", "timing", "step")), strict=True
        )
    ]
    timings = ["EARLY", "ON_TIME", "LATE"]
    assert shown == [
        (
            f"user={row['user']}",
            tuple((row["window"] or {"start": None, "end": None}).values()),
            str(row["total"]),
            row["diff"],
            timings.index(row["pane"]["timing"]),
            row["step"],
        )
        for row in result.to_pylist()
    ]
    emitted = [row["pane"]["processing_time"] for row in result.to_pylist() if row["diff"] > 0]
    at = zip(data["panes"]["at"], data["panes"]["diff"], strict=True)
    assert [time(millis) for millis, diff in at if diff > 0] == emitted
    rows = [(row["ts"], place) for place, entry in enumerate(script[:-1]) for row in entry.rows]
    assert list(zip(map(time, data["rows"]["event"]), data["rows"]["step"], strict=True)) == rows
    assert [data["rows"]["state"].count(2), len(data["steps"]["words"])] == [result.dropped, len(script)]


@pytest.mark.weekly
def test_the_page_stands_alone_and_is_small() -> None:
    script = arrivals(200, users=3)
    page = uc.plot.animation(run(script, []), script).html
    assert re.findall(r"https?:|data:image|src=|@\w+@", page) == []
    assert len(page) < 150_000


def test_values_and_titles_are_no_markup() -> None:
    script = [uc.Elements([{"ts": AT, "x": "</script><b>"}], at=AT), uc.Watermark(None)]
    result = uc.flow(script).window("1 minute").combine(last=uc.Max("x")).run()
    page = uc.plot.animation(result, script, title="<i>@data@").html
    assert data_in(page)["panes"]["value"] == ["</script><b>"]
    assert page.count("</script>") == 2
    assert "<title>&lt;i&gt;@data@</title>" in page


def test_a_notebook_shows_each_page_in_a_frame_of_its_own() -> None:
    script = arrivals(5, users=1)
    shown = uc.plot.animation(run(script, []), script)
    [page] = re.findall(r'^<iframe srcdoc="([^"]*)" sandbox="allow-scripts" [^>]*></iframe>$', shown._repr_html_())
    assert html.unescape(page) == shown.html


def test_keys_have_panels_until_they_are_too_many() -> None:
    for users, first in ((3, ("each", "each key")), (13, ("-1", "all 13 keys"))):
        script: list[Any] = [uc.Elements([{"ts": AT, "user": f"u{n}", "x": n} for n in range(users)]), END]
        page = uc.plot.animation(run(script, ["user"], "global"), script).html
        options = re.findall(r'<option value="([^"]*)">([^<]*)</option>', page)
        assert options[0] == first
        assert options[-users:] == [(str(n), name) for n, name in enumerate(data_in(page)["keys"])]
        assert "<label>Keys" in page
    assert data_in(uc.plot.animation(run(script, ["user"]), script, by=[]).html)["keys"] == []


def test_long_keys_are_whole() -> None:
    """Pictures cut a key after few signs; a page wraps it, so that keys with one beginning stay apart."""
    users = ["warehouse-north-" * 3 + end for end in ("shelf-number", "shelf-numbes")]
    script: list[Any] = [uc.Elements([{"ts": AT, "user": user, "x": 1} for user in users]), END]
    page = uc.plot.animation(run(script, ["user"], "global"), script).html
    names = [f"user={user}" for user in users]
    assert [len(user) for user in users] == [60, 60]
    assert data_in(page)["keys"] == names
    assert re.findall(r'<option value="\d">([^<]*)</option>', page) == names
    assert all(name in data_in(page)["steps"]["words"][-1] for name in names)
    assert re.search(r"figcaption {[^}]*overflow-wrap: anywhere", page)
    huge: list[Any] = [uc.Elements([{"ts": AT, "user": "u" * 10_000, "x": 1}]), END]
    assert data_in(uc.plot.animation(run(huge, ["user"], "global"), huge).html)["keys"] == [f"user={'u' * 199}…"]


def test_each_step_has_a_sentence() -> None:
    script = [
        uc.Elements([{"ts": AT, "user": "a", "x": 5}], at=AT),
        uc.Elements([{"ts": AT, "user": "a", "x": 7}, {"ts": AT, "user": "a", "x": 1}], at=AT),
        uc.Elements([{"ts": AT, "user": "a", "x": 2}], at=AT),
        uc.Clock(AT + timedelta(seconds=5)),
        uc.Watermark(None),
    ]
    words = data_in(uc.plot.animation(run(script, []), script).html)["steps"]["words"]
    window = "2024-05-01 09:00:00 - 09:01:00"
    assert words == [
        "1 row arrives. No pane.",
        f"2 rows arrive. Panes: early 13 of {window}.",
        "1 row arrives. No pane.",
        "It is 2024-05-01 09:00:05. No pane.",
        f"The input ends. Retracted: 13. Panes: on time 15 of {window}.",
    ]


def test_what_cannot_be_played_is_an_error() -> None:
    script = arrivals(5, users=2)
    result = run(script, ["user"])
    with pytest.raises(InvalidArgument, match="needs the column 'step' of a run in this process"):
        uc.plot.animation(result.panes.drop_columns(["step"]), script)
    with pytest.raises(UnknownColumn, match="by= needs column 'users'"):
        uc.plot.animation(result, script, by="users")
    with pytest.raises(InvalidArgument, match=r"has panes of entry \d, and script= has 2 entries"):
        uc.plot.animation(result, script[:2])
