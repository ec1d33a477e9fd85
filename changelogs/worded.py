"""Formats in which a message is a row with a word beside it: Flink's RowKind, Delta's feed, any column of operations.

Guarded by tests/changelogs/test_changelogs_in.py and tests/changelogs/test_changelogs_out.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument, require_column
from ..flows.changelog_reading import Reading, UpsertKeys, WeightedRows
from .base import Changelog, chosen, fault_of, only_keys, row_schema, several, signs, upserted
from .single_changes import latest, pairs


@dataclass(frozen=True)
class Words:
    """Reads rows by the words of a column."""

    column: str
    weights: dict[Any, int]
    who: str
    upserted: UpsertKeys | None

    def __call__(self, messages: pa.Table, names: Sequence[str]) -> WeightedRows:
        numbers, bad = signs(messages[self.column], self.weights, self.who)
        rows, mask = messages.select(list(names)), (numbers != 0) | bad
        if self.upserted is not None:
            rows = only_keys(rows, numbers < 0, (*self.upserted.keys, *self.upserted.order))
        return chosen(rows, numbers, mask, bad, fault_of(messages[self.column], bad, list(self.weights), self.who))


def reading_of(
    words: str, columns: pa.Schema, own: Sequence[str], beside: Sequence[str], changes: Any, upserted: UpsertKeys | None
) -> Reading:
    """The reading of messages that are a row each, with columns beside it."""
    for name in (*own, *beside):
        require_column(name, columns.names, words)
    row = row_schema([f for f in columns if f.name not in (*own, *beside)])
    if not row.names:
        raise InvalidArgument(f"{words} leaves no column for the rows")
    return Reading(message_schema=columns, row=row, own=frozenset(own), changes=changes, words=words, upserted=upserted)


@dataclass(frozen=True)
class Flink(Changelog):
    """Flink's RowKind: `+I`, `-U`, `+U` and `-D`, or `INSERT`, `UPDATE_BEFORE`, `UPDATE_AFTER` and `DELETE`.

    Parameters
    ----------
    kind
        The column of the RowKind.
    keys
        For a feed without `-U`: the columns that tell one row of the table from another. The old row is remembered.
    order
        With `keys`: the column, or several, by which one version of a row is later than another; see `Debezium`.
    metadata
        Columns of a message that are no columns of its row, such as an offset.
    keep_deletes
        With `order`: the event time for which a deleted key is remembered; see `Debezium`.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> feed = pa.table({"ts": [0, 0, 0], "n": [1, 1, 2], "row_kind": ["+I", "-U", "+U"]})
    >>> rows = uc.flow(feed, changelog=uc.changelog.Flink())
    >>> rows.run().select(["n", "diff"]).to_pylist()
    [{'n': 1, 'diff': 1}, {'n': 1, 'diff': -1}, {'n': 2, 'diff': 1}]
    """

    kind: str = "row_kind"
    keys: str | Sequence[str] | None = None
    order: str | Sequence[str] | None = None
    metadata: Sequence[str] = ()
    keep_deletes: str | None = None

    SHORT: ClassVar[dict[str, int]] = {"+I": 1, "-U": -1, "+U": 1, "-D": -1}
    LONG: ClassVar[dict[str, int]] = {"INSERT": 1, "UPDATE_BEFORE": -1, "UPDATE_AFTER": 1, "DELETE": -1}

    def reading(self, columns: pa.Schema) -> Reading:
        keyed = upserted(self.keys, self.order, self.keep_deletes)
        weights = {**self.SHORT, **self.LONG}
        if keyed is not None:  # the row after it has the same key
            weights |= {"-U": 0, "UPDATE_BEFORE": 0}
        changes = Words(
            column=self.kind, weights=weights, who=f"Flink's RowKind in column {self.kind!r}", upserted=keyed
        )
        return reading_of(
            "uc.changelog.Flink()", columns, [self.kind], several(self.metadata, "metadata="), changes, keyed
        )

    def written(self, rows: pa.Table, weights: np.ndarray, keys: tuple[str, ...]) -> pa.Table:
        if self.keys is not None:
            last, deleted = latest(rows, weights, keys, "Flink's feed with keys=")
            return last.append_column(self.kind, pa.array(np.where(deleted, "-D", "+U")))
        return worded(rows, weights, keys, self.kind, tuple(self.SHORT))


@dataclass(frozen=True)
class DeltaFeed(Changelog):
    """The change data feed of a Delta table, which has a `_change_type` and both rows of an update.

    `_commit_version` and `_commit_timestamp` are no columns of the rows, but may be named in `processing_time=` and in
    a watermark strategy.

    Parameters
    ----------
    kind
        The column of the kind of change.
    metadata
        Columns of a message that are no columns of its row; those that the feed does not have are left out.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> kinds = ["insert", "update_preimage", "update_postimage"]
    >>> columns = {"ts": [0, 0, 0], "n": [1, 1, 2]}
    >>> feed = pa.table({**columns, "_change_type": kinds, "_commit_version": [0, 1, 1]})
    >>> flow = uc.flow(feed, changelog=uc.changelog.DeltaFeed())
    >>> flow.schema.names, flow.run()["diff"].to_pylist()
    (['ts', 'n', 'diff'], [1, -1, 1])
    """

    kind: str = "_change_type"
    metadata: Sequence[str] = ("_commit_version", "_commit_timestamp")

    WEIGHTS: ClassVar[dict[str, int]] = {"insert": 1, "update_preimage": -1, "update_postimage": 1, "delete": -1}

    def reading(self, columns: pa.Schema) -> Reading:
        changes = Words(
            column=self.kind, weights=self.WEIGHTS, who=f"Delta's change type in column {self.kind!r}", upserted=None
        )
        beside = [name for name in several(self.metadata, "metadata=") if name in columns.names]
        return reading_of("uc.changelog.DeltaFeed()", columns, [self.kind], beside, changes, None)

    def written(self, rows: pa.Table, weights: np.ndarray, keys: tuple[str, ...]) -> pa.Table:
        return worded(rows, weights, keys, self.kind, tuple(self.WEIGHTS))


@dataclass(frozen=True)
class Ops(Changelog):
    """A column of operations, with a weight for each.

    Parameters
    ----------
    column
        The column of the operation.
    weights
        The weight of each operation: 1 adds the row, -1 retracts it, and messages with 0 are left out.
    keys, order, metadata, keep_deletes
        As for `Flink`. With `keys` a weight of more than 0 sets the row of its key, and one of less than 0 deletes it.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> feed = pa.table({"ts": [0, 0], "n": [1, 1], "what": ["I", "D"]})
    >>> flow = uc.flow(feed, changelog=uc.changelog.Ops("what", {"I": 1, "D": -1}))
    >>> flow.run()["diff"].to_pylist()
    [1, -1]
    """

    column: str
    weights: Mapping[Any, int] = field(hash=False)
    keys: str | Sequence[str] | None = None
    order: str | Sequence[str] | None = None
    metadata: Sequence[str] = ()
    keep_deletes: str | None = None

    def __post_init__(self) -> None:
        whole = isinstance(self.weights, Mapping) and all(
            isinstance(weight, int) and not isinstance(weight, bool) for weight in self.weights.values()
        )
        if not whole or not self.weights:
            raise InvalidArgument(
                f"Ops(column, weights) takes a whole number for each operation, such as {{'I': 1, 'D': -1}}, but was "
                f"given {self.weights!r}"
            )

    def reading(self, columns: pa.Schema) -> Reading:
        keyed = upserted(self.keys, self.order, self.keep_deletes)
        changes = Words(
            column=self.column,
            weights=dict(self.weights),
            who=f"the operation in column {self.column!r}",
            upserted=keyed,
        )
        beside = several(self.metadata, "metadata=")
        return reading_of("uc.changelog.Ops()", columns, [self.column], beside, changes, keyed)

    def written(self, rows: pa.Table, weights: np.ndarray, keys: tuple[str, ...]) -> pa.Table:
        words = {weight: word for word, weight in reversed(list(self.weights.items()))}
        if 1 not in words or -1 not in words:
            raise InvalidArgument(f"{self!r} has no operation of weight 1, or none of -1, to write rows with")
        if self.keys is not None:
            rows, deleted = latest(rows, weights, keys, "a feed of operations with keys=")
            sign = np.where(deleted, -1, 1)
        else:
            rows, sign, _ = pairs(rows, weights, ())
        kinds = pa.array([words[1], words[-1]])
        return rows.append_column(self.column, kinds.take(pa.array((sign < 0).astype(np.int64))))


@dataclass(frozen=True)
class SparkUpdate(Changelog):
    """The rows of Spark's output mode `update`: the new row of each key that changed. No key is ever deleted.

    Parameters
    ----------
    keys
        The columns that tell one row from another, such as the columns of the `groupBy`.
    order
        The column, or several, by which one version of a row is later than another, such as the number of the batch.
    metadata
        Columns that are no columns of the row, such as the number of the batch.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> feed = pa.table({"ts": [0, 0], "user": ["a", "a"], "n": [1, 2], "batch": [0, 1]})
    >>> counts = uc.changelog.SparkUpdate("user", order="batch", metadata=["batch"])
    >>> uc.flow(feed, changelog=counts).run().select(["user", "n", "diff"]).to_pylist()
    [{'user': 'a', 'n': 2, 'diff': 1}]
    """

    keys: str | Sequence[str]
    order: str | Sequence[str] | None = None
    metadata: Sequence[str] = ()

    def reading(self, columns: pa.Schema) -> Reading:
        keyed = upserted(self.keys, self.order, "0 seconds")
        if keyed is None:
            raise InvalidArgument("uc.changelog.SparkUpdate() needs keys=: name the columns of the groupBy")
        beside = several(self.metadata, "metadata=")
        return reading_of("uc.changelog.SparkUpdate()", columns, [], beside, each_added, keyed)

    def written(self, rows: pa.Table, weights: np.ndarray, keys: tuple[str, ...]) -> pa.Table:
        last, deleted = latest(rows, weights, keys, "Spark's output mode 'update'")
        if deleted.any():
            raise InvalidArgument(
                "Spark's output mode 'update' has no message for a deleted key, and a key was deleted: write the "
                "changelog as 'kafka' or 'debezium_flat'"
            )
        return last


def each_added(messages: pa.Table, names: Sequence[str]) -> WeightedRows:
    """Every message sets the row of its key."""
    count = messages.num_rows
    return WeightedRows(rows=messages.select(list(names)), weights=np.ones(count, np.int64), places=np.arange(count))


def worded(rows: pa.Table, weights: np.ndarray, keys: tuple[str, ...], kind: str, words: Sequence[str]) -> pa.Table:
    """Rows of weight 1 or -1 with their words: for an insert, the old and the new row of an update, and a delete."""
    rows, sign, partner = pairs(rows, weights, keys)
    insert, before, after, delete = words
    updated = partner >= 0
    named = np.where(sign > 0, np.where(updated, after, insert), np.where(updated, before, delete))
    return rows.append_column(kind, pa.array(named, pa.string()))


__all__ = ["DeltaFeed", "Flink", "Ops", "SparkUpdate"]
