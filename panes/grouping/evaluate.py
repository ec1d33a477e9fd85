"""One evaluation: the triggers of some windows in hand are asked, and some of the windows fire."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from ...triggers import truth
from ...triggers.leaf_nodes import PercentileNode
from ...triggers.program import Deadlines, Moment, where
from ...windows.times import MIN_TIME
from .admission import Admission
from .clocks import Clocks
from .compiled import CompiledGrouping
from .contents import contents
from .emit import cleared
from .loaded_windows import LoadedWindows
from .pane_rows import FiringWindows
from .rows import Rows
from .values import values_of


def evaluate(
    compiled: CompiledGrouping, clocks: Clocks, windows: LoadedWindows, moment: Moment, mask: np.ndarray
) -> tuple[LoadedWindows, FiringWindows | None]:
    """Ask the triggers of some windows. Gives the windows with the new state of their triggers, and the firing.

    The windows given are used up: a trigger changes its columns in place, as a copy of all of them would take long.
    """
    trigger = compiled.trigger
    mask = mask & ~trigger.done(windows.trigger)
    if not mask.any():
        return windows, None
    state = windows.trigger
    if moment.phase == "rows":
        trigger.on_rows(state, mask, moment)
        mask &= ~trigger.done(state)
    trigger.observe(state, mask, moment)
    fired = trigger.would_fire(state, moment) & mask
    fires = bool(fired.any())
    if fires:
        nothing = np.zeros(len(windows), np.bool_)
        requests = {"clear": nothing, "accumulate": nothing.copy()}
        moment = replace(moment, requests=requests)
        trigger.fire(state, fired, moment)
    if trigger.ends_unseen and mask.any():
        trigger.settle(state, mask, moment)
    return windows, _firing(compiled, clocks, windows, moment, fired) if fires else None


def _firing(
    compiled: CompiledGrouping, clocks: Clocks, windows: LoadedWindows, moment: Moment, fired: np.ndarray
) -> FiringWindows:
    last = np.zeros(len(windows), np.bool_)
    if compiled.grouping.closing != "always":
        last |= compiled.trigger.done(windows.trigger)
        if moment.phase == "watermark" and not clocks.each_batch:
            last |= compiled.expiry(windows.num["end"]) <= clocks.after
    return FiringWindows(
        cause=moment.phase,
        watermark=moment.watermark,
        processing_time=clocks.now,
        output_watermark=clocks.output_watermark,
        fired=fired,
        last=last,
        cleared=cleared(compiled.grouping.mode, moment.requests),
        percentiles=clocks.percentiles(compiled, moment.phase == "watermark"),
        tags=moment.requests.get("tags"),
    )


def rows_moment(compiled: CompiledGrouping, clocks: Clocks, admission: Admission, rows: Rows) -> Moment:
    """The moment at which the triggers of windows that got rows are asked."""
    windows = admission.windows

    def result(predicate: Any, mask: np.ndarray) -> np.ndarray:
        """True where a predicate holds for the results of a window of the mask."""
        places = np.flatnonzero(mask)
        chosen = windows.take(places)
        names = [*compiled.grouping.by, *compiled.plan.compiled]
        acc = contents(compiled, chosen, np.arange(len(chosen)))
        table = pa.table([*chosen.keys, *compiled.results(chosen.num["start"], acc)], names=names)
        truths = np.zeros(len(mask), np.bool_)
        truths[places] = truth(predicate, table)
        return truths

    return clocks.moment(
        "rows",
        windows.num,
        got=admission.got,
        born=admission.born,
        facts=admission.facts,
        result=result,
        values=values_of(compiled, windows),
        arrivals=admission.arrivals(rows),
    )


def percentiles_begin(compiled: CompiledGrouping, clocks: Clocks, windows: LoadedWindows) -> LoadedWindows:
    """The windows, armed for the percentiles that are at the beginning of time; those given are used up.

    With a watermark of each batch they are there before each bundle, and before the end of the input.
    """
    if not compiled.percents:
        return windows
    moment = clocks.moment("rows", windows.num)
    for node in compiled.trigger.nodes():
        if isinstance(node, PercentileNode) and moment.percentile(node.percent) == MIN_TIME:
            node.begin(windows.trigger, np.ones(len(windows), np.bool_), moment)
    return windows


def deadlines(compiled: CompiledGrouping, windows: LoadedWindows, domain: str, moment: Moment) -> Deadlines:
    """The reading of a clock at which the trigger of each window must be asked next."""
    trigger, state = compiled.trigger, windows.trigger
    return where(~trigger.done(state), trigger.deadline(state, domain, moment))
