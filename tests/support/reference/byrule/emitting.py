"""From a window that fires to output rows (rules 29 to 36, 38)."""

from __future__ import annotations

from typing import Any

from . import changelog
from .leaves import Row
from .options import Datum, Live, Options
from .times import MAX_TIME, MIN_TIME, plus
from .windows import assign, merges


def results(options: Options, contents: list[Datum]) -> dict[str, Any]:
    rows = [(datum.row, datum.weight) for datum in contents]
    return {name: aggregate(rows) for name, aggregate in options.aggregates.items()}


def has_value(options: Options, live: Live) -> bool:
    """rule 38: at row count zero a window has no value; what a discarding pane shows is a difference (D15)."""
    if options.diff is None or not options.mode.startswith("retracting"):
        return True
    return sum(datum.weight for datum in live.contents) != 0


def expiry(options: Options, live: Live) -> int:
    return plus(live.end, options.allowed_lateness)  # rule 8


def timing(live: Live, watermark: int) -> str:
    """rule 29."""
    if watermark < live.end:
        return "EARLY"
    return "ON_TIME" if live.not_early == 0 and live.born < live.end else "LATE"


def endless(options: Options, live: Live) -> bool:
    """True if the window has no end; a calendar's last year only ends with time."""
    return live.end == MAX_TIME and type(options.window).__name__ in ("Global", "Inherit", "Custom")


def last(options: Options, live: Live, floor: int) -> int:
    """rule 36: the last instant of a window; without an end, its latest row, not before the output watermark."""
    return max(live.reach, floor) if endless(options, live) else live.end - 1


def result_time(options: Options, live: Live, watermark: int, floor: int, policy: str | None = None) -> int:
    """rule 36."""
    times = [datum.t for datum in live.contents if datum.in_time]
    otherwise = last(options, live, floor)
    match policy or options.timestamp:
        case "start_of_window":
            return otherwise if live.start == MIN_TIME else live.start
        case "earliest":
            return min(times, default=otherwise)
        case "latest":
            return otherwise if endless(options, live) else max(times, default=otherwise)
        case "watermark":
            return watermark if MIN_TIME < watermark < MAX_TIME else otherwise
        case _:
            return otherwise


def fire(
    options: Options,
    live: Live,
    phase: str,
    watermark: int,
    clock: int,
    asked: list[str],
    floor: int,
    percentile: float | None,
    expires: bool = True,
) -> list[Row]:
    """The output of one firing; phase "expiry" is the closing of the window."""
    when = timing(live, watermark)
    closing = phase == "expiry"
    if closing:
        wanted = live.fresh or options.closing == "always"  # rule 31
    else:
        wanted = live.fresh or (when == "ON_TIME" and options.on_time == "always")  # rule 30
    if not wanted:
        return []
    retractions = [retraction(row) for row in live.outstanding]
    if not has_value(options, live):
        live.fresh, live.outstanding, live.last = False, [], None
        return retractions  # rule 38
    values, clears = results(options, live.contents), _clears(options.mode, asked)
    time = result_time(options, live, watermark, floor)
    live.fresh = False
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
        "watermark": reading(watermark),
        "watermark_percentile": percentile,
        "processing_time": reading(clock),
        "trigger": ", ".join(dict.fromkeys(tag[1:] for tag in asked if tag.startswith("="))) or phase,  # rule 28
    }
    live.index += 1  # rule 32
    live.not_early += when != "EARLY"
    keys = dict(zip(options.by, live.key, strict=True))
    row = {**keys, "window": shown(live), **values, "event_time": time, "diff": 1, "pane": pane}
    if not options.mode.startswith("retracting"):
        return [row]
    live.outstanding = [row]  # rule 33
    return [*retractions, row]


def _shown_already(options: Options, live: Live, values: dict[str, Any]) -> bool:
    """True if the last pane of the same window had the same values, and no other pane is to be retracted."""
    if not live.outstanding:
        return live.last == values
    only = live.outstanding[0]
    same = {name: only[name] for name in options.aggregates} == values
    return len(live.outstanding) == 1 and only["window"] == shown(live) and same


def reading(clock: int) -> int | None:
    """A clock at the beginning or at the end of time shows nothing."""
    return clock if MIN_TIME < clock < MAX_TIME else None


def retraction(row: Row) -> Row:
    """rule 33: retracted with its own window, values, result timestamp and pane identity."""
    return {**row, "diff": -1}


def shown(live: Live) -> tuple[int, int] | None:
    """The window as output rows have it; all of time is null."""
    return None if live.window == (MIN_TIME, MAX_TIME) else live.window


def _clears(mode: str, asked: list[str]) -> bool:
    """rule 35; where several user triggers ask, to clear wins (D12)."""
    if mode.endswith("_by_default"):
        if "clear" in asked:
            return True
        if "accumulate" in asked:
            return False
    return mode.startswith("discarding")


def hold(options: Options, live: Live, floor: int) -> int:
    """rule 37: the greatest output watermark that this window allows."""
    closes = options.closing == "always" or (options.closing == "non_empty" and live.fresh)  # rule 31
    shows = closes or not live.trigger.finished
    to_come = next_time(options, live, floor)
    on_time = to_come if shows and live.not_early == 0 and live.born < live.end else MAX_TIME
    later = [to_come if shows or merges(options.window) else MAX_TIME]
    if changelog.applies(options):
        gap = None if options.window.columns else getattr(options.window, "gap", None)
        later.append(live.start if gap is None else live.start + int(gap) - 1)
    if options.mode.startswith("retracting"):
        later += [min(row["event_time"], (row["window"] or live.window)[1] - 1) for row in live.outstanding]
    return min(on_time, plus(min(later), options.allowed_lateness))


def next_time(options: Options, live: Live, floor: int) -> int:
    """The least time that a pane to come may have, where it may be before the output watermark."""
    if options.timestamp == "watermark":
        return MAX_TIME
    # Over a changelog a session may come to be the first of its rows alone.
    policy = "earliest" if options.timestamp == "latest" and changelog.applies(options) else None
    time = result_time(options, live, MAX_TIME, floor, policy)
    idle = options.mode.startswith("discarding") and not live.fresh
    if endless(options, live) and time == last(options, live, floor) and (idle or live.reach < floor):
        return MAX_TIME
    return time


def furthest(options: Options, watermark: int) -> int:
    """rule 37: the greatest output watermark that windows to come allow."""
    if options.timestamp != "start_of_window" or not MIN_TIME < watermark < MAX_TIME:
        return watermark
    waits = (0, options.allowed_lateness)
    return min(watermark, *(first_start(options.window, watermark - wait) + wait for wait in waits))


def first_start(window: Any, after: int) -> int:
    """The least start of windows that have not ended at an instant; the instant itself where that says nothing."""
    match type(window).__name__:
        case "Fixed":
            return after - (after - int(window.offset)) % int(window.size)
        case "Sliding":
            start = after - (after - int(window.offset)) % int(window.period) + int(window.period)
            while start - int(window.period) + int(window.size) > after:
                start -= int(window.period)
            return start
        case "Sessions" if not window.columns:
            return after + 1 - int(window.gap)
        case "Calendar":
            return assign(window, after, {})[0][0]
    return after
