"""Combiners as people write them: `WRONG` ones, each with a fault that the law kit must find, and `RIGHT` ones.

Each entry is what `check_laws` is given: the combiner and its named arguments.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import uncombine as uc

Given = tuple[Any, dict[str, Any]]

LONG, DOUBLE, TEXT, FLAG = pa.int64(), pa.float64(), pa.string(), pa.bool_()
GROUP, CANCELLATIVE, MONOID = uc.Capability.GROUP, uc.Capability.CANCELLATIVE, uc.Capability.MONOID


def struct(**fields: pa.DataType) -> pa.DataType:
    """A struct type."""
    return pa.struct(list(fields.items()))


def scalar(
    name: str,
    create: Any,
    add: Any,
    merge: Any,
    extract: Any,
    state: Any,
    output: Any,
    uncombine: Any = None,
    **more: Any,
) -> Any:
    """A `from_scalar` in one line."""
    return uc.from_scalar(
        name, create=create, add=add, merge=merge, extract=extract, uncombine=uncombine,
        accumulator=state, output=output, **more,
    )  # fmt: skip


def itself(state: Any) -> Any:
    """For `extract`, where the state is the result."""
    return state
