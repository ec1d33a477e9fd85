"""Random flows with broadcast rows over the rows of `row_steps`, for tests that run them in several ways."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
from row_steps import SECOND, draw_step

import uncombine as uc


class Ruled:
    """Emits rows less the shared total, and the totals of keys less it: for broadcast rows, and at last.

    The order of the rows of one key and time does not count: those of a step before come from several shards.
    """

    output = pa.schema({"id": pa.int64(), "x": pa.int64()})
    outputs = {"last": output}  # noqa: RUF012
    state = pa.schema({"x": pa.int64(), "rows": pa.int64()})
    shared = pa.schema({"x": pa.int64(), "rows": pa.int64()})
    timers = "event_time"

    def on_broadcast(self, row: dict[str, Any], shared: dict[str, Any], ctx: Any) -> None:
        shared["x"] = (shared["x"] or 0) + (row["x"] or 0) * ctx.diff
        shared["rows"] = (shared["rows"] or 0) + 1

    def on_broadcast_key(self, row: dict[str, Any], key: Any, state: dict[str, Any], ctx: Any) -> None:
        if (row["x"] or 0) % 3 == 0:
            ctx.emit({"id": -2, "x": state["x"] - ctx.shared["x"]})

    def on_row(self, row: dict[str, Any], state: dict[str, Any], ctx: Any) -> None:
        state["x"] = (state["x"] or 0) + (row["x"] or 0) * ctx.diff
        state["rows"] = (state["rows"] or 0) + 1
        if (row["x"] or 0) % 3 == 0:
            ctx.emit({"id": ctx.shared["rows"], "x": (row["x"] or 0) - (ctx.shared["x"] or 0)})
        ctx.set_timer("last", ctx.time + 60 * SECOND, "event")

    def on_timer(self, tag: str, ctx: Any) -> None:
        ctx.emit({"id": -1, "x": ctx.state["x"] - (ctx.shared["x"] or 0)}, to="last")


def ruled(keyed: uc.Flow, told: uc.Flow) -> uc.Flow:
    return keyed.process(by="k", function=Ruled, broadcast=told, outputs=Ruled.outputs)


def draw_flow(r: random.Random, sources: list[uc.Flow]) -> uc.Flow:
    """A step with broadcast rows over two sources, and what may come before and after it."""
    keyed, told = (draw_step(r, source) if r.random() < 0.4 else source for source in sources[:2])
    flow = ruled(keyed, told)
    if r.random() < 0.4:
        flow = flow.output("last")
    return draw_step(r, flow) if r.random() < 0.5 else flow


def draw_alone(r: random.Random, sources: list[uc.Flow]) -> uc.Flow:
    """A step with broadcast rows over two sources, and its rows or those of an output."""
    flow = ruled(*sources[:2])
    return flow.output("last") if r.random() < 0.5 else flow
