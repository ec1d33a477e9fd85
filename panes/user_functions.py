"""Calls of functions of users, which get Arrow tables: one written for a DataFrame of pandas is refused in a sentence.

Guarded by tests/panes/test_hints.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from ..errors import TypeMismatch

_ARROW = (pa.Table, pa.Array, pa.ChunkedArray)


def called(function: Callable[[pa.Table], Any], table: pa.Table, who: str) -> Any:
    """The result of a function of a table, which was given to `who`."""
    with takes_arrow(function, who):
        return function(table)


@contextmanager
def takes_arrow(function: object, who: str) -> Iterator[None]:
    """Explain the error of a function that uses an Arrow table as if it were a DataFrame of pandas."""
    try:
        yield
    except (AttributeError, TypeError) as error:
        if not _is_about_arrow(error):
            raise
        name = getattr(function, "__name__", repr(function))
        raise TypeMismatch(
            f"{who} calls {name} with an Arrow table, not with a pandas DataFrame ({error}): write an expression of "
            f"uc.col, or begin the function with table.to_pandas()"
        ) from error


def _is_about_arrow(error: AttributeError | TypeError) -> bool:
    if isinstance(error, AttributeError):
        return isinstance(error.obj, _ARROW) or "'pyarrow.lib." in str(error)
    return not isinstance(error, TypeMismatch) and "'pyarrow.lib." in str(error)


__all__ = ["called", "takes_arrow"]
