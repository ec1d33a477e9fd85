"""The rows that messages have: columns of the value and the key by their formats, and of what is around them.

A message that cannot be read gives no row, but says why. For a changelog messages stay as they are.

Guarded by tests/kafka/test_rows.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..combiners.rows.columns import flat
from ..errors import InvalidArgument, UnreadableMessage
from ..files.unreadable_rows import UNREADABLE, shortened
from ..messages import Bytes, MessageFormat, Text
from ..messages.message_format import Decoded
from .partitions import Partition
from .reading import MESSAGE

PARTITION = "kafka_partition"
"""The column with the name of the partition of each row, which the watermark reads, and no step."""

AROUND = ("key", "topic", "partition", "offset", "timestamp", "headers")
"""The columns that a message has beside its value."""

NO_VALUE = "the message has no value, as one that deletes a key: changelog= reads such"
"""The reason of a message without a value, where a row is made of it."""

_SHOWN_BYTES = 200


@dataclass(frozen=True)
class MessageRows:
    """Makes rows of messages.

    >>> import uncombine as uc
    >>> rows = MessageRows(uc.messages.Text("line"), None, ("offset",))
    >>> rows.schema.names
    ['line', 'offset']
    """

    value: MessageFormat
    key: MessageFormat | None = None
    around: tuple[str, ...] = ()
    """The columns of `AROUND` that are asked for."""
    nested: bool = False
    """True if the columns of a format are the fields of one column, "key" or "value", as a changelog takes them."""
    named: bool = False
    """True if rows have the column `PARTITION`."""

    def __post_init__(self) -> None:
        names = [field.name for field in self._fields()]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise InvalidArgument(
                f"uc.Kafka gives column {twice[0]!r} twice, of the value, the key or columns=: leave it out of one, or "
                "name texts and bytes otherwise, as in value=uc.messages.Text('line')"
            )

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        return pa.schema(self._fields())

    def _fields(self) -> list[pa.Field]:
        fields = [*self._of("key", self.key), *self._of("value", self.value)]
        fields += [MESSAGE.field(name) for name in self.around]
        return [*fields, *([pa.field(PARTITION, pa.string())] if self.named else [])]

    def _of(self, part: str, form: MessageFormat | None) -> list[pa.Field]:
        if form is None:
            return []
        fields = [field.with_nullable(True) for field in form.schema]
        return [_whole(part, form)] if self.nested else fields

    def needs(self, columns: Sequence[str]) -> list[str]:
        """The columns of messages from which these columns of rows are made."""
        wanted = {"offset", "value", *(["key"] if self.key is not None else []), *columns}
        return [name for name in MESSAGE.names if name in wanted]

    def __call__(self, partition: Partition, messages: pa.Table, columns: Sequence[str]) -> tuple[pa.Table, pa.Table]:
        """The rows of messages of a partition, with these columns, and the messages that cannot be read."""
        count = messages.num_rows
        bad, causes = np.zeros(count, np.bool_), np.full(count, None, object)
        made: dict[str, pa.Array] = {}
        for part, form in (("key", self.key), ("value", self.value)):
            if form is not None:
                made |= self._decoded(part, form, flat(messages[part]), bad, causes)
        made |= {name: messages[name] for name in self.around if name in columns}
        if PARTITION in columns:
            made[PARTITION] = pa.repeat(partition.name, count)
        fields = [self.schema.field(name) for name in columns if name in made]
        rows = pa.table([made[field.name] for field in fields], schema=pa.schema(fields))
        if not fields:  # rows without columns have a number all the same
            rows = pa.table({"offset": messages["offset"]}).select([])
        if not bad.any():
            return rows, UNREADABLE.empty_table()
        return rows.filter(pa.array(~bad)), _unreadable(partition, messages, bad, causes)

    def _decoded(
        self, part: str, form: MessageFormat, values: pa.Array, bad: np.ndarray, causes: np.ndarray
    ) -> dict[str, pa.Array]:
        """The columns of a format, with a null for each message that it cannot read or that has none."""
        there = np.asarray(values.is_valid())
        table, good, reasons = _safely(form, values if there.all() else values.filter(pa.array(there)))
        wrong = np.flatnonzero(there)[~np.asarray(good)]
        bad[wrong] = True
        for place, reason in zip(wrong.tolist(), reasons.to_pylist(), strict=True):  # few: one a bad message
            causes[place] = causes[place] or f"{part}: {reason}" if part == "key" else reason
        if part == "value" and not self.nested and not isinstance(form, Text | Bytes) and not there.all():
            bad |= ~there
            causes[~there] = NO_VALUE
        has = there.copy()
        has[wrong] = False
        columns = {field.name: flat(table[field.name]) for field in form.schema}
        if not has.all():
            places = pa.array(np.cumsum(has) - 1, mask=~has)
            columns = {name: column.take(places) for name, column in columns.items()}
        if not self.nested:
            return columns
        field = _whole(part, form)
        if isinstance(form, Text | Bytes):
            return {part: next(iter(columns.values()))}
        whole = pa.StructArray.from_arrays(list(columns.values()), fields=list(field.type), mask=pa.array(~has))
        return {part: whole}


def _whole(part: str, form: MessageFormat) -> pa.Field:
    """The one column of a part of messages, for a changelog."""
    fields = [field.with_nullable(True) for field in form.schema]
    return pa.field(part, fields[0].type if isinstance(form, Text | Bytes) else pa.struct(fields))


def _safely(form: MessageFormat, values: pa.Array) -> Decoded:
    decoded = form.decode(values)
    table, good, _ = decoded
    if len(good) != len(values) or table.num_rows != int(np.asarray(good).sum()):
        raise InvalidArgument(
            f"{form!r}.decode() gave {table.num_rows} rows and {len(good)} answers for {len(values)} messages: it "
            "gives one row for each good message"
        )
    return decoded


def _unreadable(partition: Partition, messages: pa.Table, bad: np.ndarray, causes: np.ndarray) -> pa.Table:
    """The messages that cannot be read, as rows of files are that cannot."""
    chosen = messages.filter(pa.array(bad))
    texts = [_text(value) for value in pc.binary_slice(flat(chosen["value"]), 0, _SHOWN_BYTES).to_pylist()]
    columns = [[partition.name] * len(texts), chosen["offset"], texts, causes[bad].tolist()]
    return pa.table(columns, schema=UNREADABLE)


def _text(value: bytes | None) -> str | None:
    return None if value is None else shortened(value.decode("utf-8", "replace"))


def refuse(unreadable: pa.Table) -> None:
    """Raise for the first of some messages that cannot be read."""
    if unreadable.num_rows:
        row = unreadable.slice(0, 1).to_pylist()[0]
        raise UnreadableMessage(
            f"the message at offset {row['line']} of {row['file']} cannot be read ({row['cause']}): {row['text']!r}; "
            "leave such out with on_bad_row='leave_out'"
        )


__all__ = ["AROUND", "PARTITION", "MessageRows", "refuse"]
