"""Runs random transcripts through this library and through Apache Beam's trigger driver, and shows where they part."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[1]))

import pyarrow as pa

import uncombine as uc
from oracle.transcripts import Case, case, within

HERE = Path(__file__).parent
SCHEMA = pa.schema({"k": pa.string(), "ts": pa.timestamp("us", "UTC"), "v": pa.int64()})
Panes = list[dict[str, Any]]


class Beam:
    """Beam's trigger driver in a process of its own."""

    def __init__(self, python: str) -> None:
        command = [python, str(HERE / "beam_driver.py")]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def panes(self, drawn: Case) -> Panes:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(drawn) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit("Beam's side came to an end: does its Python have apache-beam?")
        found = json.loads(answer)
        if isinstance(found, dict):
            raise SystemExit(f"Beam's driver failed with {found['error']} on {json.dumps(drawn)}")
        return found


def library(drawn: Case) -> Panes:
    """The library's panes for this case, in the form of the other side."""
    script: list[Any] = []
    for kind, *rest in drawn["script"]:
        if kind == "row":
            key, time, value = rest
            script.append(uc.Elements(pa.table([[key], pa.array([time], SCHEMA.types[1]), [value]], schema=SCHEMA)))
        else:
            script.append(uc.Watermark(rest[0]))
    result = (
        uc.flow(SCHEMA)
        .window(
            window_of(drawn["window"]),
            trigger_of(drawn["trigger"]),
            mode=drawn["mode"],
            allowed_lateness=micros(drawn["lateness"]),
            closing="never",
            allow_finish=True,
        )
        .combine(by="k", values=uc.CollectList("v"))
        .run(script)
    )
    everywhere = drawn["window"][0] == "global"
    start, end = (in_micros(result["window"].combine_chunks().field(i)) for i in (0, 1))
    times = in_micros(result["event_time"])
    return [
        {
            "step": row["step"],
            "key": row["k"],
            "window": None if everywhere else [start[i], end[i]],
            "values": sorted(row["values"] or []),
            **{name: row["pane"][name] for name in ("timing", "index", "nonspeculative_index")},
            "event_time": None if everywhere else times[i],
        }
        for i, row in enumerate(result.select(["step", "k", "values", "pane"]).to_pylist())
    ]


def in_micros(column: Any) -> list[int]:
    return column.cast(pa.int64()).to_pylist()


def micros(length: int) -> str:
    return f"{length} microseconds"


def window_of(spec: list[Any]) -> Any:
    kind, *lengths = spec
    if kind == "global":
        return uc.Global()
    return {"fixed": uc.Fixed, "sliding": uc.Sliding, "sessions": uc.Sessions}[kind](*map(micros, lengths))


def trigger_of(spec: list[Any] | None) -> Any:
    if spec is None:
        return None
    kind, *rest = spec
    if kind == "count":
        return uc.AfterCount(rest[0])
    if kind == "watermark":
        return uc.AfterWatermark(early=trigger_of(rest[0]), late=trigger_of(rest[1]))
    composites = {"first": uc.FirstOf, "all": uc.AllOf, "each": uc.SequenceOf, "repeatedly": uc.Repeatedly}
    return composites[kind](*(trigger_of(child) for child in rest))


def in_order(panes: Panes, drawn: Case) -> Panes:
    """Step by step; within a step, where a window fires once, by key and window, as Beam's order is that of a dict.

    Beam calls a pane on time only if a timer brought it, so of panes that a row brought only "early" is compared.
    """
    panes = [
        {**pane, "timing": "NOT EARLY"}
        if drawn["script"][pane["step"]][0] == "row" and pane["timing"] != "EARLY"
        else pane
        for pane in panes
    ]
    return sorted(panes, key=lambda pane: (pane["step"], pane["key"], pane["window"] or []))


def difference(beam: Beam, drawn: Case) -> str | None:
    """The first pane in which the two differ, or None."""
    ours, theirs = in_order(library(drawn), drawn), in_order(beam.panes(drawn), drawn)
    for i in range(max(len(ours), len(theirs))):
        a = ours[i] if i < len(ours) else None
        b = theirs[i] if i < len(theirs) else None
        if a != b:
            return f"pane {i}:\n  library {a}\n  Beam    {b}"
    return None


def shrunk(beam: Beam, drawn: Case) -> Case:
    """A smaller script that still differs: entries are left out one by one."""
    i = 0
    while i < len(drawn["script"]):
        smaller = {**drawn, "script": drawn["script"][:i] + drawn["script"][i + 1 :]}
        if within(smaller) and difference(beam, smaller):
            drawn, i = smaller, 0
        else:
            i += 1
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beam-python", required=True, help="a Python that has apache-beam")
    parser.add_argument("--count", type=int, default=2000, help="how many transcripts")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first one")
    parser.add_argument("--show", type=int, default=5, help="how many disagreements to shrink and show")
    parser.add_argument("--out", type=Path, help="write the transcripts here, one a line")
    args = parser.parse_args()
    beam = Beam(args.beam_python)
    cases = [case(seed) for seed in range(args.seed, args.seed + args.count)]
    if args.out:
        args.out.write_text("".join(json.dumps(drawn) + "\n" for drawn in cases))
    differing = 0
    for number, drawn in enumerate(cases, start=args.seed):
        if difference(beam, drawn):
            differing += 1
            if differing <= args.show:
                small = shrunk(beam, drawn)
                print(f"seed {number}: {json.dumps(small)}\n{difference(beam, small)}")
    print(f"{len(cases)} transcripts, {differing} disagreements")
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
