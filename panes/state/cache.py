"""A cache of the chunks last read or written: in this process, and in files that all processes of a host share.

The cache can miss but cannot be wrong: a cached chunk never changes, and each attempt to write one gets a new name. The
chunks of a process use memory that no other process can change or remove (see `host_files`).
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from .codec import laid_out, lay_out, size_of
from .host_files import Body, FileCache
from .store import Chunk


@dataclass(frozen=True)
class _CachedChunk:
    chunk: Chunk
    stamp: str | None
    heap: int
    mapped: int
    filed: bool
    """True if the host has a file of the chunk."""


class ChunkCache:
    """Chunks by name; the least recently used is dropped first. With `files`, rows are also in files of the host.

    Parameters
    ----------
    memory
        The largest number of bytes of the process that chunks may use.
    files
        The files that all processes of a host share; None means no files.
    """

    def __init__(self, memory: int = 256 << 20, files: FileCache | None = None) -> None:
        self.memory = memory
        self.files = files
        self._chunks: OrderedDict[str, _CachedChunk] = OrderedDict()
        self._heap = self._mapped = 0

    @classmethod
    def shared(cls, memory: int = 256 << 20, directory: str | Path | None = None, disk: int = 2 << 30) -> ChunkCache:
        """A cache with files, in a directory of this user if none is given."""
        return cls(memory, FileCache(directory, disk))

    @property
    def held_bytes(self) -> int:
        """The number of bytes of the process that the chunks use."""
        return self._heap

    @property
    def mapped_bytes(self) -> int:
        """The number of bytes of this process's unnamed files that the chunks use."""
        return self._mapped

    def chunk(self, name: str, stamp: str) -> Chunk | None:
        """The chunk, if it was kept under this stamp, with the rows alive that were alive then."""
        entry = self._chunks.get(name)
        if entry is None or entry.stamp != stamp:
            return None
        self._chunks.move_to_end(name)
        return entry.chunk

    def rows(self, name: str) -> Chunk | None:
        """The rows of the chunk. The caller must find out which of them are alive."""
        entry = self._chunks.get(name)
        if entry is not None:
            return entry.chunk
        body = None if self.files is None else self.files.get(name)
        if body is None:
            return None
        chunk = laid_out(body.buffer)
        self._hold(name, _cached(chunk, body, filed=True))
        return chunk

    def add(self, name: str, chunk: Chunk) -> Chunk:
        """Keep the rows of a new chunk, and return the chunk on the memory of the cache."""
        if self.files is None:
            self._hold(name, _CachedChunk(chunk=chunk, stamp=None, heap=size_of(chunk), mapped=0, filed=False))
            return chunk
        body = self.files.written(partial(lay_out, chunk), size_of(chunk))
        filed = self.files.put(name, body.buffer)
        copy = laid_out(body.buffer)
        chunk = replace(chunk, hashes=copy.hashes, table=copy.table, wake=copy.wake, index=copy.index)
        self._hold(name, _cached(chunk, body, filed))
        return chunk

    def keep(self, name: str, stamp: str, chunk: Chunk) -> None:
        """Keep the living rows of a chunk under a new stamp."""
        entry = self._chunks.get(name)
        if entry is None:
            entry = _CachedChunk(chunk=chunk, stamp=stamp, heap=size_of(chunk), mapped=0, filed=False)
        self._hold(name, replace(entry, chunk=chunk, stamp=stamp))

    def small(self, name: str) -> bytes | None:
        """The bytes that `add_small` kept, if they are still there."""
        body = None if self.files is None else self.files.get(name)
        return None if body is None else body.buffer.to_pybytes()

    def add_small(self, name: str, value: bytes) -> None:
        """Keep a few bytes, only in a file."""
        if self.files is not None:
            self.files.put(name, value)

    def forget(self, name: str) -> None:
        """Drop a chunk that is not needed any more."""
        self._drop(name)
        if self.files is not None:
            self.files.forget(name)

    def tidy(self) -> None:
        """Drop chunks whose files are gone, since another process of the host has replaced them."""
        if self.files is not None:
            for name in [name for name, entry in self._chunks.items() if entry.filed and not self.files.has(name)]:
                self._drop(name)

    def _hold(self, name: str, entry: _CachedChunk) -> None:
        self._drop(name)
        self._chunks[name] = entry
        self._heap += entry.heap
        self._mapped += entry.mapped
        most = self.files.limit if self.files is not None else 0
        while self._chunks and (self._heap > self.memory or self._mapped > most):
            self._drop(next(iter(self._chunks)))

    def _drop(self, name: str) -> None:
        entry = self._chunks.pop(name, None)
        if entry is not None:
            self._heap -= entry.heap
            self._mapped -= entry.mapped


def _cached(chunk: Chunk, body: Body, filed: bool) -> _CachedChunk:
    beside = len(chunk.alive)
    if body.on_file:
        return _CachedChunk(chunk=chunk, stamp=None, heap=beside, mapped=body.buffer.size, filed=filed)
    return _CachedChunk(chunk=chunk, stamp=None, heap=beside + body.buffer.size, mapped=0, filed=filed)
