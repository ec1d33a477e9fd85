"""The start of a query that keeps tables: the query first, whose id the tables know, then each table.

Guarded by tests/sparkops/tables/test_live_table.py and tests/sparkops/together/test_together_tables.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeAlias

from ...errors import UncombineError
from ...flows.tuning import LiveQuery
from ...tables import Keeper
from ...tables.target import NONE_YET
from ..batches import changes_in
from ..ending import end_without_input
from ..progress_log import listen
from ..query_log import last_commit, last_plan
from ..starting import BatchFunction, batch_writer, started
from .finished_batch import finish_batch
from .table_start import TableStart

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

Take: TypeAlias = "Callable[[Sequence[Keeper], DataFrame, int], None]"
"""Gives a batch to the keepers of the tables."""


def start_tables(
    spark: SparkSession,
    packed: DataFrame,
    tables: Sequence[TableStart],
    take: Take,
    options: LiveQuery,
    wakes: bool,
    far: Callable[[DataFrame, int], None] | None = None,
    once: bool = False,
) -> tuple[StreamingQuery, list[Keeper]]:
    """Start a query whose batches tables take, and the keepers of the tables.

    `wakes` is true if it has batches without data. `far` is a function that takes the batches elsewhere, beside the
    server of Spark Connect. `once` is true if a batch that all tables have must not be run again.
    """
    checkpoint, trigger = options.checkpoint, options.trigger
    main = [table for table in tables if not table.beside]
    name = options.query_name or ", ".join(table.place.name for table in main)
    if once and far is None:
        finish_batch(spark, checkpoint, main, name)
    made: Future[Sequence[Keeper]] = Future()
    batches = BatchFunction(_Batches(made, take))
    writer = batch_writer(packed, batches if far is None else far, options)
    done = last_commit(spark, checkpoint)
    endless = bool((trigger or {}).get("availableNow")) and wakes
    begun = last_plan(spark, checkpoint) if endless else NONE_YET
    listen(spark)
    begins = f"after batch {done} of checkpoint {checkpoint}" if done > NONE_YET else f"a new checkpoint {checkpoint}"
    query = started(writer.start, lambda: batches.called, f"{name}: a query starts {begins}", name)
    keepers: list[Keeper] = []
    try:
        for table in tables:
            # The id of a query is that of its checkpoint.
            keeper, last = table.keeper(spark, str(query.id), name, patient=far is not None)
            keepers.append(keeper)
            if last < done:
                raise keeper.writer.lacks(last, done + 1)
    except BaseException as error:
        # Spark keeps the function of the batches, and an error of its own has no frames that keep the table's objects.
        made.set_exception(UncombineError(str(error)))
        query.stop()
        for keeper in keepers:
            keeper.close()
        raise
    made.set_result(keepers)
    if endless:
        end_without_input(query, begun, lambda: all_hurry(keepers))
    return query, keepers


def all_hurry(keepers: Sequence[Keeper]) -> None:
    """Wait for nothing any more, such as a database that is away."""
    for keeper in keepers:
        keeper.hurry()


def apply_packed_both(one: Keeper, packed: DataFrame, other: Keeper, more: DataFrame, batch: int) -> None:
    """Apply the changes of a batch to two tables of one database, in one transaction."""
    packed.persist()
    more.persist()
    try:
        changes, others = changes_in(packed, one.writer.layout), changes_in(more, other.writer.layout)
        one.take_both(batch, changes, other, others)
    finally:
        packed.unpersist()
        more.unpersist()


def apply_packed(keeper: Keeper, packed: DataFrame, batch: int) -> None:
    """Apply the changes of a batch, which are computed once."""
    packed.persist()
    try:
        keeper.take(batch, changes_in(packed, keeper.writer.layout))
    finally:
        packed.unpersist()


class _Batches:
    """Takes the batches of a query, from when the tables are there."""

    def __init__(self, made: Future[Sequence[Keeper]], take: Take) -> None:
        self.made, self.take = made, take

    def __call__(self, packed: DataFrame, batch: int) -> Any:
        self.take(self.made.result(), packed, batch)


__all__ = ["Take", "all_hurry", "apply_packed", "apply_packed_both", "start_tables"]
