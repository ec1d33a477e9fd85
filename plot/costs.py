"""The costs of triggers, from the panes of a replay of each: the wait for results against panes and corrections.

Guarded by tests/plot/test_plot.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ..combiners.aggregate import weights_of
from ..combiners.rows.columns import flat
from ..combiners.rows.groups import group_rows
from ..combiners.rows.key_codes import normal_keys
from ..errors import InvalidArgument
from ..windows import time_column
from .picture_data import check_panes, keys_of, table_of


def trigger_costs(results: Mapping[str, Any]) -> pa.Table:
    """The costs of triggers, from the panes that each gave for the same rows.

    A result waits from its event time (the end of its window, if not said otherwise) to the processing time of its
    pane. A wait below zero is an early pane.

    Parameters
    ----------
    results
        For each trigger the panes of a run or of a replay, in any form that `uc.plot.panes` takes.

    Returns
    -------
    pyarrow.Table
        A row for each trigger: `windows`, `panes` and `corrections` (panes after the first of a window), `first_wait`
        and `last_wait` (the means of the waits for the first and the last pane of a window, in seconds).

    Examples
    --------
    >>> import uncombine as uc
    >>> times = [10_000_000 * i for i in range(12)]
    >>> script = [uc.Elements([{"ts": time, "x": 1}], at=time) for time in times]
    >>> script += [uc.Watermark(120_000_000, at=130_000_000)]
    >>> early = uc.AfterWatermark(early=uc.AtPeriod("30 s"))
    >>> triggers = {"at the end": uc.AfterWatermark(), "each 30 s": early}
    >>> def run(trigger):
    ...     minutes = uc.flow(script).window("1 minute", trigger, "retracting")
    ...     return minutes.combine(n=uc.Count()).run()
    >>> runs = {name: run(trigger) for name, trigger in triggers.items()}
    >>> for row in uc.trigger_costs(runs).to_pylist():
    ...     print(row["trigger"], row["panes"], row["corrections"])
    at the end 2 0
    each 30 s 6 4
    """
    if not isinstance(results, Mapping) or not results:
        raise InvalidArgument(
            "trigger_costs() takes a dict of panes by the name of their trigger, such as {'early': ...}"
        )
    rows = [{"trigger": str(name), **_costs(str(name), table_of(result))} for name, result in results.items()]
    return pa.Table.from_pylist(rows)


def _costs(name: str, table: pa.Table) -> dict[str, Any]:
    check_panes(table)
    shown = table.filter(pa.array(weights_of(table, "diff") > 0))
    pane, window = flat(shown["pane"]), flat(shown["window"])
    at, valid = time_column(pane.field("processing_time"))
    if not valid.all():
        raise InvalidArgument(f"the panes of {name!r} have no processing time: replay them, or give at= in the script")
    due, _ = time_column(flat(shown["event_time"]))
    parts = [normal_keys(flat(shown[key])) for key in keys_of(shown)]
    groups, first = group_rows([*parts, window.field("start").cast(pa.int64())], shown.num_rows)
    count, waits = len(first), (at - due) / 1e6
    least, most = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(least, groups.codes, waits)
    np.maximum.at(most, groups.codes, waits)
    return {
        "windows": count,
        "panes": shown.num_rows,
        "corrections": shown.num_rows - count,
        "first_wait": float(least.mean()) if count else None,
        "last_wait": float(most.mean()) if count else None,
    }


__all__ = ["trigger_costs"]
