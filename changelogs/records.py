"""Rows with weights as the messages of a topic of Kafka: a key, which compaction goes by, and a value, both as JSON.

The rows of a batch are netted first: what a batch adds and retracts again gives no message, and an update is one.

Guarded by tests/changelogs/test_records.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..combiners.aggregate import weights_of
from ..combiners.rows.columns import flat
from ..combiners.rows.key_codes import normal_keys
from ..combiners.rows.plain_types import plain_table
from ..errors import InvalidArgument, nearest
from .base import Changelog
from .debezium import Debezium
from .json_out import key_texts, texts_of
from .single_changes import net
from .writing import NAMES, Writing

DIFF = "diff"
"""The name of the form in which each message is a row with its weight."""

UPSERTS = ("debezium_flat", "flink_upsert", "kafka", "spark_update")
"""The formats that write the last row of each key."""

CHOICES = tuple(sorted({DIFF, *NAMES} - {"debezium_json", "postgres"}))
"""The forms of the messages of a topic."""


@dataclass(frozen=True)
class RecordForm:
    """The form of the messages of a topic.

    >>> rows = pa.table({"k": ["a", "a", "b"], "n": [1, 2, 5], "diff": [-1, 1, -1]})
    >>> for row in RecordForm.of("kafka", ("k",), "diff")(rows).to_pylist():
    ...     print(row["key"].decode(), row["value"])
    {"k":"a"} b'{"k":"a","n":2}'
    {"k":"b"} None
    """

    changelog: Any
    """A format, `DIFF`, or None for rows as they are."""
    keys: tuple[str, ...]
    diff: str | None
    """The column of the weights; None if no row is ever retracted."""

    @classmethod
    def of(cls, changelog: str | Changelog | None, keys: Sequence[str], diff: str | None) -> RecordForm:
        """The form that a user names; raises if it does not fit rows with these keys and weights."""
        if changelog is None and diff is not None:
            raise InvalidArgument(
                f"the rows of this flow can be retracted, by their weights in {diff!r}: give changelog=, such as "
                "'kafka' for the last row of each key and a null for a key that is gone, or 'debezium', or 'diff'"
            )
        named = changelog if isinstance(changelog, str) else None
        if named is not None and named not in CHOICES:
            raise InvalidArgument(f"to_kafka() has no changelog= {named!r}: {nearest(named, CHOICES)}")
        if changelog is not None and named is None and not isinstance(changelog, Changelog):
            raise InvalidArgument(
                f"changelog= of to_kafka() takes one of {', '.join(map(repr, CHOICES))}, or a format such as "
                f"uc.changelog.Debezium(), not {changelog!r}"
            )
        if named in UPSERTS and not keys:
            raise InvalidArgument(
                f"changelog={named!r} writes the last row of each key: give keys=, the columns that no two rows share"
            )
        form: Any = changelog if named in (None, DIFF) else Writing.of(named, keys, diff or DIFF, False).format
        if isinstance(form, Debezium):
            form = replace(form, json=False, schema=None)
        return cls(changelog=form, keys=tuple(keys), diff=diff)

    def __call__(self, rows: pa.Table) -> pa.Table:
        """The messages for the rows of a batch: those of a key are in their order."""
        weights = np.ones(rows.num_rows, np.int64) if self.diff is None else weights_of(rows, self.diff)
        rows = plain_table(rows.select([name for name in rows.column_names if name != self.diff])).combine_chunks()
        for name in self.keys:  # -0.0 and 0.0 are one key
            rows = rows.set_column(rows.column_names.index(name), name, normal_keys(flat(rows[name])))
        if self.changelog is None:
            return self._messages(rows)
        rows, weights = net(rows, weights, self.keys)
        if self.changelog == DIFF:
            return self._messages(rows.append_column(self.diff or DIFF, pa.array(weights)))
        messages = self.changelog.written(rows.combine_chunks(), weights, self.keys)
        if isinstance(self.changelog, Debezium) and not self.changelog.flat:
            return self._envelopes(messages)
        if messages.column_names == ["key", "value"]:
            return _records(messages["key"], messages["value"])
        if missing := [name for name in self.keys if name not in messages.column_names]:
            raise InvalidArgument(
                f"{self.changelog!r} has no column {missing[0]!r} in its messages, of which to_kafka() makes their "
                "keys: give another changelog="
            )
        return self._messages(messages)

    def _messages(self, rows: pa.Table) -> pa.Table:
        return _records(key_texts(rows, self.keys) if self.keys else None, texts_of(rows))

    def _envelopes(self, messages: pa.Table) -> pa.Table:
        """Envelopes, and after one that deletes a key a null for it, as Debezium writes them."""
        values = texts_of(messages.select(["before", "after", "op"]))
        if not self.keys:
            return _records(None, values)
        image = pc.coalesce(flat(messages["after"]), flat(messages["before"]))
        keys = key_texts(pa.table({name: pc.struct_field(image, name) for name in self.keys}), self.keys)
        deleted = np.asarray(flat(pc.equal(messages["op"], "d")))
        times = np.where(deleted, 2, 1)
        last = np.cumsum(times) - 1
        nulls = np.zeros(int(times.sum()), np.bool_)
        nulls[last[deleted]] = True
        places = np.repeat(np.arange(len(times)), times)
        return _records(keys.take(pa.array(places)), values.take(pa.array(places, mask=nulls)))


def _records(keys: Any, values: Any) -> pa.Table:
    values = flat(values) if isinstance(values, pa.ChunkedArray) else values
    keys = flat(keys) if isinstance(keys, pa.ChunkedArray) else keys
    keys = pa.nulls(len(values), pa.binary()) if keys is None else keys.cast(pa.binary())
    return pa.table({"key": keys, "value": values.cast(pa.binary())})


__all__ = ["CHOICES", "RecordForm"]
