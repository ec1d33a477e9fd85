"""Retractions whose row never came, which leave a step that knows rows by all their columns without a trace.

Guarded by tests/panes/rows/test_unmet.py.
"""

from __future__ import annotations

import logging

import numpy as np
import pyarrow as pa

from ..state.store import Store
from ..state.store_rows import StoreRows
from .options import EVENT_TIME, ROW

LOGGER = logging.getLogger("uncombine")

MOST_TOLD = 50
"""The most bundles of which a process tells."""

_LONGEST = 200

_told = 0


def without_due(step: str, store: Store, leaves: dict[str, int], diff: str | None) -> Store:
    """A store of rows without those that leave now; of a changelog the retractions among them are told."""
    if diff is not None:
        due = StoreRows.of(store, np.empty(0, np.uint32), leaves, store.schema)
        tell_unmet(step, due.where(np.asarray(due.read(["weight"])["weight"].to_numpy()) < 0).read())
    return store.without_due(leaves)


def tell_unmet(step: str, rows: pa.Table, weights: np.ndarray | None = None) -> None:
    """Tell in the log of retractions that leave; the log of a process has a sentence for each of 50 bundles.

    The rows are as they are stored, or as the step has them, with their weights.

    >>> tell_unmet("rolling", pa.table({"k": ["ada"]}), np.array([-2]))
    """
    global _told
    if not rows.num_rows or _told >= MOST_TOLD:
        return
    _told += 1
    if weights is None:
        weights = np.asarray(rows["weight"].to_numpy())
        rows = rows.select([name for name in rows.column_names if name.startswith(ROW)])
    count = -int(weights[weights < 0].sum())
    one = {name.removeprefix(ROW): value for name, value in rows.slice(0, 1).to_pylist()[0].items()}
    LOGGER.warning(
        "%s: %s no row and changed nothing, such as %s: a retraction equals its row in all columns (give the time of "
        "arrival as processing_time=, and select() the columns that are equal)",
        step,
        "1 retraction has met" if count == 1 else f"{count:,} retractions have met",
        ", ".join(f"{name}={value}" for name, value in one.items() if name != EVENT_TIME)[:_LONGEST],
    )


__all__ = ["tell_unmet", "without_due"]
