"""The footer of a Parquet file as a tree of the values of Thrift's compact protocol, to be changed and written again.

A struct is a list of fields `[number, type, value]`, a list of values is `(type, values)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

_NUMBERS = (4, 5, 6)
_BINARY, _LIST, _STRUCT = 8, 9, 12
NUMBERS = [0, 1, -1, 2, 7, 9, 100, 2**31 - 1, -(2**31), 2**62, -(2**63)]


def footer(data: bytes) -> list[Any]:
    """The footer of a Parquet file."""
    size = int.from_bytes(data[-8:-4], "little")
    tree, end = _load(data[-8 - size : -8], 0, _STRUCT)
    assert end == size
    return list(tree)


def with_footer(data: bytes, tree: list[Any]) -> bytes:
    """The Parquet file with another footer."""
    size = int.from_bytes(data[-8:-4], "little")
    new = _dump(_STRUCT, tree)
    return data[: -8 - size] + new + len(new).to_bytes(4, "little") + b"PAR1"


def value(tree: Any, *path: int) -> Any:
    """The value at a path of numbers of fields and, in lists, of places."""
    for step in path:
        tree = tree[1][step] if isinstance(tree, tuple) else next(field[2] for field in tree if field[0] == step)
    return tree


def damaged_footer(data: bytes, rng: np.random.Generator) -> bytes:
    """The file with one or two values of its footer changed, or removed, or repeated."""
    tree = footer(data)
    for _ in range(int(rng.integers(1, 3))):
        # Row groups hold what most of pyarrow's accessors read.
        part = value(tree, 4) if rng.random() < 0.8 else tree
        sites = list(_sites(_STRUCT if part is tree else _LIST, part))
        _wound(*sites[int(rng.integers(0, len(sites)))], rng)
    return with_footer(data, tree)


def _sites(kind: int, node: Any) -> Iterator[tuple[Any, int, int]]:
    """Each value in a node: what holds it, its place there, and its type."""
    if kind == _STRUCT:
        for place, (_, inner, child) in enumerate(node):
            yield node, place, inner
            yield from _sites(inner, child)
    elif kind == _LIST:
        inner, children = node
        for place, child in enumerate(children):
            yield children, place, inner
            yield from _sites(inner, child)


def _wound(holder: list[Any], place: int, kind: int, rng: np.random.Generator) -> None:
    field = isinstance(holder[place], list) and len(holder[place]) == 3 and isinstance(holder[place][0], int)
    held = holder[place][2] if field else holder[place]
    if rng.random() < 0.15:
        del holder[place]
        return
    if kind in _NUMBERS:
        near = rng.random() < 0.4
        held = held + int(rng.choice([-1, 1])) if near else NUMBERS[int(rng.integers(0, len(NUMBERS)))]
    elif kind == _BINARY:
        held = [held[: int(rng.integers(0, len(held) + 1))], held + b"x", b"", b"\xff" * 3][int(rng.integers(0, 4))]
    elif kind == _LIST:
        inner, children = held
        how = rng.integers(0, 3)
        held = (inner, [children[:-1], children + children[-1:], []][int(how)])
    if field:
        holder[place][2] = held
    else:
        holder[place] = held


def _load(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in (1, 2):
        return None, at
    if kind in _NUMBERS:
        number, at = _varint(data, at)
        return (number >> 1) ^ -(number & 1), at
    if kind == _BINARY:
        length, at = _varint(data, at)
        return data[at : at + length], at + length
    values: list[Any] = []
    if kind == _LIST:
        count, kind = data[at] >> 4, data[at] & 15
        at += 1
        if count == 15:
            count, at = _varint(data, at)
        for _ in range(count):
            child, at = (data[at], at + 1) if kind < 3 else _load(data, at, kind)
            values.append(child)
        return (kind, values), at
    assert kind == _STRUCT, kind
    number = 0
    while head := data[at]:
        at += 1
        number += head >> 4
        assert head > 15, "no field of Parquet's footers is so far from the one before"
        child, at = _load(data, at, head & 15)
        values.append([number, head & 15, child])
    return values, at + 1


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while data[at] > 127:
        number |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
    return number | data[at] << shift, at + 1


def _packed(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _dump(kind: int, node: Any) -> bytes:
    if kind in (1, 2):
        return b""
    if kind in _NUMBERS:
        return _packed((node << 1 ^ node >> 63) % 2**64)
    if kind == _BINARY:
        return _packed(len(node)) + bytes(node)
    if kind == _LIST:
        inner, children = node
        body = b"".join(bytes([child]) if inner < 3 else _dump(inner, child) for child in children)
        count = len(children)
        return (bytes([count << 4 | inner]) if count < 15 else bytes([0xF0 | inner]) + _packed(count)) + body
    out, last = b"", 0
    for number, inner, child in node:
        out += bytes([(number - last) << 4 | inner]) + _dump(inner, child)
        last = number
    return out + b"\0"
