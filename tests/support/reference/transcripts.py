"""Random scripts and options, a pair for each seed, beside those of `byrule/transcripts.py`.

Here the clocks and the times of rows wander on together, weights are also 2 and -1 of rows that never came, and lengths
of windows have fractions of seconds.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.triggers import check_trigger
from uncombine.windows import span

SECOND = 1_000_000
START = 1_453_291_200 * SECOND  # noon of 2016-01-20
LATEST = 600


@dataclass(frozen=True)
class At:
    """True if a column, if it is there, is at least `least`: for a table, or for one row."""

    name: str
    least: int

    def __call__(self, table: pa.Table) -> Any:
        if self.name not in table.column_names:
            return pa.array([False] * table.num_rows)
        return pc.greater_equal(table[self.name], self.least)

    def holds(self, row: dict[str, Any]) -> bool:
        return row.get(self.name) is not None and row[self.name] >= self.least


def transcript(seed: int) -> tuple[list[Any], dict[str, Any]]:
    """The script and the options of this seed."""
    r = random.Random(seed)
    options = _options(r)
    return _script(r, options), options


def _options(r: random.Random) -> dict[str, Any]:
    crowded = r.random() < 0.3
    window = uc.Sessions("10 seconds") if crowded else _window(r)
    trigger = None if r.random() < 0.1 else _root(r)
    merging = isinstance(window, uc.Sessions)
    changelog = r.random() < (0.5 if merging else 0.25)
    modes = ["retracting", "retracting", *([] if changelog and merging else ["discarding"])]
    if not changelog:
        modes += ["accumulating", "accumulating_by_default", "discarding_by_default", "retracting_by_default"]
    mode = "retracting" if crowded else r.choice(modes)
    if mode.endswith("_by_default") and r.random() < 0.5:
        trigger = uc.Repeatedly(uc.FirstOf(uc.Clearing(_trigger(r, 1)), trigger or uc.AfterWatermark()))
    lateness = r.choice([0, 0, 5, 30, 120, 600]) * SECOND
    options: dict[str, Any] = {
        "window": window,
        "trigger": trigger,
        "mode": mode,
        "by": r.choice([(), ("k",)] if crowded else [(), ("k",), ("k",), ("k", "j")]),
        "diff": "d" if changelog else None,
        "allowed_lateness": _text(lateness),
        "on_time": r.choice(["always", "always", "non_empty"]),
        "closing": r.choice(["non_empty", "non_empty", "always", "never"]),
        "only_updated": r.random() < 0.25,
        "eager_retractions": r.random() < 0.3,
        "late": r.choice(["drop", "drop", "duplicate"]),
        "granularity": r.choice(["bundle", "bundle", "record"]),
        "timestamp": r.choice(["end_of_window", "end_of_window", "start_of_window", "earliest", "latest", "watermark"]),
        "allow_finish": False,
    }
    if options["late"] == "duplicate" and (mode.startswith("retracting") or changelog):
        options["late"] = "drop"
    if options["mode"].startswith("discarding"):
        options["only_updated"] = False
    try:
        check_trigger(trigger or uc.Repeatedly(uc.AfterWatermark()), window, span(_text(lateness)), True, False)
    except InvalidArgument:
        options["allow_finish"] = True
    return options


def _window(r: random.Random) -> Any:
    match r.randrange(8):
        case 0:
            return uc.Global()
        case 1 | 2:
            return uc.Fixed(r.choice(["1 minute", "2 minutes", "30 seconds"]), r.choice(["0 seconds", "10 seconds"]))
        case 3:
            return uc.Sliding("2 minutes", r.choice(["1 minute", "50 seconds", "33.333333 seconds"]))
        case 4:
            size = r.choice(["30 seconds", "29.999999 seconds", "59.999999 seconds"])
            return uc.Sliding(size, "1 minute", r.choice(["0 seconds", "20 seconds"]))
        case 5:
            return uc.Calendar(r.choice(["day", "month"]))
        case _:
            return uc.Sessions(r.choice(["10 seconds", "30 seconds", "1 minute"]))


def _root(r: random.Random) -> Any:
    trigger = _trigger(r, 3)
    return uc.Repeatedly(trigger) if r.random() < 0.5 else trigger


def _trigger(r: random.Random, depth: int) -> Any:
    if depth > 0 and r.random() < 0.6:
        return _composite(r, depth - 1)
    match r.randrange(11):
        case 0 | 1 | 2:
            return uc.AfterWatermark()
        case 3 | 4:
            return uc.AfterCount(r.randint(1, 4))
        case 5:
            return uc.AfterBytes(8 * r.randint(1, 4), of=["x"])
        case 6:
            return uc.AfterDelay(f"{r.choice([0, 3, 10, 40])} seconds", r.choice(["processing", "event"]))
        case 7:
            origin = r.choice([None, None, 7 * SECOND])
            return uc.AtPeriod(f"{r.choice([5, 20, 60])} seconds", origin, r.choice(["processing", "event"]))
        case 8:
            return uc.WatermarkPercentile(r.choice([50, 75, 100]))
        case 9:
            name, least = r.choice([("n", 2), ("n", 3), ("start", 6), ("end", 5)])
            return r.choice([uc.OnPunctuation(At("x", 7)), uc.OnResult(At(name, least))])
    return r.choice([uc.Always(), uc.Always(), uc.Never()])


def _composite(r: random.Random, depth: int) -> Any:
    def some(low: int) -> list[Any]:
        return [_trigger(r, depth) for _ in range(r.randint(low, 3))]

    match r.randrange(8):
        case 0:
            return uc.FirstOf(*some(1))
        case 1:
            return uc.AllOf(*some(1))
        case 2:
            return uc.SequenceOf(*some(1))
        case 3:
            return uc.Repeatedly(_trigger(r, depth))
        case 4:
            return _trigger(r, depth).or_finally(_trigger(r, depth))
        case 5:
            return uc.RepeatCount(_trigger(r, depth), r.randint(1, 3))
    early = _trigger(r, depth) if r.random() < 0.6 else None
    late = _trigger(r, depth) if r.random() < 0.6 else None
    return uc.AfterWatermark(early=early, late=late)


def _script(r: random.Random, options: dict[str, Any]) -> list[Any]:
    """Entries whose watermark, clock and row times all wander on from the start, with jumps."""
    named: list[list[str | None]] = [[None], [None], [None, "b"], ["a", "b", "c"]]
    sources = r.choice(named)
    marks = dict.fromkeys(sources, 0)
    clock, timed, event = 0, r.random() < 0.7, 0
    old: list[dict[str, Any]] = []
    script: list[Any] = []
    crowded, alone = options["window"] == uc.Sessions("10 seconds"), r.random() < 0.5

    def report() -> uc.Watermark:
        source = r.choice(sources)
        own = marks[source]
        marks[source] = max(0, r.choice([event, event, event - 60, event + 60, own + 10, own + 30, LATEST]))
        return uc.Watermark(START + marks[source] * SECOND + r.choice([-1, 0, 0]), source)

    for _ in range(r.randint(8, 25) if crowded else r.randint(3, 12)):
        chance = r.random()
        if chance < 0.55:
            event = max(0, event + r.choice([0, 5, 20, 60, 120, -30]))
            if crowded:
                event = r.randrange(0, 60, 3)
            # Bundles of one key, so that a clock moves past one of several windows of another.
            keys = [r.choice(["a", "b"])] if alone else ["a", "a", "b", None]
            rows = [_row(r, event, old, options, keys) for _ in range(r.choice([0, 1, 1, 2, 3, 5, 8]))]
            clock += r.choice([0, 0, 1, 5, 30])
            reports = [report() for _ in range(r.choice([0, 0, 1, 2]))]
            script.append(uc.Elements(rows, START + clock * SECOND if timed and r.random() < 0.8 else None, reports))
        elif chance < 0.85:
            script.append(report())
        else:
            clock += r.choice([1, 3, 10, 60, 600])
            script.append(uc.Clock(START + clock * SECOND))
    if not any(isinstance(entry, uc.Elements) and len(entry.rows) for entry in script):
        script.insert(0, uc.Elements([_row(r, event, old, options, ["a", "b"])]))
    if r.random() < 0.5:
        script += [uc.Watermark(START + r.choice([700, 10**7]) * SECOND, source) for source in sources]
    if r.random() < 0.3:
        script += [uc.Watermark(2**63 - 1, source) for source in sources]
    return script


def _row(
    r: random.Random, event: int, old: list[dict[str, Any]], options: dict[str, Any], keys: list[str | None]
) -> dict[str, Any]:
    changelog = options["diff"] is not None
    if changelog and old and r.random() < 0.4:
        return old.pop(r.randrange(len(old))) | {"d": -1}
    far = [] if options["window"] == uc.Sessions("10 seconds") else [20, 29, 30, 31, 60, -20, -60, -120]
    t = event + r.choice([0, 0, 1, 5, 9, 10, 11, -1, *far])
    row: dict[str, Any] = {
        "ts": START + t * SECOND + r.choice([-1, 0, 0, 0, 1]),
        "k": r.choice(keys),
        "j": r.randrange(2),
        "x": r.choice([None, *range(-3, 10)]),
    }
    if r.random() < 0.03:
        row["ts"] = r.choice([None, START + 3 * 86_400 * SECOND])
    if changelog:
        # Sessions are those of times whose diffs do not add up to zero: no row is retracted before it comes.
        row["d"] = 1 if isinstance(options["window"], uc.Sessions) else r.choice([1, 1, 1, 1, -1, 2])
        old.append(row | {"d": 1})
    return row


def _text(length: int) -> str:
    return f"{length // SECOND} seconds"
