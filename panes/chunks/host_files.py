"""Bytes by name in files that all processes of a host share.

A file goes by a name that nobody can guess and is written only once, so that it can be missing and cannot be wrong.
What is not whole, or has been changed, for whatever reason, is taken for missing.

Nobody calculates on the memory of a shared file: another process that overwrote it in place would change a result, and
one that truncated it would end every process that has it mapped. What is read is copied and checked on the way, into
the heap or, if it is large, into a file without a name, which no other process can open. Measured on 2.5 million
windows (a file of 310 MB) of which a batch touches 10,000: the first load takes 0.3 s for 0.1 s from the mapped file,
once in each worker; later batches take the same 60 ms. Each worker pays for its copy with pages of the page cache,
which the system can write out, where they once had one between them. Copies only in a heap of 256 MiB would be read
anew in each batch, 0.13 s, and checked mapped files would still end the process.
"""

from __future__ import annotations

import getpass
import mmap
import os
import stat
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import pyarrow as pa

_MAGIC = b"uncombine chunk2"
_TRAILER = len(_MAGIC) + 12

LARGE = 32 << 20
"""From so many bytes on they are kept in a file and not in the heap; each such file is an open one of the process."""

_BLOCK = 1 << 20


@dataclass(frozen=True)
class Body:
    """Bytes that no other process can change."""

    buffer: pa.Buffer
    on_file: bool = False
    """Whether they are on a file without a name, and not in the heap."""


def default_directory() -> Path:
    """Where files are kept if nobody says otherwise: a directory of this user among the temporary files."""
    # Not every user in a container has a name.
    user = os.getuid() if hasattr(os, "getuid") else getpass.getuser()
    return Path(tempfile.gettempdir()) / f"uncombine-{user}"


class FileCache:
    """Bytes by name in a directory, with the oldest removed when they are too many.

    >>> import tempfile
    >>> files = FileCache(tempfile.mkdtemp(), limit=1000)
    >>> files.put("a1", b"some bytes")
    True
    >>> files.get("a1").buffer.to_pybytes(), files.get("b2")
    (b'some bytes', None)
    """

    def __init__(self, directory: str | Path | None = None, limit: int = 2 << 30) -> None:
        self.directory = default_directory() if directory is None else Path(directory)
        self.limit = limit
        self._unchecked = limit
        self._usable: bool | None = None

    def get(self, name: str) -> Body | None:
        """A copy of the bytes, or None if there is no such file or it is not whole."""
        if not self._ready():
            return None
        path = self._path(name)
        try:
            with open(path, "rb", buffering=0) as file:
                body = self._copied(file, name)
            if body is not None:
                # So that the files in use are not the oldest.
                os.utime(path)
        except OSError:
            return None
        return body

    def put(self, name: str, value: bytes | pa.Buffer) -> bool:
        """Write a file that nobody sees before it is whole; False if it cannot be."""
        if not self._ready():
            return False
        fresh = self._path(f"{name}.{uuid4().hex}.new")
        size = len(memoryview(value))
        try:
            try:
                with open(fresh, "wb") as file:
                    file.write(value)
                    file.write(_trailer(name, size, zlib.crc32(value)))
                os.replace(fresh, self._path(name))
            finally:
                fresh.unlink(missing_ok=True)
        except OSError:
            # The directory may have been removed: look again.
            self._usable = None
            return False
        self._unchecked += size
        if self._unchecked > self.limit // 16:
            self._unchecked = 0
            self._shrink()
        return True

    def written(self, write: Callable[[Any], object], about: int) -> Body:
        """What `write` writes into the file that it is given, about so many bytes, where nobody else can change it."""
        if about >= LARGE and self._ready():
            try:
                with tempfile.TemporaryFile(dir=self.directory) as file:
                    write(pa.PythonFile(file, "w"))
                    file.flush()
                    return _on_file(file)
            except (OSError, pa.ArrowException):
                # No room there: it goes into the heap.
                self._usable = None
        sink = pa.BufferOutputStream()
        write(sink)
        return Body(sink.getvalue())

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return self._ready() and self._path(name).exists()

    def forget(self, name: str) -> None:
        """Remove a file, if it is there and nobody keeps it."""
        if self._ready():
            _remove(self._path(name))

    def _copied(self, file: IO[bytes], name: str) -> Body | None:
        size = os.fstat(file.fileno()).st_size - _TRAILER
        if size < 0:
            return None
        if size < LARGE:
            heap = pa.allocate_buffer(size)
            check = _read(file, memoryview(heap))
            body = Body(heap)
        else:
            with tempfile.TemporaryFile(dir=self.directory, buffering=0) as own:
                check = _copy(file, own, size)
                body = _on_file(own)
        whole = body.buffer.size == size and file.read(_TRAILER) == _trailer(name, size, check)
        return body if whole else None

    def _path(self, name: str) -> Path:
        return self.directory / name

    def _ready(self) -> bool:
        """Whether the directory is there and only of this user, so that nobody else can put anything into it."""
        if self._usable is None:
            try:
                self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                found = self.directory.lstat()
                private = not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o077)
                self._usable = stat.S_ISDIR(found.st_mode) and private
            except OSError:
                self._usable = False
        return self._usable

    def _shrink(self) -> None:
        """Remove the oldest files, down to three quarters of the bytes allowed."""
        found: list[tuple[float, int, Path]] = []
        try:
            with os.scandir(self.directory) as entries:
                for entry in entries:
                    try:
                        about = entry.stat(follow_symlinks=False)
                    except OSError:
                        # Somebody else removed it in the meantime.
                        continue
                    found.append((about.st_mtime, about.st_size, Path(entry.path)))
        except OSError:
            return
        total = sum(size for _, size, _ in found)
        if total <= self.limit:
            return
        for _, size, path in sorted(found):
            if total <= self.limit * 3 // 4:
                break
            _remove(path)
            total -= size


def _read(file: IO[bytes], memory: memoryview) -> int:
    """Fill the memory as far as the file goes, and give the checksum of what was read."""
    at = check = 0
    while count := file.readinto(memory[at : at + _BLOCK]):  # type: ignore[attr-defined]
        check = zlib.crc32(memory[at : at + count], check)
        at += count
    return check


def _copy(file: IO[bytes], own: IO[bytes], size: int) -> int:
    """Copy so many bytes, if there are, and give the checksum of what was copied."""
    block = memoryview(bytearray(_BLOCK))
    check = 0
    while size and (count := file.readinto(block[: min(size, _BLOCK)])):  # type: ignore[attr-defined]
        check = zlib.crc32(block[:count], check)
        own.write(block[:count])
        size -= count
    return check


def _on_file(own: IO[bytes]) -> Body:
    return Body(pa.py_buffer(mmap.mmap(own.fileno(), 0, access=mmap.ACCESS_READ)), on_file=True)


def _trailer(name: str, size: int, check: int) -> bytes:
    # The name, so that a file that was renamed to another's is not taken for it.
    named = zlib.crc32(name.encode(), check)
    return _MAGIC + size.to_bytes(8, "little") + named.to_bytes(4, "little")


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError:
        # Gone already, or in use where files in use stay.
        return
