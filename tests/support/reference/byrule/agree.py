"""Runs transcripts through the operator and through this model, and tells where they part.

`python tests/support/reference/byrule/agree.py 0 500` shows the disagreements of these seeds, made small.
"""

from __future__ import annotations

import random
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[2]))

import pyarrow as pa
from opened import run_script

import uncombine as uc
from reference.byrule.runner import Result, run
from reference.byrule.times import FIRST_YEAR, LAST_YEAR
from reference.byrule.transcripts import NOON, SCHEMA, shrink, transcripts
from reference.shards import Outcome, at_once, in_parcels

PANE = (
    "index",
    "nonspeculative_index",
    "timing",
    "is_first",
    "is_last",
    "watermark",
    "watermark_percentile",
    "processing_time",
    "trigger",
)
Weighted = list[tuple[dict[str, Any], int]]


def count(rows: Weighted) -> int:
    return sum(weight for _, weight in rows)


def total(rows: Weighted) -> int | None:
    known = [(row["x"], weight) for row, weight in rows if row["x"] is not None]
    # No difference at all is as if nothing had come.
    net, sum_ = sum(weight for _, weight in known), sum(x * weight for x, weight in known)
    return sum_ if net or sum_ else None


def highest(rows: Weighted) -> int | None:
    weights: dict[int, int] = {}
    for row, weight in rows:
        if row["x"] is not None:
            weights[row["x"]] = weights.get(row["x"], 0) + weight
    return max((x for x, weight in weights.items() if weight > 0), default=None)


AGGREGATES = {"n": count, "start": total, "end": highest}
"""Results may be named as the bounds of a window are."""


def combiners_of(options: dict[str, Any]) -> dict[str, Any]:
    """The combiners; the maximum has no differences to show, so it is left out where a pane is a difference."""
    combiners: dict[str, Any] = {"n": uc.Count(), "start": uc.Sum("x")}
    if not (options["diff"] and options["mode"] != "retracting"):
        combiners["end"] = uc.Max("x")
    return combiners


def with_tables(script: list[Any]) -> list[Any]:
    """A script whose rows are tables."""
    return [
        replace(entry, rows=pa.Table.from_pylist([dict(row) for row in entry.rows], SCHEMA))
        if isinstance(entry, uc.Elements)
        else entry
        for entry in script
    ]


def by_operator(script: list[Any], options: dict[str, Any]) -> dict[str, Any]:
    """Through the local runner."""
    table = run_script(with_tables(script), **options, schema=SCHEMA, **combiners_of(options))
    counts = table.counts()
    return {
        "rows": _rows(table),
        **{name: counts[name] for name in ("dropped", "finished", "unassigned", "bad", "held")},
        "dropped_rows": sorted(table.dropped_rows),
        "left_out": Counter(table.left_out["why"].to_pylist()),
        "late_at": table.left_out["watermark"].drop_null().cast(pa.int64()).to_pylist(),
        "output_watermarks": table.output_watermarks,
    }


def by_steps(script: list[Any], options: dict[str, Any]) -> dict[str, Any]:
    """A step for each entry, with no stops on the way."""
    return _found(at_once(script, SCHEMA, options, combiners_of(options)))


def by_shard(script: list[Any], options: dict[str, Any], seed: int, shards: int = 1) -> dict[str, Any]:
    """Through the loop of a shard, or of several, of which the order of panes in an entry is not known."""
    rows = seed % 2 == 0  # cells do not say which rows were left out
    found = _found(in_parcels(script, SCHEMA, options, combiners_of(options), random.Random(seed), shards, rows))
    if not rows:
        del found["left_out"]
    if shards > 1:
        del found["output_watermarks"]
        found["rows"] = in_any_order(found["rows"])
    return found


def in_any_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["step"], repr(sorted(row.items()))))


def _found(outcome: Outcome) -> dict[str, Any]:
    counts = asdict(outcome.counts)
    return {
        "rows": _rows(outcome.table),
        **{name: counts[name] for name in ("dropped", "finished", "unassigned", "bad")},
        "held": outcome.held,
        "left_out": outcome.left_out,
        "output_watermarks": outcome.output_watermarks,
    }


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    plain = table
    for at, field in enumerate(plain.schema):
        plain = plain.set_column(at, field.name, plain[field.name].cast(_without_times(field.type)))
    rows = []
    for row in plain.to_pylist():
        window = row["window"]
        pane = {name: row["pane"][name] for name in PANE}
        rows.append({**row, "window": None if window is None else (window["start"], window["end"]), "pane": pane})
    return rows


def _without_times(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _without_times(f.type)) for f in kind])
    return kind


def by_rule(script: list[Any], options: dict[str, Any], waits: bool = True) -> dict[str, Any]:
    aggregates = {name: AGGREGATES[name] for name in combiners_of(options)}
    default = uc.Repeatedly(uc.AfterWatermark())
    result: Result = run(script, aggregates=aggregates, default_trigger=default, waits=waits, **options)
    return {
        "rows": [_shown(row) for row in result.rows],
        "dropped": result.dropped,
        "finished": result.finished,
        "unassigned": result.unassigned,
        "bad": result.bad,
        "held": len(result.live),
        "dropped_rows": sorted(result.dropped_rows),
        "left_out": Counter(why for why, _ in result.left_out),
        "late_at": result.late_at,
        "output_watermarks": result.output_watermarks,
    }


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """Times outside the years that can be shown become the first or last that can; readings of clocks become null."""
    window, pane = row["window"], dict(row["pane"])
    for name in ("watermark", "processing_time"):
        pane[name] = pane[name] if pane[name] is not None and FIRST_YEAR <= pane[name] <= LAST_YEAR else None
    return {
        **row,
        "window": None if window is None else tuple(map(_clip, window)),
        "event_time": _clip(row["event_time"]),
        "pane": pane,
    }


