"""A scan of Parquet files: what a plan of Spark says, in plain values.

Only plans of which every part is known are scans: files, conditions of a column and a value, and names of columns.

Guarded by tests/sparkops/scans/test_scans.py.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

from ...combiners.expressions.expr import Expr, col

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class NoScan(Exception):
    """The reason why a DataFrame is no scan; empty if its rows are not those of files at all."""


@dataclass(frozen=True)
class Scan:
    """The rows of Parquet files that fulfil a condition, in columns that may have other names."""

    paths: tuple[str, ...]
    """The files of a bounded scan, or the path of a stream."""
    schema: StructType
    """The columns of the files, and those of folders."""
    columns: Mapping[str, str]
    """The name that each column of the DataFrame has in the files."""
    filter: Expr | None = None
    folders: tuple[str, ...] = ()
    """The columns that are names of folders."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The options of a stream."""
    listed_late: bool = False
    """True if Spark lists the files whenever the DataFrame is run, and not when it is made."""


STREAM_OPTIONS = {"maxfilespertrigger", "maxbytespertrigger", "latestfirst", "maxfileage", "maxcachedfiles"}
"""Options of a stream that choose its files and not their rows, in lower case."""

COMPARISONS = {"==": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
FLIPPED = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def condition(name: str, comparison: str, value: Any) -> Expr:
    """A comparison of a column with a value."""
    made: Expr = COMPARISONS[comparison](col(name), value)
    return made


def all_of(conditions: Sequence[Expr]) -> Expr | None:
    """The rows for which all conditions are true; None if there is no condition."""
    return reduce(operator.and_, conditions) if conditions else None
