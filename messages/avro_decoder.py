"""Messages of Avro of one schema as rows.

Guarded by tests/messages/test_avro.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from .avro_nodes import Node, Record
from .avro_resolution import reader_of
from .avro_schema import AvroType
from .avro_types import arrow_type
from .message_format import Decoded, decoded
from .spans.cursors import WORDS, Cursors, Fault

AT_ONCE = 32_768
"""The messages that are read at once, whose columns fit into the caches of a processor."""


def columns_of(read: AvroType, name: str) -> pa.Schema:
    """The columns of messages: the fields of a record, or one column for values of another type."""
    kind = arrow_type(read)
    return pa.schema(list(kind)) if read.kind == "record" else pa.schema([(name, kind)])


@dataclass(frozen=True)
class AvroDecoder:
    r"""Reads messages that were written with one schema as another one has them.

    >>> from uncombine.messages.avro_schema import avro_type
    >>> decoder = AvroDecoder.of(avro_type("long"), avro_type("double"), "n")
    >>> decoder(pa.array([b"\x04", b"", b"\x04\x04"])).reasons.to_pylist()
    ['it ends too early', 'it goes on after its last value']
    """

    node: Node
    schema: pa.Schema

    @classmethod
    def of(cls, written: AvroType, read: AvroType, name: str) -> AvroDecoder:
        """The decoder of two schemas; raises `Mismatch` where no message can be read."""
        return cls(reader_of(written, read), columns_of(read, name))

    def __call__(self, values: pa.BinaryArray) -> Decoded:
        return self.read(Cursors.of(values))

    def read(self, messages: Cursors) -> Decoded:
        """The rows of messages, from where they are."""
        tables, faults = [self.schema.empty_table()], [np.zeros(0, np.int8)]
        for first in range(0, len(messages), AT_ONCE):
            cursors = messages.slice(first, AT_ONCE)
            columns = self.node.columns(cursors) if isinstance(self.node, Record) else [self.node(cursors)]
            cursors.finished()
            tables.append(pa.table(columns, schema=self.schema))
            faults.append(cursors.fault)
        fault = np.concatenate(faults)
        reasons = [WORDS[Fault(code)] for code in fault[fault != 0]]
        return decoded(pa.concat_tables(tables), fault != 0, reasons)


__all__ = ["AvroDecoder", "columns_of"]
