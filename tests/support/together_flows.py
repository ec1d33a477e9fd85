"""Random flows that share sources and steps, to be run as one."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from broadcast_flows import draw_alone
from row_steps import SCHEMA, SECOND, draw_flow, draw_rows, draw_step, ledger, script_of

import uncombine as uc
from uncombine.flows.graph import graph_together


def plain_source(name: str, options: dict[str, Any]) -> uc.Flow:
    return uc.flow(SCHEMA, name=name, watermark="1 minute", **options)


class Reminder:
    """Emits the latest row of each key again a minute of processing time after a row.

    The order of the rows of one key and time does not count: those of a step before come from several shards.
    """

    output = pa.schema({"id": pa.int64(), "x": pa.int64()})
    state = pa.schema({"at": pa.int64(), "id": pa.int64(), "x": pa.int64()})

    def on_row(self, row: dict[str, Any], state: dict[str, Any], ctx: Any) -> None:
        found = {"at": ctx.time, "id": row["id"] or 0, "x": row["x"] or 0}
        if state["at"] is None or tuple(found.values()) > (state["at"], state["id"], state["x"]):
            state |= found
        ctx.set_timer("again", ctx.processing_time + 60 * SECOND, "processing")

    def on_timer(self, tag: str, ctx: Any) -> None:
        ctx.emit({"id": ctx.state["id"], "x": ctx.state["x"]})


def waiting(r: random.Random, flow: uc.Flow) -> uc.Flow:
    """A step that shows what it has a minute of processing time later, of which the rows of any source tell."""
    if r.random() < 0.5:
        return flow.process(by="k", function=Reminder)
    sums = flow.window("5 minutes", uc.Repeatedly(uc.AfterDelay("1 minute"))).combine(by=["k", "id"], x=uc.Sum("x"))
    return sums.select("k", "id", "x", "event_time", "diff")


def tables_together(
    seed: int, source: Callable[[str, dict[str, Any]], uc.Flow] = plain_source, steps_alone: bool = False
) -> tuple[dict[str, uc.Flow], dict[str, pa.Table]]:
    """Two to five flows over one to three sources, which share some of their steps, and the rows of the sources.

    With `steps_alone` none of them gives the rows of a source.
    """
    r = random.Random(seed)
    weighted = r.random() < 0.5
    names = ["a", "b", "c"][: r.randrange(1, 4)]
    options = {"processing_time": "seen", "diff": "w" if weighted else None}
    roots = [source(name, options) for name in names]
    grown = list(roots)
    for _ in range(r.randrange(3)):
        grown.append(draw_step(r, r.choice(grown)))
    if r.random() < 0.4:
        grown += ledger(r.choice(grown))
    if len(roots) > 1 and r.random() < 0.4:
        grown.append(draw_alone(r, [r.choice(grown), r.choice(roots)]))
    flows = {}
    for place in range(r.randrange(2, 5)):
        base = r.choice(grown)
        if r.random() < 0.5:
            base = base.where(uc.col("x") > r.choice([5, 20]))
        others = [] if r.random() < 0.7 else [r.choice(roots)]
        own = draw_flow(random.Random(2 * seed + r.randrange(2)), [base, *others])  # the same steps in some of them
        whole = r.random() < 0.8 or (steps_alone and not base.stages)
        flows[f"flow {place}"] = own if whole else base
    if len(roots) > 1 and r.random() < 0.5:
        flows["waiting"] = waiting(r, r.choice(grown))
    read = {leaf.settings.name for leaf in graph_together(list(flows.values())).leaves}
    tables = {name: draw_rows(r, weighted, place) for place, name in enumerate(names) if name in read}
    tables = {name: rows.slice(0, r.choice([3, 12])) for name, rows in tables.items()}  # some sources end early
    return flows, tables


def drawn_together(seed: int) -> tuple[dict[str, uc.Flow], list[Any]]:
    """Such flows, and a script of their rows."""
    flows, tables = tables_together(seed)
    return flows, script_of(tables)
