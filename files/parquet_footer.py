"""A look at the footer of a Parquet file before pyarrow's own.

The accessors of pyarrow's metadata of columns, and its exclusion of row groups by statistics, do not translate the
errors of C++: a footer whose parts contradict each other ends the whole process, with pyarrow 26.0.1 one in some 30 of
the tests. So the footer is read here first. It is in Thrift's compact protocol:
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift

Guarded by tests/files/test_damaged_files.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

TAIL = 1 << 16
"""The bytes at the end of a file that are read at once: most footers are shorter."""

WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
"""The bytes of a value of each physical type, if they are the same in all files."""

_TYPES = {bytes([2 * number]): name for number, name in enumerate([*WIDTHS, "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"])}
"""The physical types by the bytes of their numbers."""

_MARK = b"PAR1"

# The numbers of the fields that are looked at.
_ROW_GROUPS = 4
_COLUMNS = 1
_META_DATA, _CRYPTO = 3, 8
_TYPE, _STATISTICS, _SIZES = 1, 12, 16
_TEXT_BYTES, _REPETITIONS = 1, 2

# The types of Thrift's compact protocol.
_DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 7, 8, 9, 10, 12


def file_end(source: pa.NativeFile) -> bytes:
    """A Parquet file that has the footer of `source`: the whole file if it is small, else one without pages."""
    size = source.size()
    tail: bytes = source.read_at(min(size, TAIL), max(size - TAIL, 0))
    if size <= TAIL or tail[-4:] != _MARK:
        return tail
    length = int.from_bytes(tail[-8:-4], "little") + 8
    if len(tail) < length <= size:
        tail = source.read_at(length, size - length)
    return _MARK + tail[-length:]


@dataclass(frozen=True)
class Leaf:
    """A leaf column of a file: its place, the column of the table that it is part of, and its description."""

    place: int
    root: str
    path: str
    kind: str
    width: int | None
    """The bytes of a value, if they are the same for all values."""
    definitions: int
    repetitions: int


def leaves(schema: Any, columns: list[str]) -> list[Leaf]:
    """The leaf columns of some columns, by pyarrow's schema of the file."""
    wanted = set(columns)
    out = []
    for place in range(len(schema)):
        leaf = schema.column(place)
        # The name of a column may contain dots.
        root = leaf.path if leaf.path in wanted else leaf.path.partition(".")[0]
        if root in wanted:
            kind = leaf.physical_type
            width = leaf.length if kind == "FIXED_LEN_BYTE_ARRAY" else WIDTHS.get(kind)
            levels = leaf.max_definition_level, leaf.max_repetition_level
            out.append(Leaf(place, root, leaf.path, kind, width, *levels))
    return out


def require_sound(end: bytes, wanted: list[Leaf], count: int, first: int, last: int) -> bool:
    """Raise if the chunks of the wanted columns in row groups [first, last) contradict the schema of `count` leaves.

    False if only the smallest or largest values in their statistics do, which some writers shorten.
    """
    by_place = {leaf.place: leaf for leaf in wanted}
    at, number, sound = len(end) - 8 - int.from_bytes(end[-8:-4], "little"), 0, True
    while head := end[at]:
        number, at = _field(end, at, number)
        if number != _ROW_GROUPS or head & 15 != _LIST:
            at = _after(end, at, head & 15)
            continue
        groups, _, at = _list_head(end, at)
        for group in range(min(groups, last)):
            if group < first:
                at = _after(end, at, _STRUCT)
            else:
                at, good = _group(end, at, by_place, count)
                sound &= good
        if groups > last:
            break
    return sound


def _group(data: bytes, at: int, wanted: Mapping[int, Leaf], count: int) -> tuple[int, bool]:
    number, chunks, sound = 0, 0, True
    while head := data[at]:
        number, at = _field(data, at, number)
        if number != _COLUMNS or head & 15 != _LIST:
            at = _after(data, at, head & 15)
            continue
        chunks, _, at = _list_head(data, at)
        for place in range(chunks):
            if place in wanted:
                at, good = _chunk(data, at, wanted[place])
                sound &= good
            else:
                at = _after(data, at, _STRUCT)
    if chunks != count:
        raise pa.ArrowInvalid(f"a row group has {chunks} columns, but the schema has {count}")
    return at + 1, sound


