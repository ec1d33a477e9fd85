"""Bytes by name in files that all processes of a host share.

A file has an unguessable name and is written only once, so it can be missing but cannot be wrong. A file that is
incomplete or was changed counts as missing.

No result is computed on the memory of a shared file. Another process could overwrite the file in place, which would
change a result, or truncate it, which would kill every process that has it mapped. So a file is copied and checked as
it is read: into the heap or, if it is large, into an unnamed file, which no other process can open.

Measured on 2.5 million windows (a file of 310 MB) of which a bundle touches 10,000: the first load in each worker takes
0.3 s, and 0.1 s from a mapped file; later bundles take 60 ms either way. The copy of each worker uses the page cache,
which the system can write out. Copies in a heap of 256 MiB would have to be read again for each bundle (0.13 s).
"""

from __future__ import annotations

import getpass
import mmap
import os
import re
import stat
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import pyarrow as pa

from ...errors import InvalidArgument

_MAGIC = b"uncombine chunk2"
_TRAILER = len(_MAGIC) + 12

LARGE = 32 << 20
"""Bytes of at least this size are kept in a file and not in the heap. The process keeps each such file open."""

_BLOCK = 1 << 20

_NAME = re.compile(r"[0-9A-Za-z]{1,64}")
"""A name of a file in the directory itself, with no way out of it."""


@dataclass(frozen=True)
class Body:
    """Bytes that no other process can change."""

    buffer: pa.Buffer
    on_file: bool = False
    """True if the bytes are in an unnamed file, and not in the heap."""


def default_directory() -> Path:
    """The directory of files if none is given: one of this user, among the temporary files."""
    # A user in a container may have no name.
    user = os.getuid() if hasattr(os, "getuid") else getpass.getuser()
    return Path(tempfile.gettempdir()) / f"uncombine-{user}"


class FileCache:
    """Bytes by name in a directory. The oldest files are removed when all together exceed a limit.

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
        """A copy of the bytes; None if the file is missing or incomplete."""
        if not self._ready():
            return None
        path = self._path(name)
        try:
            with open(path, "rb", buffering=0) as file:
                body = self._copied(file, name)
            if body is not None:
                # A file in use must not be the oldest.
                os.utime(path)
        except OSError:
            return None
        return body

    def put(self, name: str, value: bytes | pa.Buffer) -> bool:
        """Write a file that others see only when it is complete; False if it cannot be written."""
        if not self._ready():
            return False
        path = self._path(name)
        fresh = path.with_name(f"{name}.{uuid4().hex}.new")
        size = len(memoryview(value))
        try:
            try:
                with open(fresh, "wb") as file:
                    file.write(value)
                    file.write(_trailer(name, size, zlib.crc32(value)))
                os.replace(fresh, path)
            finally:
                fresh.unlink(missing_ok=True)
        except OSError:
            # The directory may be gone: check it again next time.
            self._usable = None
            return False
        self._unchecked += size
        if self._unchecked > self.limit // 16:
            self._unchecked = 0
            self._shrink()
        return True

    def written(self, write: Callable[[Any], object], about: int) -> Body:
        """The bytes that `write` writes, roughly `about` of them, kept where no other process can change them.

        It may be called twice, and writes the same bytes each time.
        """
        if about >= LARGE and self._ready():
            try:
                with tempfile.TemporaryFile(dir=self.directory) as file:
                    write(pa.PythonFile(file, "w"))
                    file.flush()
                    return _on_file(file)
            except (OSError, pa.ArrowException):
                # The disk has no room: use the heap.
                self._usable = None
        # A buffer that grows is copied again and again, so the size is counted first.
        counted = pa.MockOutputStream()
        write(counted)
        buffer = pa.allocate_buffer(counted.size())
        write(pa.FixedSizeBufferWriter(buffer))
        return Body(buffer)

    def has(self, name: str) -> bool:
        """True if there is a file of this name."""
        return self._ready() and self._path(name).exists()

    def forget(self, name: str) -> None:
        """Remove a file, if it is there and the system allows it."""
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
        if not _NAME.fullmatch(name):
            raise InvalidArgument(f"a file of the cache has letters and digits as its name, not {name!r}")
        return self.directory / name

    def _ready(self) -> bool:
        """True if the directory exists and belongs to this user only, so that no other user can write into it."""
        if self._usable is None:
            try:
                self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                status = self.directory.lstat()
                private = not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o077)
                self._usable = stat.S_ISDIR(status.st_mode) and private
            except OSError:
                self._usable = False
        return self._usable

    def _shrink(self) -> None:
        """Remove the oldest files until all together use three quarters of the limit."""
        files: list[tuple[float, int, Path]] = []
        try:
            with os.scandir(self.directory) as entries:
                for entry in entries:
                    try:
                        about = entry.stat(follow_symlinks=False)
                    except OSError:
                        # Another process removed it in the meantime.
                        continue
                    files.append((about.st_mtime, about.st_size, Path(entry.path)))
        except OSError:
            return
        total = sum(size for _, size, _ in files)
        if total <= self.limit:
            return
        for _, size, path in sorted(files):
            if total <= self.limit * 3 // 4:
                break
            _remove(path)
            total -= size


def _read(file: IO[bytes], memory: memoryview) -> int:
    """Read the file into the memory, and return the checksum of the bytes read."""
    at = check = 0
    while count := file.readinto(memory[at : at + _BLOCK]):  # type: ignore[attr-defined]
        check = zlib.crc32(memory[at : at + count], check)
        at += count
    return check


def _copy(file: IO[bytes], own: IO[bytes], size: int) -> int:
    """Copy at most `size` bytes, and return the checksum of the bytes copied."""
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
    # With the name, so that a renamed file is not mistaken for another.
    named = zlib.crc32(name.encode(), check)
    return _MAGIC + size.to_bytes(8, "little") + named.to_bytes(4, "little")


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError:
        # It is gone already, or in use on a system that keeps files in use.
        return
