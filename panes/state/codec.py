"""Chunks and their deaths as bytes: a compact form for a state store, and a form that memory can use as it is.

A state store is slow. Its form is compressed and has no hashes and no index, which are computed faster than they could
be read. A local file is fast. Its form has both and is not compressed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import flat
from ...windows.times import NEVER
from .hashes import Index
from .pane_type import with_panes_of_now
from .store import Chunk

CODEC = "zstd"

DAMAGE = (pa.ArrowException, OSError, ValueError, TypeError, LookupError, MemoryError, OverflowError)
"""The errors of reading bytes that were never written here; they can have the right checksum all the same."""

_WAKE = "wake."
_ADDED = (_WAKE, "index.")
_HASH, _ORDER, _SORTED = "index.hash", "index.order", "index.sorted"
_BITS = b"b"
_WIDTHS: dict[bytes, np.dtype[Any]] = {b"1": np.dtype("<u1"), b"2": np.dtype("<u2"), b"4": np.dtype("<u4")}


def pack(chunk: Chunk) -> bytes:
    """Write the rows of a chunk, dead or alive, and their clocks, for a state store."""
    sink = pa.BufferOutputStream()
    _write(_with_wake(chunk), sink, pa.ipc.IpcWriteOptions(compression=CODEC))
    return sink.getvalue().to_pybytes()


def unpack(value: bytes, hashes_of: Callable[[pa.Table], np.ndarray]) -> Chunk:
    """The chunk that `pack` wrote, with every row alive; `hashes_of` may refuse its rows.

    The value may come from anywhere, so that its offsets and texts are checked before they are used.
    """
    table = _read(pa.py_buffer(value))
    table.validate(full=True)
    table, extra = _split(with_panes_of_now(table))
    for clock, values in extra.items():
        if not clock.startswith(_WAKE) or values.dtype != np.int64:
            raise ValueError(f"column {clock!r} is no clock")
    hashes = hashes_of(table)
    if hashes.dtype != np.uint64:
        raise ValueError(f"the hashes of the rows are {hashes.dtype}")
    return _chunk(hashes, table, _wake(extra), Index(hashes))


def lay_out(chunk: Chunk, file: pa.NativeFile) -> None:
    """Write the rows of a chunk with clocks, hashes and index, in a form that memory can use as it is."""
    order, ordered = chunk.index.arrays()
    table = _with_wake(chunk)
    for name, values in ((_HASH, chunk.hashes), (_ORDER, order.astype(np.int32, copy=False)), (_SORTED, ordered)):
        table = table.append_column(name, pa.array(values))
    _write(table, file, pa.ipc.IpcWriteOptions())


def laid_out(buffer: pa.Buffer) -> Chunk:
    """The chunk that `lay_out` wrote, on the same memory, with every row alive."""
    table, extra = _split(with_panes_of_now(_read(buffer)))
    hashes, order, ordered = (extra.pop(name) for name in (_HASH, _ORDER, _SORTED))
    return _chunk(hashes, table, _wake(extra), Index(hashes, order, ordered))


def pack_places(places: np.ndarray, rows: int) -> bytes:
    """Write sorted places below `rows` as distances, or as bits if that is smaller."""
    distances = np.diff(places, prepend=0)
    top = int(distances.max(initial=0))
    kind = b"1" if top < 1 << 8 else b"2" if top < 1 << 16 else b"4"
    packed = kind + pa.compress(distances.astype(_WIDTHS[kind]).tobytes(), CODEC, asbytes=True)
    if 32 * len(places) > rows:
        # Bits can be smaller only now, and only now are they worth a pass over every row.
        bits = np.zeros(rows, np.bool_)
        bits[places] = True
        other = _BITS + pa.compress(np.packbits(bits).tobytes(), CODEC, asbytes=True)
        return min(packed, other, key=len)
    return packed


def unpack_places(value: bytes, count: int, rows: int) -> np.ndarray:
    """The `count` places that `pack_places` wrote; raises `ValueError` or `OSError` for any other bytes."""
    kind = value[:1]
    if kind == _BITS:
        raw = pa.decompress(value[1:], -(-rows // 8), CODEC, asbytes=True)
        places = np.flatnonzero(np.unpackbits(np.frombuffer(raw, np.uint8), count=rows))
    elif kind in _WIDTHS:
        dtype = _WIDTHS[kind]
        raw = pa.decompress(value[1:], count * dtype.itemsize, CODEC, asbytes=True)
        places = np.cumsum(np.frombuffer(raw, dtype), dtype=np.int64)
    else:
        raise ValueError(f"{kind!r} is no kind of places")
    ordered = len(places) == 0 or (places[-1] < rows and bool((np.diff(places) > 0).all()))
    if len(places) != count or not ordered:
        raise ValueError(f"{count} places of {rows} rows were written, but these are others")
    return places


def size_of(chunk: Chunk) -> int:
    """The bytes of the rows of a chunk and of its index, roughly."""
    return int(chunk.table.nbytes) + sum(w.nbytes for w in chunk.wake.values()) + 20 * len(chunk.hashes)


def _with_wake(chunk: Chunk) -> pa.Table:
    table = chunk.table
    for clock, values in chunk.wake.items():
        table = table.append_column(_WAKE + clock, pa.array(values))
    return table.combine_chunks()


def _write(table: pa.Table, sink: pa.NativeFile, options: pa.ipc.IpcWriteOptions) -> None:
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)


def _read(buffer: pa.Buffer) -> pa.Table:
    return pa.ipc.open_stream(pa.BufferReader(buffer)).read_all()


def _split(table: pa.Table) -> tuple[pa.Table, dict[str, np.ndarray]]:
    """The rows in the columns of their store, and the added columns as numpy arrays."""
    # A column of one chunk stays on its memory, such as that of a file.
    added = [name for name in table.column_names if name.startswith(_ADDED)]
    return table.drop_columns(added), {name: flat(table[name]).to_numpy() for name in added}


def _wake(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(_WAKE): values for name, values in columns.items()}


def _chunk(hashes: np.ndarray, table: pa.Table, wake: dict[str, np.ndarray], index: Index) -> Chunk:
    # The least readings are in the manifest.
    least = dict.fromkeys(wake, NEVER)
    return Chunk(
        hashes=hashes,
        table=table,
        wake=wake,
        alive=np.ones(len(hashes), np.bool_),
        count=len(hashes),
        least=least,
        index=index,
        exact=False,
    )
