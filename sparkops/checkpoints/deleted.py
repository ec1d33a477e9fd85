"""The checkpoint of a query without the rows of some keys, made on Spark of its checkpoint with them.

Guarded by tests/sparkops/checkpoints/test_deleted_rows.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...combiners.expressions.expr import Expr, col
from ...errors import InvalidArgument, TypeMismatch
from ...flows.evolution.deletion import Condition, Deletion, deleted_seed
from ..query_log import last_commit
from .new_checkpoint import SparkWork, new_checkpoint, remaining, require_ended
from .positions import EVOLVED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def delete_rows(
    spark: SparkSession, path: str, batch: int, where: Condition | None, key: Mapping[str, Any], target: str
) -> Deletion:
    """Make a new checkpoint without the rows of a key for which an expression is true."""
    if where is None and not key:
        raise InvalidArgument("delete() needs a key or a condition: write user='ada', or where=uc.col('user') == 'ada'")
    by_step = where if isinstance(where, Mapping) else {}
    for one in [where] if where is not None and not isinstance(where, Mapping) else by_step.values():
        if not isinstance(one, Expr):
            raise TypeMismatch(f"where= takes a condition such as uc.col('user') == 'ada', but was given {one!r}")
        if not one.columns:
            raise InvalidArgument(f"where={one!r} names no column, so it would delete all rows or none: name the key")
    if isinstance(where, Mapping) and (key or not where):
        raise InvalidArgument(
            "where= takes a condition, or one for each of some steps such as {1: uc.col('user') == 'ada'}, and no key "
            "beside that"
        )
    for name, value in key.items():
        of_key = col(name).is_null() if value is None else col(name) == value
        assert not isinstance(where, Mapping)
        where = of_key if where is None else where & of_key
    assert where is not None
    require_ended(spark, path)
    if last_commit(spark, path) != batch:
        raise InvalidArgument("rows are deleted from the last batch, for the table is as far: leave at() out")
    with new_checkpoint(spark, path, batch, target) as old:
        made = deleted_seed(old, where, f"{target}/{EVOLVED}", SparkWork(spark))
    return replace(made, remains=(*made.remains, *remaining(path, target)))


__all__ = ["delete_rows"]
