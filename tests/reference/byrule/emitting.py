"""From a window that fires to output rows (rules 29 to 36, 38)."""

from __future__ import annotations

from typing import Any

from .leaves import Row
from .options import Datum, Live, Options
from .times import MAX_TIME, MIN_TIME, plus


def results(options: Options, contents: list[Datum]) -> dict[str, Any]:
    rows = [(datum.row, datum.weight) for datum in contents]
    return {name: aggregate(rows) for name, aggregate in options.aggregates.items()}


def has_value(options: Options, live: Live) -> bool:
    """rule 38: at row count zero a window has no value; what a discarding pane shows is a difference (D15)."""
    if options.diff is None or options.mode != "retracting":
        return True
    return sum(datum.weight for datum in live.contents) != 0


def expiry(options: Options, live: Live) -> int:
    return plus(live.end, options.allowed_lateness)  # rule 8


def timing(live: Live, watermark: int) -> str:
    """rule 29."""
    if watermark < live.end:
        return "EARLY"
    return "ON_TIME" if live.not_early == 0 and live.born < live.end else "LATE"


def result_time(options: Options, live: Live, watermark: int) -> int:
    """rule 36."""
    times = [datum.t for datum in live.contents if datum.in_time]
    match options.timestamp:
        case "start_of_window":
            return live.start
        case "earliest":
            return min(times, default=live.end - 1)
        case "latest":
            return max(times, default=live.end - 1)
        case "watermark":
            return watermark
        case _:
            return live.end - 1


def fire(
    options: Options,
    live: Live,
    phase: str,
    watermark: int,
    clock: int,
    asked: list[str],
    expires: bool = True,
) -> list[Row]:
    """The output of one firing; phase "expiry" is the closing of the window."""
    when = timing(live, watermark)
    closing = phase == "expiry"
    if closing:
        wanted = live.news or options.closing == "always"  # rule 31
    else:
        wanted = live.news or (when == "ON_TIME" and options.on_time == "always")  # rule 30
    if not wanted:
        return []
    taken_back = [taken(row) for row in live.debts]
    if not has_value(options, live):
        live.news, live.debts, live.last = False, [], None
        return taken_back  # rule 38
    values, clears = results(options, live.contents), _clears(options.mode, asked)
    time = result_time(options, live, watermark)
    live.news = False
    if options.only_updated and _shown_already(options, live, values):  # rule 34
        live.contents, live.last = ([], None) if clears else (live.contents, values)
        return []
    live.contents, live.last = ([], None) if clears else (live.contents, values)  # D22
    gone = expires and phase == "watermark" and watermark >= expiry(options, live)
    pane = {
        "index": live.index,
        "nonspeculative_index": -1 if when == "EARLY" else live.not_early,
        "timing": when,
        "is_first": live.index == 0,
        # rule 31: also on the pane after which there can be none.
        "is_last": closing or phase == "late" or ((live.trigger.finished or gone) and options.closing != "always"),
        "watermark": watermark,
        "processing_time": clock,
        "trigger": phase,
    }
    live.index += 1  # rule 32
    live.not_early += when != "EARLY"
    keys = dict(zip(options.by, live.key, strict=True))
    row = {**keys, "window": shown(live), **values, "event_time": time, "diff": 1, "pane": pane}
    if options.mode != "retracting":
        return [row]
    live.debts = [row]  # rule 33
    return [*taken_back, row]


def _shown_already(options: Options, live: Live, values: dict[str, Any]) -> bool:
    """Whether the last pane of the same window had the same values, with nothing else to take back."""
    if not live.debts:
        return live.last == values
    only = live.debts[0]
    same = {name: only[name] for name in options.aggregates} == values
    return len(live.debts) == 1 and only["window"] == shown(live) and same


def taken(row: Row) -> Row:
    """rule 33: taken back with its own window, values, result timestamp and pane identity."""
    return {**row, "diff": -1}


def shown(live: Live) -> tuple[int, int] | None:
    """The window as output rows have it; all of time is null."""
    return None if live.window == (MIN_TIME, MAX_TIME) else live.window


def _clears(mode: str, asked: list[str]) -> bool:
    """rule 35; where several user triggers ask, to clear wins (D12)."""
    if mode in ("discarding_by_default", "accumulating_by_default"):
        if "clear" in asked:
            return True
        if "accumulate" in asked:
            return False
    return mode.startswith("discarding")


def hold(options: Options, live: Live) -> int:
    """rule 37: the least result timestamp that an on-time pane of this window, still to come, may carry."""
    to_come = live.not_early == 0 and live.born < live.end
    closes = options.closing == "always" or (options.closing == "non_empty" and live.news)  # rule 31
    if live.trigger.finished and not closes:
        to_come = False
    if not to_come or options.timestamp == "watermark":
        return MAX_TIME
    return result_time(options, live, MAX_TIME)
