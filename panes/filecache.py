"""Bytes by name in files that all processes of a host share.

A file goes by a name that nobody can guess and is written only once, so that it can be missing and cannot be wrong.
What is not whole, for whatever reason, is taken for missing.
"""

from __future__ import annotations

import getpass
import os
import stat
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

_MAGIC = b"uncombine chunk1"
_TRAILER = len(_MAGIC) + 12


def default_directory() -> Path:
    """Where files are kept if nobody says otherwise: a directory of this user among the temporary files."""
    # Not every user in a container has a name.
    user = os.getuid() if hasattr(os, "getuid") else getpass.getuser()
    return Path(tempfile.gettempdir()) / f"uncombine-{user}"


class FileCache:
    """Bytes by name in a directory, with the oldest removed when they are too many.

    >>> import tempfile
    >>> files = FileCache(tempfile.mkdtemp(), limit=1000)
    >>> written = files.put("a1", lambda file: file.write(b"some bytes"))
    >>> files.get("a1").to_pybytes(), files.get("b2")
    (b'some bytes', None)
    """

    def __init__(self, directory: str | Path | None = None, limit: int = 2 << 30) -> None:
        self.directory = default_directory() if directory is None else Path(directory)
        self.limit = limit
        self._unchecked = limit
        self._usable: bool | None = None

    def get(self, name: str) -> pa.Buffer | None:
        """The bytes on the file's own memory, or None if there is no such file or it is not whole."""
        if not self._ready():
            return None
        path = self._path(name)
        try:
            whole = _mapped(path)
            cut = whole.size - _TRAILER
            if cut < 0 or whole.slice(cut).to_pybytes() != _trailer(whole.slice(0, cut)):
                return None
            # So that the files in use are not the oldest.
            os.utime(path)
        except (OSError, pa.ArrowException):
            return None
        return whole.slice(0, cut)

    def put(self, name: str, write: Callable[[Any], object]) -> pa.Buffer | None:
        """Have a file written that nobody sees before it is whole, and give it as `get` does; None if it cannot be."""
        if not self._ready():
            return None
        fresh = self._path(f"{name}.{uuid4().hex}.new")
        try:
            try:
                with pa.OSFile(str(fresh), "wb") as file:
                    write(file)
                body = _mapped(fresh)
                with open(fresh, "ab") as file:
                    file.write(_trailer(body))
                os.replace(fresh, self._path(name))
            finally:
                fresh.unlink(missing_ok=True)
        except (OSError, pa.ArrowException):
            # The directory may have been removed: look again.
            self._usable = None
            return None
        self._unchecked += body.size
        if self._unchecked > self.limit // 16:
            self._unchecked = 0
            self._shrink()
        return body

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return self._ready() and self._path(name).exists()

    def forget(self, name: str) -> None:
        """Remove a file, if it is there and nobody keeps it."""
        if self._ready():
            _remove(self._path(name))

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


def _mapped(path: Path) -> pa.Buffer:
    with pa.memory_map(str(path)) as source:
        return source.read_buffer()


def _trailer(body: pa.Buffer) -> bytes:
    return _MAGIC + body.size.to_bytes(8, "little") + zlib.crc32(body).to_bytes(4, "little")


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError:
        # Gone already, or in use where files in use stay.
        return
