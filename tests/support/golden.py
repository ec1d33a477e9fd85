"""The ten data of "Streaming 102" as scripts, with the panes that were published for them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from opened import run_script

import uncombine as uc

NAMES = ("Fixed", "Sessions", "Global", "AfterWatermark", "AtPeriod", "AfterCount", "Repeatedly")
KEYS = ("a", "b", "c")


@dataclass(frozen=True)
class Case:
    """One golden case: a script, the options of the grouping, and what must come out."""

    name: str
    script: list[Any]
    options: dict[str, Any]
    panes: list[dict[str, Any]]
    dropped: int | None
    final_only: bool
    by_key: bool

    def run(self) -> pa.Table:
        return run_script(self.script, sum=uc.Sum("value"), **self.options)


def cases(keyed: bool = False) -> list[Case]:
    """All cases, as written or with every datum once under each of three keys."""
    found = json.loads((Path(__file__).parents[1] / "data" / "streaming102.json").read_text())
    return [_case(spec, keyed) for spec in found]


def _case(spec: dict[str, Any], keyed: bool) -> Case:
    engine = spec.get("engine", "stream")
    options = {
        "window": _value(spec["window"]),
        "trigger": _value(spec["trigger"]),
        "mode": spec["mode"],
        "allowed_lateness": spec["allowed_lateness"],
        "time": "event_time",
        "by": ["key"] if keyed else [],
    }
    if "on_time" in spec:
        options["on_time"] = spec["on_time"]
    if engine == "batch":
        script: list[Any] = [uc.Elements(_rows(spec["data"], keyed)), uc.Watermark(None)]
    elif engine == "micro_batch_1_minute":
        options["watermark"] = "each_batch"
        script = _minutes(spec, keyed)
    else:
        script = _stream(spec, keyed)
    return Case(spec["name"], script, options, spec["panes"], spec.get("dropped"), engine == "batch", keyed)


def _stream(spec: dict[str, Any], keyed: bool) -> list[Any]:
    ingress = spec.get("watermark") == "IngressTime()"
    timed: list[tuple[str, int, list[Any]]] = []
    for datum in spec["data"]:
        row = {**datum, "event_time": datum["processing_time"]} if ingress else datum
        timed.append((datum["processing_time"], 0, [uc.Elements(_rows([row], keyed), at=datum["processing_time"])]))
    for mark in spec["watermarks"]:
        entries = [uc.Clock(mark["processing_time"]), uc.Watermark(mark["watermark"])]
        timed.append((mark["processing_time"], 1, entries))
    script = [entry for _, _, entries in sorted(timed, key=lambda t: t[:2]) for entry in entries]
    return [*script, uc.Clock(spec["end_processing_time"])]


def _minutes(spec: dict[str, Any], keyed: bool) -> list[Any]:
    ends = sorted({_next_minute(datum["processing_time"]) for datum in spec["data"]})
    return [
        uc.Elements(_rows([d for d in spec["data"] if _next_minute(d["processing_time"]) == end], keyed), at=end)
        for end in ends
    ]


def _next_minute(time: str) -> str:
    hour, minute = time[11:13], int(time[14:16])
    return f"{time[:11]}{hour}:{minute + 1:02d}:00Z"


def _rows(data: list[dict[str, Any]], keyed: bool) -> list[dict[str, Any]]:
    rows = [{"value": d["value"], "event_time": d["event_time"]} for d in data]
    return [{**row, "key": key} for row in rows for key in KEYS] if keyed else rows


def _value(text: str) -> Any:
    return eval(text, {name: getattr(uc, name) for name in NAMES})


def seen(case: Case, result: pa.Table, key: str | None) -> list[dict[str, Any]]:
    """The panes of one key in the form of the golden file."""
    rows = [row for row in result.to_pylist() if key is None or row["key"] == key]
    out: list[dict[str, Any]] = []
    at = None
    for row in reversed(rows):  # a retraction has the time of the pane that follows it
        if row["diff"] == 1:
            at = row["pane"]["processing_time"]
        window = row["window"]
        pane = {"window": None if window is None else [_text(window["start"]), _text(window["end"])], "sum": row["sum"]}
        pane["diff"] = row["diff"]
        if not case.final_only:
            pane["at"] = _text(at)
            if row["diff"] == 1:
                pane["timing"] = row["pane"]["timing"]
        out.append(pane)
    return out[::-1]


def _text(time: Any) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
