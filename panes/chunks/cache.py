"""Chunks that were read or written lately: in this process, and in files that all processes of a host share.

A cache can miss and cannot be wrong: what it holds never changes, and goes by a name that is made anew for each attempt
to write it. Chunks in this process lie on memory of its own, whatever becomes of the files (see `filecache`).
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
class _Held:
    chunk: Chunk
    stamp: str | None
    heap: int
    mapped: int
    filed: bool
    """Whether the host has a file of it."""


class ChunkCache:
    """Chunks by name, the least used forgotten first; with `files`, their rows also live in files of the host.

    Parameters
    ----------
    memory
        How many bytes of the process chunks may take.
    files
        Where all processes of a host share what they read and wrote, or None to do without.
    """

    def __init__(self, memory: int = 256 << 20, files: FileCache | None = None) -> None:
        self.memory = memory
        self.files = files
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._heap = self._mapped = 0

    @classmethod
    def shared(cls, memory: int = 256 << 20, directory: str | Path | None = None, disk: int = 2 << 30) -> ChunkCache:
        """A cache with files, in a directory of this user if none is given."""
        return cls(memory, FileCache(directory, disk))

    @property
    def held_bytes(self) -> int:
        """How many bytes of the process the chunks take."""
        return self._heap

    @property
    def mapped_bytes(self) -> int:
        """How many bytes of files of its own without a name the chunks lie on."""
        return self._mapped

    def chunk(self, name: str, stamp: str) -> Chunk | None:
        """The chunk with just the rows alive that were when it was kept under this stamp."""
        held = self._held.get(name)
        if held is None or held.stamp != stamp:
            return None
        self._held.move_to_end(name)
        return held.chunk

    def rows(self, name: str) -> Chunk | None:
        """The rows of the chunk; which are alive, the caller has to find out."""
        held = self._held.get(name)
        if held is not None:
            return held.chunk
        body = None if self.files is None else self.files.get(name)
        if body is None:
            return None
        chunk = laid_out(body.buffer)
        self._hold(name, _held(chunk, body, filed=True))
        return chunk

    def add(self, name: str, chunk: Chunk) -> Chunk:
        """Keep the rows of a new chunk, and give them on the memory on which they are kept."""
        if self.files is None:
            self._hold(name, _Held(chunk, None, size_of(chunk), 0, filed=False))
            return chunk
        body = self.files.written(partial(lay_out, chunk), size_of(chunk))
        filed = self.files.put(name, body.buffer)
        found = laid_out(body.buffer)
        chunk = replace(chunk, hashes=found.hashes, table=found.table, wake=found.wake, index=found.index)
        self._hold(name, _held(chunk, body, filed))
        return chunk

    def keep(self, name: str, stamp: str, chunk: Chunk) -> None:
        """From now on the rows alive of a chunk are these."""
        held = self._held.get(name)
        if held is None:
            held = _Held(chunk, stamp, size_of(chunk), 0, filed=False)
        self._hold(name, replace(held, chunk=chunk, stamp=stamp))

    def small(self, name: str) -> bytes | None:
        """Bytes kept with `add_small`."""
        body = None if self.files is None else self.files.get(name)
        return None if body is None else body.buffer.to_pybytes()

    def add_small(self, name: str, value: bytes) -> None:
        """Keep a few bytes, in a file only."""
        if self.files is not None:
            self.files.put(name, value)

    def forget(self, name: str) -> None:
        """Nobody will ask for this again."""
        self._drop(name)
        if self.files is not None:
            self.files.forget(name)

    def tidy(self) -> None:
        """Let go of chunks whose files are gone: another process of the host has written others in their place."""
        if self.files is not None:
            for name in [name for name, held in self._held.items() if held.filed and not self.files.has(name)]:
                self._drop(name)

    def _hold(self, name: str, held: _Held) -> None:
        self._drop(name)
        self._held[name] = held
        self._heap += held.heap
        self._mapped += held.mapped
        most = self.files.limit if self.files is not None else 0
        while self._held and (self._heap > self.memory or self._mapped > most):
            self._drop(next(iter(self._held)))

    def _drop(self, name: str) -> None:
        held = self._held.pop(name, None)
        if held is not None:
            self._heap -= held.heap
            self._mapped -= held.mapped


def _held(chunk: Chunk, body: Body, filed: bool) -> _Held:
    beside = len(chunk.alive)
    if body.on_file:
        return _Held(chunk, None, beside, body.buffer.size, filed)
    return _Held(chunk, None, beside + body.buffer.size, 0, filed)
