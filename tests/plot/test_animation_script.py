"""The script of an animation, run by Node.js: what it draws at each step, against the panes of the run."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import uncombine as uc
from uncombine.plot.animation_page import data_of
from uncombine.plot.dense_panes import MOST, Cells
from uncombine.plot.picture import History

NODE = shutil.which("node")
SCRIPT = Path(__file__).resolve().parents[2] / "plot" / "animation.js"

pytestmark = [pytest.mark.full, pytest.mark.skipif(NODE is None, reason="Node.js is not installed")]

AT = datetime(2024, 5, 1, 9, tzinfo=UTC)
TIMINGS = {"early": "EARLY", "on-time": "ON_TIME", "late": "LATE"}

Box = tuple[float, float, float, float]


def node(script: str, value: Any) -> Any:
    """The value of an expression over `script` (the functions of the page) and `value`."""
    program = f"""
      const script = require({json.dumps(str(SCRIPT))});
      const value = JSON.parse(require("fs").readFileSync(0, "utf8"));
      process.stdout.write(JSON.stringify({script}));
    """
    assert NODE is not None
    done = subprocess.run([NODE, "-e", program], input=json.dumps(value), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def late_rows(count: int, seed: int = 0, lag: int = 20, window: str = "1 minute") -> tuple[uc.Result, list[Any]]:
    """Rows that come one by one, some of them late."""
    r, now, script = random.Random(seed), AT, list[Any]()
    for i in range(count):
        now += timedelta(seconds=r.choice([1, 10, 40]))
        event = now - timedelta(seconds=r.choice([0, 5, 90]))
        script.append(uc.Elements([{"ts": event, "k": i % 2, "x": 1}], at=now))
        script.append(uc.Watermark(now - timedelta(seconds=lag)))
    flow = uc.flow(script).window(window, "early every 1 row", mode="retracting", allowed_lateness="2 minutes")
    return flow.combine(by="k" if window != "1 minute" else [], n=uc.Sum("x")).run(), script


DRAWN = "value.steps.map(step => script.draw(script.model(value.data), () => true, step, VIEW, 894, 476))"
"""The part with the panes has 800 by 416 pixels."""
WHOLE = "script.view(script.model(value.data), step, 1)"


def drawn(history: History, steps: list[int], view: str = WHOLE) -> list[ET.Element]:
    pictures = node(DRAWN.replace("VIEW", view), {"data": data_of(history, []), "steps": steps})
    return [ET.fromstring(picture) for picture in pictures]


def classes(picture: ET.Element) -> Counter[str]:
    return Counter(name for one in picture.iter() for name in one.get("class", "").split())


def test_each_step_has_the_panes_and_rows_until_then() -> None:
    result, script = late_rows(15)
    history = History.of(result, script)
    rows = result.to_pylist()
    assert len(rows) <= MOST
    for step, picture in enumerate(drawn(history, list(range(len(script))))):
        names, until = classes(picture), [row for row in rows if row["step"] <= step]
        timings = Counter(row["pane"]["timing"] for row in until if row["diff"] > 0)
        assert {name: names[name] for name in TIMINGS} == {name: timings[timing] for name, timing in TIMINGS.items()}
        assert names["retracted"] == sum(row["diff"] < 0 for row in until)
        assert names["new"] == sum(row["step"] == step for row in until)
        said = picture.get("aria-label") or ""
        assert said.startswith(f"After step {step + 1}: ")
        late = sum(point.late for point in history.points if point.step <= step)
        assert said.endswith(f"rows: {len([p for p in history.points if p.step <= step])}, of them late: {late}.")
    titles = [title.text for title in picture.iter("title")]
    first = rows[0]
    start, end, at = (f"{t:%Y-%m-%d %H:%M:%S}" for t in (*first["window"].values(), first["pane"]["processing_time"]))
    assert titles[0] == f"early pane 1, {start} to {end}, at {at}"


def test_labels_do_not_cover_each_other() -> None:
    result, script = late_rows(15, seed=3)
    [picture] = drawn(History.of(result, script), [len(script) - 1])
    texts = [one for one in picture.iter("text") if one.get("class") != "tick"]
    boxes = []
    for one in texts:
        size, x, y = (float(one.get(name) or 0) for name in ("font-size", "x", "y"))
        wide = 0.6 * size * len(one.text or "")
        left = x - {"start": 0, "middle": 0.5, "end": 1}[one.get("text-anchor") or ""] * wide
        boxes.append((left, y - 0.7 * size, left + wide, y))
    assert len(boxes) > 15
    assert [(a, b) for a, b in combinations(boxes, 2) if covers(a, b)] == []


def covers(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def cells_in(picture: ET.Element, name: str) -> set[tuple[int, int]]:
    """The cells, counted from the top left, of the paths of a class."""
    out: set[tuple[int, int]] = set()
    for path in picture.iter("path"):
        if path.get("class") == name:
            for x, y, wide in re.findall(r"M(\d+) (\d+)h(\d+)v4", path.get("d") or ""):
                out |= {(int(y) // 4, int(x) // 4 + i) for i in range(int(wide) // 4)}
    return out


@pytest.mark.parametrize("window", ["1 minute", "sessions 1 minute"])
def test_many_panes_are_the_cells_of_the_still_picture(window: str) -> None:
    history = History.of(*late_rows(100, window=window))
    [picture] = drawn(history, [199])
    columns, rows = 800 // 4, 416 // 4
    cells = Cells.of(history.whole(), columns, rows)
    for number, name in enumerate(TIMINGS, 1):
        for kind, grid in (("area", cells.shown), ("mark", cells.emitted)):
            expected = {(rows - 1 - y, x) for y, x in zip(*(grid == number).nonzero(), strict=True)}
            assert expected
            assert cells_in(picture, f"{kind} {name}") == expected
    assert sum(1 for _ in picture.iter()) < 120
    assert classes(picture)["pane"] == 0


def test_values_of_sessions_that_have_grown_are_left_out() -> None:
    script: list[Any] = [uc.Elements([{"ts": AT + timedelta(minutes=i), "x": 1}]) for i in range(MOST + 5)]
    grown = uc.flow(script).window("sessions 1 hour", "early every 1 row", mode="retracting")
    [picture] = drawn(History.of(grown.combine(n=uc.Sum("x")).run(), script), [MOST + 4])
    assert [text.text for text in picture.iter("text") if text.get("class") == "value"] == [str(MOST + 5)]


def test_less_time_has_room_for_values() -> None:
    [picture] = drawn(History.of(*late_rows(100)), [150], "script.view(script.model(value.data), step, 16)")
    assert classes(picture)["value"] >= 2
    assert 0 < classes(picture)["pane"] <= MOST


def test_a_view_is_inside_the_whole_and_has_the_step() -> None:
    history = History.of(*late_rows(30))
    data = data_of(history, [])
    steps = list(range(len(data["steps"]["at"])))
    for zoom in (1, 4, 512):
        views = node(
            f"value.steps.map(step => script.view(script.model(value.data), step, {zoom}))",
            {"data": data, "steps": steps},
        )
        for step, view in zip(steps, views, strict=True):
            for axis, bounds in (("x", data["bounds"]), ("y", data["heights"])):
                low, high = view[axis]
                assert bounds[0] - 1e-6 <= low < high <= bounds[1] + 1e-6
                assert high - low == pytest.approx((bounds[1] - bounds[0]) / zoom)
            assert view["y"][0] <= data["steps"]["at"][step] <= view["y"][1]


@pytest.mark.parametrize(
    ("length", "words", "days"),
    [
        (timedelta(milliseconds=3), r"\d\d\.\d{6}", r"\d\d:\d\d"),
        (timedelta(seconds=2), r"\d\d\.\d{3}", r"\d\d:\d\d"),
        (timedelta(minutes=2), r"\d\d:\d\d:\d\d", ""),
        (timedelta(hours=5), r"\d\d:\d\d", ""),
        (timedelta(hours=40), r"\d\d:\d\d", r"May [123]"),
        (timedelta(days=20), r"May \d+", ""),
        (timedelta(days=300), r"[A-Z][a-z]{2}", r"202[45]"),
        (timedelta(days=9_000), r"Jan", r"20\d\d"),
    ],
)
def test_ticks_are_even_and_have_the_date_where_it_changes(length: timedelta, words: str, days: str) -> None:
    origin = AT.timestamp() * 1000
    ticks = node("script.ticks(value[0], [0, value[1]], 8)", [origin, length / timedelta(milliseconds=1)])
    assert 2 <= len(ticks) <= 9
    assert [tick for tick in ticks if not re.fullmatch(words, tick["words"])] == []
    assert [tick for tick in ticks if tick["day"] and not re.fullmatch(days, tick["day"])] == []
    assert bool(ticks[0]["day"]) == bool(days)
    if length < timedelta(days=100):
        gaps = {round(b["at"] - a["at"], 6) for a, b in pairwise(ticks)}
        assert len(gaps) == 1


def test_steps_have_labels_under_the_slider() -> None:
    history = History.of(*late_rows(40))
    shown = node("script.labelled(script.model(value), 8)", data_of(history, []))
    assert [label["place"] for label in shown] == [0, 10, 20, 30, 40, 50, 60, 70]
    assert [label["words"] for label in shown] == [f"{history.clock[n]:%H:%M:%S}" for n in range(0, 80, 10)]
