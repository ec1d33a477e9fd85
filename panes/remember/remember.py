"""The options of `map` and `flat_map` with `remember=True`, checked when they are built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...errors import InvalidArgument
from ..rows.options import RowOptions


@dataclass(frozen=True, repr=False)
class Remember(RowOptions):
    """A function of the user whose results are remembered as long as their rows may be retracted.

    Parameters
    ----------
    function
        A function from Arrow table to Arrow table or pandas DataFrame. It gets the new rows of a bundle, and is called
        once without rows to learn its columns.
    flat
        False for `map`: the result has one row for each row, in their order. True for `flat_map`: the result has a
        column with the place of the row that each of its rows is made from.
    places
        The name of this column.

    Examples
    --------
    >>> from uncombine.panes.remember.remember import Remember
    >>> Remember(lambda table: table).step
    'map(remember=True)'
    """

    function: Callable[[pa.Table], Any]
    flat: bool = False
    places: str = "row"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.function):
            raise InvalidArgument(f"{self.step} takes a function of an Arrow table, not {self.function!r}")

    @property
    def step(self) -> str:
        """The name of the step in messages."""
        return f"{'flat_map' if self.flat else 'map'}(remember=True)"


__all__ = ["Remember"]
