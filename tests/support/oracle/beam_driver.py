"""Replays cases through Apache Beam's trigger driver: a case a line on stdin, its panes a line on stdout.

Runs in an environment of its own, which has Beam and not this library.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

logging.disable(logging.WARNING)

from apache_beam.transforms import trigger as bt  # noqa: E402
from apache_beam.transforms import window as bw  # noqa: E402
from apache_beam.transforms.core import Windowing  # noqa: E402
from apache_beam.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Duration, Timestamp  # noqa: E402
from apache_beam.utils.windowed_value import PaneInfoTiming, WindowedValue  # noqa: E402

TIMINGS = {PaneInfoTiming.EARLY: "EARLY", PaneInfoTiming.ON_TIME: "ON_TIME", PaneInfoTiming.LATE: "LATE"}
COMPOSITES = {"first": bt.AfterAny, "all": bt.AfterAll, "each": bt.AfterEach, "repeatedly": bt.Repeatedly}


def window_of(spec: list[Any]) -> Any:
    kind, *lengths = spec
    if kind == "global":
        return bw.GlobalWindows()
    seconds = [length // 1_000_000 for length in lengths]
    return {"fixed": bw.FixedWindows, "sliding": bw.SlidingWindows, "sessions": bw.Sessions}[kind](*seconds)


def trigger_of(spec: list[Any] | None) -> Any:
    if spec is None:
        return None
    kind, *rest = spec
    if kind == "count":
        return bt.AfterCount(rest[0])
    if kind == "watermark":
        return bt.AfterWatermark(early=trigger_of(rest[0]), late=trigger_of(rest[1]))
    return COMPOSITES[kind](*(trigger_of(child) for child in rest))


def pane_of(key: str, value: Any, step: int) -> dict[str, Any]:
    (window,) = value.windows
    everywhere = isinstance(window, bw.GlobalWindow)
    return {
        "step": step,
        "key": key,
        "window": None if everywhere else [window.start.micros, window.end.micros],
        "values": sorted(value.value),
        "timing": TIMINGS[value.pane_info.timing],
        "index": value.pane_info.index,
        "nonspeculative_index": value.pane_info.nonspeculative_index,
        "event_time": None if everywhere else value.timestamp.micros,
    }


def replay(case: dict[str, Any]) -> list[dict[str, Any]]:
    modes = {"accumulating": bt.AccumulationMode.ACCUMULATING, "discarding": bt.AccumulationMode.DISCARDING}
    window = window_of(case["window"])
    windowing = Windowing(
        window, trigger_of(case["trigger"]), modes[case["mode"]], allowed_lateness=Duration(micros=case["lateness"])
    )
    driver = bt.create_trigger_driver(windowing)
    states = {key: bt.InMemoryUnmergedState() for key in ("a", "b")}
    watermark, panes = MIN_TIMESTAMP, []
    for step, (kind, *rest) in enumerate(case["script"]):
        if kind == "row":
            key, micros, value = rest
            time = Timestamp(micros=micros)
            row = WindowedValue(value, time, window.assign(bw.WindowFn.AssignContext(time, value)))
            given = driver.process_elements(states[key], [row], watermark, watermark)
            panes += [pane_of(key, pane, step) for pane in given]
        else:
            watermark = max(watermark, MAX_TIMESTAMP if rest[0] is None else Timestamp(micros=rest[0]))
        for key, state in states.items():
            while due := state.get_and_clear_timers(watermark):
                for place, (name, domain, time, _) in due:
                    given = driver.process_timer(place, name, domain, time, state)
                    panes += [pane_of(key, pane, step) for pane in given]
    return panes


for line in sys.stdin:
    try:
        answer: Any = replay(json.loads(line))
    except Exception as error:
        answer = {"error": repr(error)}
    print(json.dumps(answer), flush=True)
