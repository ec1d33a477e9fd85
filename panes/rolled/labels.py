"""Rows of two kinds as one input of `rolling`: labels, which see and are given, and events, which are seen.

The rows have the columns of the labels, those of the events that are read under names with a prefix, and one that says
which is which.

Guarded by tests/panes/rolled/test_labels.py and tests/flows/test_join_rolling.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from ...combiners.plan import Plan
from ...combiners.rows.columns import flat
from ...lookbacks.known import labelled
from ...lookbacks.lookback import LookBack
from ...lookbacks.results import sorted_table
from ...lookbacks.sorted_rows import SortedRows

SEEN = "seen."
"""The beginning of the names of all columns that a label does not have."""

IS_LABEL = SEEN + "is_label"
KNOWN = SEEN + "known"
"""The instant from which on an event is seen."""

COLUMN = SEEN + "column."
"""The beginning of the names of the columns of an event."""


def event_schema(rows: pa.Schema) -> pa.Schema:
    """The columns of an event, by their own names."""
    return pa.schema([field.with_name(field.name.removeprefix(COLUMN)) for field in rows if _is_event(field.name)])


def label_names(names: Sequence[str]) -> list[str]:
    """The columns of a label."""
    return [name for name in names if not name.startswith(SEEN)]


def results_of_labels(
    plan: Plan,
    lookbacks: Mapping[str, LookBack],
    min_rows: int,
    rows: pa.Table,
    sorted_rows: SortedRows,
    places: np.ndarray,
) -> list[pa.Array]:
    """The results of the labels at some places of rows that are sorted already, by look-back and combiner."""
    is_label = np.asarray(flat(rows[IS_LABEL]).to_numpy(zero_copy_only=False)).astype(np.bool_)
    wanted = np.zeros(len(is_label), np.bool_)
    wanted[places] = True
    at = np.flatnonzero(~is_label)
    names = [name for name in rows.column_names if _is_event(name)]
    table = rows.select(names).rename_columns([name.removeprefix(COLUMN) for name in names])
    events, known = sorted_table(table, plan.columns, at), None
    if KNOWN in rows.column_names:
        known = np.asarray(flat(rows[KNOWN]).cast(pa.int64()).take(pa.array(at)))
    return labelled(plan, events, sorted_rows.where(~is_label), sorted_rows.where(wanted), lookbacks, known, min_rows)


def _is_event(name: str) -> bool:
    return name.startswith(COLUMN)


__all__ = ["COLUMN", "IS_LABEL", "KNOWN", "SEEN", "event_schema", "label_names", "results_of_labels"]
