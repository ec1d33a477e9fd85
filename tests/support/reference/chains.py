"""Random chains of groupings, and in plain Python what each stage makes of what is left of the stage before it.

`python tests/support/reference/chains.py 0 2000` shows the seeds for which a chain in `pipeline` gives something else.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[1]))

import pyarrow as pa
from pipelines import Stage, pipeline

import uncombine as uc
from reference.windows_model import MAX_TIME, MIN_TIME, united, windows_of
from uncombine.errors import UncombineError
from uncombine.panes.stages import Asked, settled

SECOND = 1_000_000
NOON = 1_453_291_200 * SECOND
SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "x": pa.int64(), "d": pa.int64()})
WINDOWS: list[Any] = [
    uc.Fixed("1 minute"),
    uc.Fixed("7 seconds", "3 seconds"),
    uc.Sliding("1 minute", "20 seconds"),
    uc.Sessions("10 seconds"),
    uc.Sessions("45 seconds"),
    uc.Global(),
    uc.Calendar("day"),
]
POLICIES = ["end_of_window", "start_of_window", "earliest", "latest", "watermark"]
LONG = "1 day"


@dataclass(frozen=True)
class Chain:
    """The stages of a chain, all that they leave open settled, and whether the source has weights."""

    stages: tuple[Asked, ...]
    changelog: bool

    def local(self, count: int) -> list[Any]:
        """The first stages, for the local runner."""
        return [Stage(s.window, **s.combiners, **s.options) for s in self.stages[:count]]


def chain(r: random.Random) -> Chain:
    """Two or three stages that can follow each other."""
    changelog = r.random() < 0.3
    while True:
        asked = [_stage(r, i, changelog) for i in range(r.choice([2, 2, 3]))]
        try:
            groupings = settled(asked)
            pipeline(Chain(tuple(asked), changelog).local(len(asked)), [], schema=SCHEMA)
        except UncombineError:
            continue
        waits = [int(uc.span(grouping.allowed_lateness)) for grouping in groupings]
        if waits == sorted(waits):  # a stage that waits less, where it may, loses rows as it was told to
            break
    if groupings[-1].mode == "accumulating":  # of what it shows several times nothing would be left alone
        groupings[-1] = groupings[-1].with_mode("retracting")
    fixed = []
    for stage, grouping in zip(asked, groupings, strict=True):
        known = {"mode": grouping.mode, "allowed_lateness": grouping.allowed_lateness, "diff": grouping.diff}
        fixed.append(replace(stage, options={**stage.options, **known}))
    return Chain(tuple(fixed), changelog)


def _stage(r: random.Random, place: int, changelog: bool) -> Asked:
    mode = r.choice([None, None, None, "retracting", "discarding"])
    options: dict[str, Any] = {
        "trigger": _trigger(r),
        "mode": mode,
        "by": r.choice(["k", "k", ()]) if place == 0 else r.choice(["n", "n", ()]),
        "timestamp": r.choice([None, None, *POLICIES]),
        "closing": r.choice(["non_empty", "non_empty", "always"]),
        "on_time": r.choice(["always", "non_empty"]),
        "eager_retractions": r.random() < 0.3,
        "only_updated": mode == "retracting" and r.random() < 0.3,
        "granularity": r.choice(["bundle", "bundle", "bundle", "record"]),
    }
    if place == 0 or r.random() < 0.3:
        options["allowed_lateness"] = r.choice(["0 seconds", "0 seconds", "15 seconds", "1 minute", LONG])
    if place == 0 and changelog:
        options["diff"] = "d"
    window = r.choice(WINDOWS if place == 0 else [*WINDOWS, uc.Inherit()])
    x = "x" if place == 0 else "total"
    combiners: dict[str, Any] = {"n": uc.Count(), "total": uc.Sum(x)}
    if mode != "discarding":
        combiners["hi"] = uc.Max(x)
    return Asked(combiners, window, options)


def _trigger(r: random.Random) -> Any:
    late = r.choice([uc.AfterCount(1), uc.AfterCount(2), uc.AfterDelay("20 seconds"), uc.Never()])
    early = r.choice(
        [
            None,
            uc.AfterCount(1),
            uc.AfterCount(3),
            uc.AfterDelay("5 seconds"),
            uc.AtPeriod("20 seconds", domain="event"),
            uc.AtPeriod("30 seconds"),
        ]
    )
    return r.choice(
        [
            None,
            uc.AfterWatermark(early, late),
            uc.AfterWatermark(early, late),
            uc.Repeatedly(uc.AfterCount(r.randint(1, 4))),
            uc.Repeatedly(uc.FirstOf(uc.AfterCount(3), uc.AfterWatermark())),
            uc.Repeatedly(uc.AfterDelay("10 seconds", domain=r.choice(["event", "processing"]))),
            uc.Repeatedly(uc.AllOf(uc.AfterCount(2), uc.AfterDelay("15 seconds"))),
            uc.Always(),
            uc.Never(),
        ]
    )


def history(r: random.Random, changelog: bool) -> list[Any]:
    """Rows and what retracts some of them, out of order and partly late, with a watermark that jumps; then the end."""
    script: list[Any] = []
    known: list[dict[str, Any]] = []
    now, top, mark = NOON, NOON, NOON - 60 * SECOND
    keys = r.choice(["a", "ab", "abc"])
    for _ in range(r.randint(3, 22)):
        now += r.choice([0, 1, 4, 15, 60]) * SECOND
        rows = []
        for _ in range(r.choice([0, 1, 1, 2, 3, 6])):
            if changelog and known and r.random() < 0.4:
                rows.append({**known.pop(r.randrange(len(known))), "d": -1})
                continue
            top += r.choice([0, 0, 2, 5, 12, 40]) * SECOND
            t = top - r.choice([0, 0, 1, 5, 9, 20, 55, 70, 200]) * SECOND
            row = {"ts": t, "k": r.choice(keys), "x": r.choice([None, 1, 2, 2, -1]), "d": 1}
            known.append(row)
            rows.append(row)
        reports = []
        if r.random() < 0.6:
            mark = max(mark, top - r.choice([0, 0, 5, 20, 60, -30, -300]) * SECOND)
            reports = [uc.Watermark(mark)]
        table = pa.Table.from_pylist(rows, SCHEMA)
        if r.random() < 0.5:
            script.append(uc.Elements(table, at=now, watermarks=reports))
        else:
            script += [uc.Elements(table, at=now), *(replace(report, at=now) for report in reports)]
    return [*script, uc.Watermark(None, at=now)]


Net = Counter[tuple[Any, ...]]
"""Rows that are left, as tuples of names and values, with how often."""


def net(panes: pa.Table) -> Net:
    """The rest of panes after retractions: times in microseconds, windows as pairs."""
    out: Net = Counter()
    names = [name for name in panes.column_names if name not in ("window", "event_time", "diff", "pane", "step")]
    columns = {name: panes[name].to_pylist() for name in names}
    columns["event_time"] = panes["event_time"].cast(pa.int64()).to_pylist()
    window = panes["window"].combine_chunks()
    valid = window.is_valid().to_pylist()
    bounds = (window.field(side).cast(pa.int64()).to_pylist() for side in ("start", "end"))
    columns["window"] = [
        (start, end) if there else (MIN_TIME, MAX_TIME) for there, start, end in zip(valid, *bounds, strict=True)
    ]
    for weight, *values in zip(panes["diff"].to_pylist(), *columns.values(), strict=True):
        out[tuple(zip(columns, values, strict=True))] += weight
    return Counter({row: weight for row, weight in out.items() if weight})


def computed(stage: Asked, rows: Net) -> Net:
    """The results of a stage over all rows at once, without their times."""
    by = (stage.options["by"],) if isinstance(stage.options["by"], str) else tuple(stage.options["by"])
    cells: dict[Any, Net] = {}
    for given, weight in rows.items():
        row = dict(given)
        key = tuple(row[name] for name in by)
        time = row["event_time"]
        spans = [row["window"]] if isinstance(stage.window, uc.Inherit) else windows_of(stage.window, time)
        for span in spans:
            cells.setdefault((key, span), Counter())[given] += weight
    if stage.window.merging:
        hulls = {key: united([span for other, span in cells if other == key]) for key, _ in cells}
        merged: dict[Any, Net] = {}
        for (key, span), held in cells.items():
            hull = next(h for h in hulls[key] if h[0] <= span[0] < h[1])
            merged.setdefault((key, hull), Counter()).update(held)
        cells = merged
    out: Net = Counter()
    for (key, span), held in cells.items():
        count = sum(held.values())
        if count == 0 and stage.options["mode"] == "retracting":
            continue
        weights: Counter[int] = Counter()
        for given, weight in held.items():
            value = dict(given)["x" if "x" in dict(given) else "total"]
            if value is not None:
                weights[value] += weight
        left = {value: weight for value, weight in weights.items() if weight}
        total = sum(value * weight for value, weight in left.items())
        values: dict[str, Any] = {"n": count, "total": total if sum(left.values()) or total else None}
        if "hi" in stage.combiners:
            values["hi"] = max((value for value, weight in left.items() if weight > 0), default=None)
        out[(*zip(by, key, strict=True), *values.items(), ("window", span))] += 1
    return out


def timeless(rows: Net) -> Net:
    out: Net = Counter()
    for row, weight in rows.items():
        out[tuple(pair for pair in row if pair[0] != "event_time")] += weight
    return out


def added(rows: Net) -> Counter[Any]:
    """The sums of differences, by key and window."""
    out: Counter[Any] = Counter()
    for given, weight in rows.items():
        row = dict(given)
        held = tuple((name, value) for name, value in given if name not in ("n", "total", "hi", "event_time"))
        out[held, "n"] += row["n"] * weight
        out[held, "total"] += (row["total"] or 0) * weight
    return Counter({what: value for what, value in out.items() if value})


def without_windows(sums: Counter[Any]) -> Counter[Any]:
    out: Counter[Any] = Counter()
    for (held, what), value in sums.items():
        out[tuple(pair for pair in held if pair[0] != "window"), what] += value
    return Counter({what: value for what, value in out.items() if value})


def disagreement(stage: Asked, rows: Net, given: Net) -> str | None:
    """The difference of a stage from the same stage over all rows that remain for it at once, or None."""
    want = computed(stage, rows)
    mode = stage.options["mode"]
    # A session that has expired has left, and a row in its time then opens another; with differences it is cut too.
    apart = stage.window.merging and (int(uc.span(stage.options["allowed_lateness"])) < 3600 * SECOND)
    if mode == "discarding" or apart:
        sums, wanted = added(given), added(want)
        if stage.window.merging:
            sums, wanted = without_windows(sums), without_windows(wanted)
        return None if sums == wanted else f"sums {dict(sums - wanted)} for {dict(wanted - sums)}"
    got = timeless(given)
    if got == want:
        return None
    more, less = Counter(got), Counter(want)
    more.subtract(want)
    less.subtract(got)
    return f"too many {dict(+more)}, too few {dict(+less)}"


def checked(chain: Chain, script: Sequence[Any]) -> str | None:
    """The first thing that is wrong with a chain over a script in the local runner."""
    results = [pipeline(chain.local(count), script, schema=SCHEMA) for count in range(1, len(chain.stages) + 1)]
    counts = [results[-1].counts(stage=i + 1) for i in range(len(chain.stages))]
    for i, of_stage in enumerate(counts[1:], 2):
        if any(of_stage[name] for name in ("dropped", "finished", "bad", "unassigned")):
            return f"stage {i} lost rows: {of_stage}"
    left = [net(result) for result in results]
    if (found := later_stages(chain, left)) is not None:
        return found
    if counts[0]["dropped"] == 0:
        found = disagreement(chain.stages[0], source(script, chain.changelog), left[0])
        return None if found is None else f"stage 1: {found}"
    return None


def later_stages(chain: Chain, left: Sequence[Net]) -> str | None:
    """The difference of a later stage from the same stage over all that remains of the one before it, or None."""
    for i, stage in enumerate(chain.stages[1:], 1):
        if (found := disagreement(stage, left[i - 1], left[i])) is not None:
            return f"stage {i + 1}: {found}"
    return None


def source(script: Sequence[Any], changelog: bool) -> Net:
    """The rows of a script that are left."""
    out: Net = Counter()
    for entry in script:
        if isinstance(entry, uc.Elements):
            for row in entry.rows.set_column(0, "event_time", entry.rows["ts"].cast(pa.int64())).to_pylist():
                weight = row.pop("d")
                out[tuple(row.items())] += weight if changelog else 1
    return Counter({row: weight for row, weight in out.items() if weight})


def case(seed: int) -> tuple[Chain, list[Any]]:
    r = random.Random(seed)
    drawn = chain(r)
    return drawn, history(r, drawn.changelog)


def shrunk(chain: Chain, script: list[Any], kind: str) -> list[Any]:
    """A shorter script for which the same is wrong."""
    again = True
    while again:
        again = False
        for smaller in _smaller(script):
            if (checked(chain, smaller) or "").split(":")[0] == kind:
                script, again = smaller, True
                break
    return script


def _smaller(script: list[Any]) -> Any:
    for i, entry in enumerate(script[:-1]):
        yield script[:i] + script[i + 1 :]
        if isinstance(entry, uc.Elements):
            for j in range(entry.rows.num_rows):
                rows = pa.concat_tables([entry.rows.slice(0, j), entry.rows.slice(j + 1)])
                yield [*script[:i], replace(entry, rows=rows), *script[i + 1 :]]


def told(chain: Chain, script: list[Any]) -> str:
    """A case to read; times are seconds from noon."""

    def t(time: Any) -> str:
        return "none" if time is None else f"{(uc.timestamp(time) - NOON) / 1e6:g}"

    lines = [f"{s.window!r} {s.options} {list(s.combiners)}" for s in chain.stages]
    for entry in script:
        if isinstance(entry, uc.Elements):
            rows = [{**row, "ts": t(row["ts"])} for row in entry.rows.to_pylist()]
            lines.append(f"at {t(entry.at)} {rows} {[t(report.t) for report in entry.watermarks]}")
        else:
            lines.append(f"at {t(entry.at)} watermark {t(entry.t)}")
    return "\n".join(lines)


def main(first: int, last: int, most: int = 3) -> None:
    bad: list[int] = []
    for seed in range(first, last):
        drawn, script = case(seed)
        found = checked(drawn, script)
        if found is None:
            continue
        bad.append(seed)
        if len(bad) <= most:
            small = shrunk(drawn, script, found.split(":")[0])
            print(f"--- seed {seed}\n{told(drawn, small)}\n{checked(drawn, small)}", flush=True)
    print(f"{len(bad)} of {last - first} are wrong: {bad}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
