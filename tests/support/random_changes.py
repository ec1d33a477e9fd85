"""Random flows as lists of choices, so that a changed flow is one with another choice."""

from __future__ import annotations

import random
from typing import Any

import flow_changes
import pyarrow as pa
from streams import START

import uncombine as uc

col = uc.col

CHOICES: dict[str, list[Any]] = {
    "diff": [None, "d"],
    "time": ["ts", "at"],
    "first": [
        None,
        ("where", 1),
        ("where", 2),
        ("map", 2),
        ("map", 3),
        ("v", 2),
        ("v", 3),
        ("unused", 1),
        ("unused", 2),
        ("text", 1),
        ("text", 2),
        ("every", "1 second"),
        ("every", "2 seconds"),
    ],
    "key": ["k", "j", ("part", 2), ("part", 3)],
    "window": ["10 seconds", "20 seconds"],
    "gap": [None, None, "5 seconds", "7 seconds"],
    "kind": ["plain", "plain", "early", "each"],
    "combiner": ["sum", "max", "own", "own"],
    "number": [2, 3],
    "between": [None, ("where", 0), ("where", 1), ("m", 2), ("m", 3)],
    "second": [False, False, True],
    "last": [None, ("where", 1), ("where", 2), ("m", 2), ("m", 3)],
}
"""The choices of a flow, each under its name."""


def drawn(rng: random.Random) -> dict[str, Any]:
    """A flow."""
    return {name: rng.choice(values) for name, values in CHOICES.items()}


def changed(choices: dict[str, Any], seed: int, rng: random.Random) -> dict[str, Any]:
    """The flow with another choice of one name, each name in turn; sometimes with two, or with none."""
    names = [list(CHOICES)[seed % len(CHOICES)], *rng.sample(list(CHOICES), rng.choice([0, 0, 0, 1]))]
    if rng.random() < 0.1:
        return choices
    return choices | {name: rng.choice([v for v in CHOICES[name] if v != choices[name]]) for name in names}


def made(choices: dict[str, Any], source: Any) -> uc.Flow:
    """The flow of these choices."""
    flow = source(time=choices["time"], diff=choices["diff"])
    flow = _first(flow, choices["first"])
    key = choices["key"]
    if isinstance(key, tuple):
        flow, key = flow.with_columns(part=col("id") % key[1]), "part"
    window = uc.Fixed(choices["window"]) if choices["gap"] is None else uc.Sessions(choices["gap"])
    options: dict[str, Any] = {"allowed_lateness": "1 minute"}
    if choices["kind"] != "plain":
        early = uc.AfterCount(1)
        trigger = uc.AfterWatermark(early=early, late=early) if choices["kind"] == "early" else uc.Repeatedly(early)
        options |= {"trigger": trigger, "mode": "retracting"}
    combiner = {"sum": uc.Sum("v"), "max": uc.Max("v")}.get(choices["combiner"])
    combiner = flow_changes.product(choices["number"]) if combiner is None else combiner
    flow = flow.window(window, **options).combine(by=key, n=uc.Count(), most=combiner)
    if choices["second"]:
        flow = _step(flow, choices["between"]).window(uc.Fixed("1 minute")).combine(n=uc.Sum("n"), most=uc.Count())
    return _step(flow, choices["last"])


def _first(flow: uc.Flow, step: Any) -> uc.Flow:
    match step:
        case ("where", bound):
            return flow.where(col("v") > bound)
        case ("map", factor):
            return flow.map(flow_changes.scaled(factor))
        case ("v", factor):
            return flow.with_columns(v=col("v") * factor)
        case ("text", length):
            return flow.with_columns(v=col("v") + col("k").str.slice(0, length).str.len_chars())
        case ("every", every):
            return flow.with_columns(v=col("v") + (col("at") - col("at").dt.truncate(every)) // uc.span("1 us"))
        case ("unused", factor):
            return flow.with_columns(unused=col("v") * factor)
    return flow


def _step(flow: uc.Flow, step: Any) -> uc.Flow:
    match step:
        case ("where", bound):
            return flow.where(col("n") > bound)
        case ("m", factor):
            return flow.with_columns(most=col("most") * factor)
    return flow


def filters(choices: dict[str, Any]) -> Any:
    """The filters of a flow that may change while its state goes on, if they do."""
    between = choices["between"] if choices["second"] else None
    return [step if step is not None and step[0] == "where" else None for step in (choices["first"], between)]


def batches(rng: random.Random) -> list[pa.Table]:
    """Micro-batches of rows, with some late ones, and retractions of rows that came before."""
    out, sent = [], list[dict[str, Any]]()
    for batch in range(4):
        rows = list[dict[str, Any]]()
        for _ in range(rng.randrange(1, 7)):
            if sent and rng.random() < 0.2:
                rows.append({**sent.pop(rng.randrange(len(sent))), "d": -1})
                continue
            time = START + (batch * 8 + rng.randrange(-6, 9)) * 1_000_000
            row = {"id": rng.randrange(6), "k": rng.choice("ab"), "j": rng.choice("xy"), "v": rng.randrange(4), "d": 1}
            rows.append({**row, "ts": time, "at": time + 3_000_000, "gap": 5_000_000})
            sent.append(rows[-1])
        out.append(pa.Table.from_pylist(rows, flow_changes.SCHEMA))
    return out
