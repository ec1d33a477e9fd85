"""Confluent's wire format: a zero, the number of a schema in four bytes, and then the value.

Guarded by tests/messages/test_registry.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from .message_format import Decoded, reason_of
from .spans.cursors import Cursors

HEADER = 5
NO_HEADER = "it does not begin with the zero and the schema number of Confluent's wire format"

Decoder = Callable[[Cursors], Decoded]
"""Decodes messages from where they are, which is after their headers."""

Part: TypeAlias = tuple[np.ndarray, Decoded | str]
"""The places of some messages, with what they are."""


def decoded_by_schema(values: pa.BinaryArray, schema: pa.Schema, decoder: Callable[[int], Decoder | str]) -> Decoded:
    r"""The rows of messages, by the decoders of their schemas; a text in place of a decoder is the reason of each.

    >>> columns = pa.schema({"n": pa.int64()})
    >>> decoded_by_schema(pa.array([b"\0\0\0\0\7", b"\1"]), columns, lambda number: f"no schema {number}").reasons[0]
    <pyarrow.StringScalar: 'no schema 7'>
    """
    cursors = Cursors.of(values)
    begins = (cursors.end - cursors.pos >= HEADER) & (cursors.data[cursors.pos] == 0)
    numbers = ((cursors.words(64) >> np.uint64(8)) & np.uint64(0xFFFFFFFF)).astype(np.uint32).byteswap()
    numbers = np.where(begins, numbers.astype(np.int64), -1)
    parts = list[Part]()
    for number in np.unique(numbers):
        some = np.flatnonzero(numbers == number)
        read = NO_HEADER if number < 0 else decoder(int(number))
        if isinstance(read, str):
            parts.append((some, read))
        else:
            parts.append((some, read(Cursors(cursors.data, cursors.pos[some] + HEADER, cursors.end[some]))))
    return together(parts, schema, len(values))


def together(parts: Sequence[Part], schema: pa.Schema, count: int) -> Decoded:
    """The messages of several parts, in their order; a text is the reason of a part that is bad."""
    tables, places, reasons = [schema.empty_table()], [np.zeros(0, np.int64)], np.full(count, None, object)
    for some, found in parts:
        if isinstance(found, str):
            reasons[some] = reason_of(found)
            continue
        is_good = np.asarray(found.good.to_numpy(zero_copy_only=False)).astype(np.bool_)
        tables.append(found.table)
        places.append(some[is_good])
        reasons[some[~is_good]] = found.reasons.to_pylist()
    whole, rows = np.concatenate(places), pa.concat_tables(tables)
    if len(tables) > 2:
        rows = rows.take(pa.array(np.argsort(whole)))
    good = np.zeros(count, np.bool_)
    good[whole] = True
    return Decoded(rows, pa.array(good), pa.array(reasons[~good], pa.string()))


__all__ = ["HEADER", "Decoder", "Part", "decoded_by_schema", "together"]
