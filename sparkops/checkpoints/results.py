"""The results that stored windows have now, by the combiners in the fingerprint of their step.

A fingerprint has combiners as text. What a user has written cannot be read back from it, so such a step has no results
here; nor has a window with large contents, which are stored beside it.

Guarded by tests/sparkops/checkpoints/test_contents.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...combiners import Combiner, Plan
from ...combiners.read_repr import read_combiner
from ...combiners.rows.columns import flat
from ...combiners.rows.type_names import type_named
from ...errors import UncombineError


def results_now(
    table: pa.Table, made_by: Mapping[str, Any], unknown: np.ndarray, since: Mapping[str, int]
) -> dict[str, pa.StructArray]:
    """The column `results` of stored windows, with a field a combiner and null where it is unknown; none if all are.

    `since` has the start of the first windows of which a combiner that was added later has all rows.
    """
    stored = [flat(table[name]) for name in table.column_names if name.startswith("acc.")]
    combiners = {name: read_combiner(text) for name, text in made_by.get("combiners", ())}
    known = {name: combiner for name, combiner in combiners.items() if combiner is not None}
    if not known or len(known) < len(combiners):
        return {}
    for append_only in (False, True):
        plan = _plan(known, made_by, append_only)
        if plan is not None and [one.type for one in plan.fields] == [one.type for one in stored]:
            results = plan.extract(tuple(stored))
            start = np.asarray(table["num.start"])
            for at, name in enumerate(known):
                if name in since:
                    results[at] = pc.if_else(pa.array(start < since[name]), None, results[at])
            return {"results": pa.StructArray.from_arrays(results, names=list(known), mask=pa.array(unknown))}
    return {}


def _plan(combiners: Mapping[str, Combiner], made_by: Mapping[str, Any], append_only: bool) -> Plan | None:
    types = {name: type_named(text) for name, text in [*made_by.get("by", ()), *made_by.get("reads", ())]}
    try:
        return Plan(combiners, pa.schema({name: kind for name, kind in types.items() if kind is not None}), append_only)
    except UncombineError:  # it reads a column whose type has no text of its own
        return None


__all__ = ["results_now"]
