"""Windows hand on to the windows that come of them: pane numbers, the trigger's state and outstanding panes.

Guarded by tests/panes/grouping/test_rules.py and test_reference.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from .cells import Pairs
from .clocks import Clocks
from .compiled import CompiledGrouping
from .loaded_windows import LoadedWindows
from .values import merged_values, values_of

_IDENTITY = ("index", "nonspeculative", "born_late", "on_time_given")
"""Numbers that a window of the same bounds keeps. A session that grows is a new window, whose numbers start again."""


def carry_over(
    compiled: CompiledGrouping,
    windows: LoadedWindows,
    lineage: Pairs,
    keys: Sequence[pa.Array],
    start: np.ndarray,
    end: np.ndarray,
    clocks: Clocks,
) -> LoadedWindows:
    """New windows with these keys and bounds, and everything of the windows that they come of but the contents in hand.

    `lineage` has pairs (old window, new window). Every old window is in at least one. Windows that split hand their
    outstanding panes to the first of theirs.
    """
    shape, trigger, count = compiled.shape, compiled.trigger, len(start)
    num = shape.first_numbers(count, {"start": start, "end": end, "born_late": clocks.before >= end})
    state, outstanding, deposits = shape.first_trigger(count), shape.none_outstanding(count), windows.deposits
    moment = clocks.moment("rows", num)
    trigger.begin(state, np.ones(count, np.bool_), moment)
    old, new = lineage
    if len(old):
        same = (windows.num["start"][old] == start[new]) & (windows.num["end"][old] == end[new])
        for name in _IDENTITY:
            num[name][new[same]] = windows.num[name][old[same]]
        num["fresh"][new[windows.num["fresh"][old]]] = True
        alone = (np.bincount(old)[old] == 1) & (np.bincount(new)[new] == 1)
        plain = same & alone
        was, becomes = old[plain], new[plain]
        for name, column in state.items():
            column[becomes] = windows.trigger[name][was]
        if len(was) < len(old):
            was, becomes = old[~plain], new[~plain]
            sources = {name: column[was] for name, column in windows.trigger.items()}
            before = clocks.moment("rows", windows.num, values=values_of(compiled, windows)).at(was)
            values = merged_values(compiled, windows, was, becomes)
            moment = replace(moment, values=values, sources=before)
            trigger.merge(sources, state, becomes, np.ones(len(was), np.bool_), moment)
        if windows.outstanding is not None or deposits is not None:
            heir = np.empty(len(windows), np.int64)
            heir[old[::-1]] = new[::-1]  # of several pairs the first
            outstanding = None if windows.outstanding is None else windows.outstanding.regrouped(heir, count)
            deposits = None if deposits is None else deposits.regrouped(heir)
    none = tuple(pa.array([], field.type) for field in shape.acc_fields)
    return LoadedWindows(keys=list(keys), num=num, trigger=state, acc=none, outstanding=outstanding, deposits=deposits)
