"""One evaluation: the triggers of some windows in hand are asked, and some of the windows fire."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from ...triggers import truth
from ...triggers.leaf_nodes import PercentileNode
from ...triggers.program import Deadlines, Moment, where
from .clocks import Clocks
from .compiled import Compiled
from .contents import contents
from .emit import cleared
from .pane_rows import Firing
from .rows import Rows
from .take_in import TakenIn
from .values import values_of
from .windows_in_hand import InHand


def evaluate(
    compiled: Compiled, clocks: Clocks, windows: InHand, moment: Moment, asked: np.ndarray
) -> tuple[InHand, Firing | None]:
    """Ask the triggers of some windows. Gives the windows with the new state of their triggers, and the firing.

    The windows given are used up: a trigger changes its columns in place, as a copy of all of them would take long.
    """
    trigger = compiled.trigger
    asked = asked & ~trigger.done(windows.trigger)
    if not asked.any():
        return windows, None
    state = windows.trigger
    if moment.phase == "rows":
        trigger.on_rows(state, asked, moment)
        asked &= ~trigger.done(state)
    trigger.observe(state, asked, moment)
    fired = trigger.would_fire(state, moment) & asked
    fires = bool(fired.any())
    if fires:
        nothing = np.zeros(len(windows), np.bool_)
        requests = {"clear": nothing, "accumulate": nothing.copy()}
        moment = replace(moment, requests=requests)
        trigger.fire(state, fired, moment)
    if trigger.ends_unseen and asked.any():
        trigger.settle(state, asked, moment)
    return windows, _firing(compiled, clocks, windows, moment, fired) if fires else None


def _firing(compiled: Compiled, clocks: Clocks, windows: InHand, moment: Moment, fired: np.ndarray) -> Firing:
    last = np.zeros(len(windows), np.bool_)
    if compiled.grouping.closing != "always":
        last |= compiled.trigger.done(windows.trigger)
        if moment.phase == "watermark" and not clocks.each_batch:
            last |= compiled.expiry(windows.num["end"]) <= clocks.after
    return Firing(
        moment.phase,
        moment.watermark,
        clocks.now,
        clocks.output_watermark,
        fired,
        last,
        cleared(compiled.grouping.mode, moment.requests),
        clocks.percentiles(compiled, moment.phase == "watermark"),
        moment.requests.get("tags"),
    )


def rows_moment(compiled: Compiled, clocks: Clocks, taken: TakenIn, rows: Rows) -> Moment:
    """The moment at which the triggers of windows that got rows are asked."""
    windows = taken.windows

    def result(predicate: Any, mask: np.ndarray) -> np.ndarray:
        """True where a predicate holds for the results of a window of the mask."""
        places = np.flatnonzero(mask)
        chosen = windows.take(places)
        names = [*compiled.grouping.by, *compiled.plan.compiled]
        acc = contents(compiled, chosen, np.arange(len(chosen)))
        table = pa.table([*chosen.keys, *compiled.plan.extract(acc)], names=names)
        held = np.zeros(len(mask), np.bool_)
        held[places] = truth(predicate, table)
        return held

    return clocks.moment(
        "rows",
        windows.num,
        got=taken.got,
        born=taken.born,
        facts=taken.facts,
        result=result,
        values=values_of(compiled, windows),
        arrivals=taken.arrivals(rows),
    )


def percentiles_begin(compiled: Compiled, clocks: Clocks, windows: InHand) -> InHand:
    """The windows with the percentiles of the watermark back at the beginning of time; those given are used up."""
    moment = clocks.moment("rows", windows.num)
    for node in compiled.trigger.nodes():
        if isinstance(node, PercentileNode):
            node.begin(windows.trigger, np.ones(len(windows), np.bool_), moment)
    return windows


def deadlines(compiled: Compiled, windows: InHand, domain: str, moment: Moment) -> Deadlines:
    """The reading of a clock at which the trigger of each window must be asked next."""
    trigger, state = compiled.trigger, windows.trigger
    return where(~trigger.done(state), trigger.deadline(state, domain, moment))