def _clip(time: int | None) -> int | None:
    return None if time is None else max(FIRST_YEAR, min(time, LAST_YEAR))


WAYS = ("local", "steps", "shard", "shards")
"""The ways to run a script: the local runner, steps without a stop between them, the loop of one shard, or several."""


def ways_of(options: dict[str, Any], seed: int) -> tuple[str, ...]:
    """Two of those that there are for such options, all of them in turn."""
    # Shards know no watermark of a batch. Each has an output watermark of its own, before which no row counts for a
    # timestamp and no result of all time is.
    others = WAYS[1:2] if options.get("watermark") is not None else WAYS[1:]
    if options["timestamp"] in ("earliest", "latest") or options["window"] == uc.Global():
        others = others[:2]
    return WAYS[0], others[seed % len(others)]


def difference(script: list[Any], options: dict[str, Any], way: str = "local", seed: int = 0) -> str | None:
    """The difference between the rules and the operator, run in one way, on a transcript; None if there is none."""
    try:
        match way:
            case "local":
                theirs = by_operator(script, options)
            case "steps":
                theirs = by_steps(script, options)
            case _:
                theirs = by_shard(script, options, seed, 1 if way == "shard" else 3)
    except Exception:
        return "the operator fails:\n" + traceback.format_exc(limit=-4)
    ours = by_rule(script, options, waits=way != "steps")
    ours = {name: value for name, value in ours.items() if name in theirs}
    if way == "shards":
        ours["rows"] = in_any_order(ours["rows"])
    for at, (one, other) in enumerate(zip(theirs["rows"], ours["rows"], strict=False)):
        if one != other:
            return f"row {at}\n  operator {short(one)}\n  by rule  {short(other)}"
    for name, value in ours.items():
        if name == "output_watermarks" and way != "local":  # of entries in one micro-batch only the last is known
            value = {step: value[step] for step in theirs[name]}
        if theirs[name] != value:
            if name == "rows":
                longer = max(theirs["rows"], value, key=len)
                who = "operator" if longer is theirs["rows"] else "by rule"
                rest = longer[min(len(value), len(theirs["rows"])) :]
                return f"more rows from {who}: " + "\n   ".join(map(short, rest))
            return f"{name}: operator {theirs[name]}, by rule {value}"
    return None


def disagreements(
    first: int, last: int, draw: Callable[[int], tuple[list[Any], dict[str, Any]]] = transcripts
) -> Iterator[tuple[int, str, list[Any], dict[str, Any], str]]:
    """Seeds whose transcripts run otherwise than the rules say."""
    for seed in range(first, last):
        script, options = draw(seed)
        for way in ways_of(options, seed):
            if (found := difference(script, options, way, seed)) is not None:
                yield seed, way, script, options, found


def kind_of(found: str | None) -> str | None:
    """The kind of a difference, so that shrinking keeps to it."""
    return None if found is None else found.split()[0]


def short(row: dict[str, Any]) -> str:
    def t(time: int | None) -> str:
        return "none" if time is None else f"{(time - NOON) / 1e6:.6f}".rstrip("0").rstrip(".")

    window = None if row["window"] is None else [t(bound) for bound in row["window"]]
    pane = row["pane"]
    rest = {name: value for name, value in row.items() if name not in ("window", "pane", "event_time")}
    return (
        f"{rest} {window} @{t(row['event_time'])} {pane['timing']} {pane['index']}/{pane['nonspeculative_index']}"
        f" {'first ' * pane['is_first']}{'last ' * pane['is_last']}{pane['trigger']}"
        f" wm {t(pane['watermark'])} pt {t(pane['processing_time'])}"
    )


def told(script: list[Any], options: dict[str, Any]) -> str:
    """A transcript for people; times are seconds from noon."""

    def t(time: int | None) -> str:
        return "none" if time is None else f"{(time - NOON) / 1e6:.6f}".rstrip("0").rstrip(".")

    def brief(row: dict[str, Any]) -> str:
        return f"{'-' if row['d'] < 0 else '+'}{t(row['ts'])}:{row['k']},{row['j']},{row['x']}"

    lines = [f"{name}={value!r}" for name, value in options.items()]
    for at, entry in enumerate(script):
        match entry:
            case uc.Elements(rows, when, reports):
                told = " ".join(f"watermark {t(report.t)} of {report.source}" for report in reports)
                lines.append(f"{at} elements [{' '.join(map(brief, rows))}] at {t(when)} {told}")
            case uc.Watermark(time, source, when):
                lines.append(f"{at} watermark {t(time)} of {source} at {t(when)}")
            case _:
                lines.append(f"{at} clock {t(entry.t)}")
    return "\n".join(lines)


def main(first: int, last: int, most: int = 5) -> None:
    bad: list[tuple[int, str]] = []
    for seed, way, script, options, found in disagreements(first, last):
        bad.append((seed, way))
        if len(bad) <= most:
            kind = kind_of(found)
            small = shrink(
                script,
                lambda s, o=options, k=kind, w=way, i=seed: bool(s) and kind_of(difference(s, o, w, i)) == k,
            )
            print(
                f"--- seed {seed}, {way}\n{told(small, options)}\n{difference(small, options, way, seed)}", flush=True
            )
    print(f"{len(bad)} of {last - first} disagree: {bad}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