def _chunk(data: bytes, at: int, leaf: Leaf) -> tuple[int, bool]:
    number, described, sound = 0, False, True
    while head := data[at]:
        number, at = _field(data, at, number)
        if number == _CRYPTO:
            raise pa.ArrowInvalid(f"column {leaf.path!r} is encrypted")
        if number == _META_DATA and head & 15 == _STRUCT:
            described = True
            at, good = _description(data, at, leaf)
            sound &= good
        else:
            at = _after(data, at, head & 15)
    if not described:
        raise pa.ArrowInvalid(f"a row group does not describe column {leaf.path!r}")
    return at + 1, sound


def _description(data: bytes, at: int, leaf: Leaf) -> tuple[int, bool]:
    # Like `_after` without calls for most fields: the footer of a small file must take no longer than its rows.
    number, sound = 0, True
    while head := data[at]:
        at += 1
        if head > 15:
            number += head >> 4
        else:
            number, at = _field(data, at - 1, number)
        kind = head & 15
        if 3 < kind < 7:
            start = at
            while data[at] > 127:
                at += 1
            at += 1
            if number == _TYPE and leaf.kind != _TYPES.get(data[start:at]):
                raise pa.ArrowInvalid(f"column {leaf.path!r} is {leaf.kind}, but a row group has another type")
        elif number == _STATISTICS and kind == _STRUCT and leaf.width is not None:
            at, good = _statistics(data, at, leaf.width)
            sound &= good
        elif number == _SIZES and kind == _STRUCT:
            at = _sizes(data, at, leaf)
        else:
            at = _after(data, at, kind)
    return at + 1, sound


def _statistics(data: bytes, at: int, width: int) -> tuple[int, bool]:
    number, sound = 0, True
    while head := data[at]:
        number, at = _field(data, at, number)
        if head & 15 == _BINARY:
            length, at = _varint(data, at)
            at += length
            sound &= length >= width
        else:
            at = _after(data, at, head & 15)
    return at + 1, sound


def _sizes(data: bytes, at: int, leaf: Leaf) -> int:
    number = 0
    while head := data[at]:
        number, at = _field(data, at, number)
        if number == _TEXT_BYTES and leaf.kind != "BYTE_ARRAY":
            raise pa.ArrowInvalid(f"column {leaf.path!r} is {leaf.kind}, but a row group has the size of its texts")
        if number > _TEXT_BYTES and head & 15 == _LIST:
            most = leaf.repetitions if number == _REPETITIONS else leaf.definitions
            if _list_head(data, at)[0] not in (0, most + 1):
                raise pa.ArrowInvalid(
                    f"column {leaf.path!r} has levels from 0 to {most}, but a row group counts others"
                )
        at = _after(data, at, head & 15)
    return at + 1


def _field(data: bytes, at: int, before: int) -> tuple[int, int]:
    """The number of the field of a struct that begins here, and the place of its value."""
    step = data[at] >> 4
    if step:
        return before + step, at + 1
    number, at = _varint(data, at + 1)
    return (number >> 1) ^ -(number & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number, shift = 0, 0
    while (byte := data[at]) > 127:
        number |= (byte & 127) << shift
        shift += 7
        at += 1
    return number | byte << shift, at + 1


def _list_head(data: bytes, at: int) -> tuple[int, int, int]:
    """The number and the type of the values of a list, and the place of the first."""
    head = data[at]
    count, at = (head >> 4, at + 1) if head < 0xF0 else _varint(data, at + 1)
    return count, head & 15, at


def _after(data: bytes, at: int, kind: int) -> int:
    """The place after a value; with few calls, since a footer has thousands of values."""
    if kind == _STRUCT:
        while head := data[at]:
            at += 1
            if head < 16:
                while data[at] > 127:
                    at += 1
                at += 1
            kind = head & 15
            if 3 < kind < 7:
                while data[at] > 127:
                    at += 1
                at += 1
            elif kind == _BINARY and (length := data[at]) < 128:
                at += length + 1
            elif kind > 2:
                at = _after(data, at, kind)
        return at + 1
    if kind in (_LIST, _SET):
        head = data[at]
        if head < 0xF0:
            count, kind, at = head >> 4, head & 15, at + 1
        else:
            count, kind, at = _list_head(data, at)
        if kind < 4:
            return at + count
        if kind < 7:
            for _ in range(count):
                while data[at] > 127:
                    at += 1
                at += 1
            return at
        for _ in range(count):
            at = _after(data, at, kind)
        return at
    if kind == _BINARY:
        length, at = _varint(data, at)
        return at + length
    if 3 < kind < 7:
        while data[at] > 127:
            at += 1
        return at + 1
    if kind > _DOUBLE:
        raise pa.ArrowInvalid(f"the footer has a value of Thrift type {kind}")
    return at + {1: 0, 2: 0, 3: 1, _DOUBLE: 8}[kind]
