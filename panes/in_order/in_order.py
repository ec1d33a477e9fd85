"""The options of `in_order`, checked when they are built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..rows.options import Columns, RowOptions, key_columns, require_keys


@dataclass(frozen=True, repr=False)
class InOrder(RowOptions):
    """Rows that are held until no earlier row can come, and are then given in the order of event time.

    Parameters
    ----------
    by
        The key columns: the rows of each key are in order. Without any, all rows are.

    Examples
    --------
    >>> from uncombine.panes.in_order.in_order import InOrder
    >>> InOrder("user", allowed_lateness="5 minutes").allowed_lateness
    '5 minutes'
    """

    by: Sequence[str] | str = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "by", key_columns(self.by, "in_order(by=)"))

    def checked(self, schema: pa.Schema) -> Columns:
        """The columns of an input of this schema; raises if they do not fit."""
        columns = self.columns(schema, "in_order()")
        require_keys(self.by, schema, "in_order(by=)")
        return columns


__all__ = ["InOrder"]
