"""Runs random transcripts through the columnar operator and the reference model, and shows where they part."""

from __future__ import annotations

import argparse
import copy
import itertools
import random
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[1]))

import pyarrow as pa
from opened import run_script

import uncombine as uc
from reference import model
from reference.shards import in_parcels
from reference.state_model import FIRST_YEAR, LAST_YEAR, Result
from reference.transcripts import START, transcript
from reference.trigger_model import MAX_TIME, MIN_TIME

SCHEMA = pa.schema(
    {"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "j": pa.int64(), "x": pa.int64(), "d": pa.int64()}
)
PANE = (
    *("index", "nonspeculative_index", "timing", "is_first", "is_last"),
    *("watermark", "watermark_percentile", "processing_time", "trigger"),
)
Weighted = list[tuple[dict[str, Any], int]]


def total(rows: Weighted) -> int | None:
    known = [(row["x"], weight) for row, weight in rows if row["x"] is not None]
    found = sum(x * weight for x, weight in known)
    return found if found or sum(weight for _, weight in known) else None


def count(rows: Weighted) -> int:
    return sum(weight for _, weight in rows)


def hi(rows: Weighted) -> int | None:
    weights: dict[int, int] = {}
    for row, weight in rows:
        if row["x"] is not None:
            weights[row["x"]] = weights.get(row["x"], 0) + weight
    return max((x for x, weight in weights.items() if weight > 0), default=None)


AGGREGATES = {"start": total, "n": count, "end": hi}
"""Results may be named as the bounds of a window are."""


def combiners(options: dict[str, Any]) -> dict[str, Any]:
    """Max has no differences to show, so it is left out where a pane is a difference."""
    named = {"start": uc.Sum("x"), "n": uc.Count(), "end": uc.Max("x")}
    if differences(options):
        del named["end"]
    return named


def differences(options: dict[str, Any]) -> bool:
    return options["diff"] is not None and options["mode"] != "retracting"


def entries_of(script: list[Any]) -> list[Any]:
    """A transcript as a script of the library."""
    entries: list[Any] = []
    for entry in script:
        if entry[0] == "elements":
            table = pa.Table.from_pylist([{name: row.get(name) for name in SCHEMA.names} for row in entry[1]], SCHEMA)
            entries.append(uc.Elements(table, entry[2], [uc.Watermark(t, source) for t, source in entry[3]]))
        elif entry[0] == "watermark":
            entries.append(uc.Watermark(entry[1], source=entry[2]))
        else:
            entries.append(uc.Clock(entry[1]))
    return entries


def through_a_shard(script: list[Any], options: dict[str, Any], seed: int) -> Result:
    """The panes of the loop of a shard; entries of one micro-batch have the output watermark of the last of them."""
    settings = options | {"allowed_lateness": f"{options['allowed_lateness']} microseconds"}
    found = in_parcels(entries_of(script), SCHEMA, settings, combiners(options), random.Random(seed))
    names = [*options["by"], *combiners(options)]
    counts = (getattr(found.counts, name) for name in ("dropped", "finished", "unassigned", "bad"))
    return Result(_rows(found.table, names), *counts, found.output_watermarks, found.held)


def columnar(script: list[Any], options: dict[str, Any]) -> Any:
    """The panes of the library, in the form of the model."""
    settings = options | {"allowed_lateness": f"{options['allowed_lateness']} microseconds"}
    result = run_script(entries_of(script), **settings, **combiners(options), schema=SCHEMA)
    counts = result.counts()
    return Result(
        _rows(result, [*options["by"], *combiners(options)]),
        counts["dropped"],
        counts["finished"],
        counts["unassigned"],
        counts["bad"],
        result.output_watermarks,
        counts["held"],
    )


def _micros(column: Any) -> list[int]:
    return column.cast(pa.int64()).to_pylist()


def _rows(result: pa.Table, names: list[str]) -> list[dict[str, Any]]:
    window, pane = result["window"].combine_chunks(), result["pane"].combine_chunks()
    columns = {name: result[name].to_pylist() for name in names}
    spans = zip(_micros(window.field("start")), _micros(window.field("end")), strict=True)
    valid = window.is_valid().to_pylist()
    columns["window"] = [span if held else (MIN_TIME, MAX_TIME) for span, held in zip(spans, valid, strict=True)]
    columns["event_time"] = _micros(result["event_time"])
    columns["diff"] = result["diff"].to_pylist()
    parts = {name: pane.field(name) for name in PANE}
    parts = {
        name: _micros(part) if pa.types.is_timestamp(part.type) else part.to_pylist() for name, part in parts.items()
    }
    columns["pane"] = [dict(zip(PANE, values, strict=True)) for values in zip(*parts.values(), strict=True)]
    columns["step"] = result["step"].to_pylist()
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def reference(script: list[Any], options: dict[str, Any]) -> Result:
    """The panes of the model."""
    names = combiners(options)
    return model.run(script, **options, aggregates={name: AGGREGATES[name] for name in names})


def difference(script: list[Any], options: dict[str, Any], shard: int | None = None) -> str | None:
    """The first thing in which the two differ, or None; with a seed, through the loop of a shard."""
    try:
        ours = reference(copy.deepcopy(script), options)
    except Exception:
        return "the model failed: " + traceback.format_exc(limit=-3)
    try:
        # Seconds of this process, so that a busy machine is not taken for an operator that comes to no end.
        signal.signal(signal.SIGVTALRM, _too_long)
        signal.setitimer(signal.ITIMER_VIRTUAL, 5)
        theirs = columnar(script, options) if shard is None else through_a_shard(script, options, shard)
    except Exception:
        return "the operator failed: " + traceback.format_exc(limit=-3)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    for i in range(max(len(ours.rows), len(theirs.rows))):
        a = ours.rows[i] if i < len(ours.rows) else None
        b = theirs.rows[i] if i < len(theirs.rows) else None
        if a != b:
            return f"row {i}:\n  model    {show(a)}\n  operator {show(b)}"
    for name in ("dropped", "finished", "unassigned", "bad", "output_watermarks", "live"):
        a, b = getattr(ours, name), getattr(theirs, name)
        if isinstance(b, dict):
            a, b = [a[step] for step in b], list(b.values())
        if a != b:
            if name == "output_watermarks":
                a, b = [moment(t) for t in a], [moment(t) for t in b]
            return f"{name}: model {a}, operator {b}"
    return None


def _too_long(*_: Any) -> None:
    raise TimeoutError("it does not come to an end")


def kind(script: list[Any], options: dict[str, Any], shard: int | None = None) -> str:
    """The kind of a difference, so that shrinking keeps to it."""
    return "".join((difference(script, options, shard) or "").split(":")[:1]).rstrip(" 0123456789")


def shrunk(script: list[Any], options: dict[str, Any], shard: int | None = None) -> list[Any]:
    """A smaller script that still differs: entries and rows are left out one by one."""
    sort = kind(script, options, shard)
    again = True
    while again:
        again = False
        for smaller in _smaller(script):
            if any(entry[0] == "elements" and entry[1] for entry in smaller) and kind(smaller, options, shard) == sort:
                script, again = smaller, True
                break
    return script


def _smaller(script: list[Any]) -> Any:
    for i in range(len(script)):
        yield script[:i] + script[i + 1 :]
    for i, entry in enumerate(script):
        if entry[0] == "elements":
            for j in range(len(entry[1])):
                yield [*script[:i], (entry[0], entry[1][:j] + entry[1][j + 1 :], *entry[2:]), *script[i + 1 :]]
            if entry[2] is not None:
                yield [*script[:i], (*entry[:2], None, entry[3]), *script[i + 1 :]]
            if entry[3]:
                yield [*script[:i], (*entry[:3], entry[3][1:]), *script[i + 1 :]]


PLAIN: dict[str, Any] = {
    "by": (), "allowed_lateness": 0, "on_time": "always", "closing": "non_empty", "only_updated": False,
    "eager_retractions": False, "late": "drop", "granularity": "bundle", "timestamp": "end_of_window",
    "mode": "accumulating",
}  # fmt: skip


def simplest(script: list[Any], options: dict[str, Any], shard: int | None = None) -> tuple[list[Any], dict[str, Any]]:
    """A smaller script with plainer options that still differs."""
    sort = kind(script, options, shard)
    for name, value in PLAIN.items():
        if name == "mode" and options["diff"]:
            continue
        plainer = options | {name: value}
        if kind(script, plainer, shard) == sort:
            options = plainer
    return shrunk(script, options, shard), options


def moment(t: int) -> str:
    """A time as seconds after the transcripts' start, where it is near."""
    near = (t - START) / 1e6
    if t in (MIN_TIME, MAX_TIME, FIRST_YEAR, LAST_YEAR, MAX_TIME - 1):
        return {MIN_TIME: "MIN", MAX_TIME: "MAX", MAX_TIME - 1: "MAX-1"}.get(t, "clipped")
    return f"{near:.6f}".rstrip("0").rstrip(".")


def show(value: Any) -> str:
    if value is None:
        return "nothing"
    flat = {**value, **value["pane"]}
    del flat["pane"]
    flat["window"] = tuple(moment(t) for t in flat["window"])
    for name in ("event_time", "watermark", "processing_time"):
        flat[name] = None if flat[name] is None else moment(flat[name])
    return str(flat)


def listing(script: list[Any], options: dict[str, Any]) -> str:
    """A transcript to read."""
    lines = [f"{name}={value!r}" for name, value in options.items() if PLAIN.get(name, "?") != value]
    for entry in script:
        if entry[0] == "elements":
            rows = [{**row, "ts": row["ts"] and moment(row["ts"])} for row in entry[1]]
            told = [(moment(t), source) for t, source in entry[3]]
            lines.append(f"elements at {entry[2] and moment(entry[2])}: {rows} with watermarks {told}")
        else:
            lines.append(f"{entry[0]} {moment(entry[1])} {entry[2] if len(entry) > 2 else ''}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:500", help="first:after-last")
    parser.add_argument("--most", type=int, default=5, help="stop after so many differences")
    arguments = parser.parse_args()
    first, last = map(int, arguments.seeds.split(":"))
    found = []
    for seed, shard in itertools.product(range(first, last), (False, True)):
        script, options = transcript(seed)
        way = seed if shard else None
        if difference(script, options, way) is None:
            continue
        found.append((seed, way))
        if len(found) <= arguments.most:
            script, options = simplest(script, options, way)
            print(
                f"--- seed {seed} {way}\n{listing(script, options)}\n{difference(script, options, way)}\n", flush=True
            )
    print(f"{len(found)} of {last - first} differ: {found[:60]}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
