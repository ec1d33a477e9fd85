"""The law of whole groups: the result of a UDF that sees all rows of a group once.

Guarded by tests/combiners/test_whole.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ...errors import OutOfRange
from ..combiner import Bound
from ..rows.groups import Groups
from .cases import Case
from .guard import TooLarge


def whole_groups(case: Case) -> None:
    """`Bound.whole` gives the result of `add` and `extract`, to the last bit, in either form of the combiner."""
    for fn in (case.subject.fn, case.subject.append_only):
        if isinstance(fn, Bound):
            for name, rows in (("a", case.a), ("a and b and c", case.a + case.b + case.c), ("no rows", [])):
                columns = dict(zip(case.subject.columns, case.subject.arrays(rows), strict=True))
                _same_result(case, fn, name, [columns[name] for name in fn.columns], len(rows))


def _same_result(case: Case, fn: Bound, name: str, columns: list[pa.Array], rows: int) -> None:
    def by_steps() -> pa.Scalar:
        return fn.extract(fn.add(Groups.single(rows), *columns))[0]

    expected = _shown(case, "extract", by_steps)
    result = _shown(case, "whole", lambda: fn.whole(columns or [pa.nulls(rows)]))
    if result != expected:
        case.fail(f"whole({name})", result, f"extract(add({name}))", expected)


def _shown(case: Case, operation: str, result: Callable[[], Any]) -> str:
    """A result with its type; texts of floats tell all of them apart, and -0.0 from 0.0."""
    try:
        value = case.fn.run(operation, result)
    except (TooLarge, OutOfRange):
        return "out of range"
    return f"{value.as_py()!r} ({value.type})"
