"""Lists of data files: those of paths, folders and patterns, without hidden ones.

A link that is not followed is listed too, so that its reader says so. Guarded by tests/files/test_links.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import pyarrow.fs as pafs

from ..errors import UnreadableFile
from .data_paths import DataPath, data_paths
from .links import fault_of_link
from .paths import hidden, locate, parts_of, unreachable


@dataclass(frozen=True)
class DataFile:
    """A file that is there: its bytes, and the microsecond of its last change."""

    path: str
    size: int = 0
    changed: int = 0


def list_files(paths: Sequence[str | DataPath]) -> list[str]:
    """The files of paths, in order: files, all files below folders, and all files that match a pattern.

    A path that is no pattern is listed also if nothing has its name.
    """
    return sorted(_listed(paths))


def list_data_files(paths: Sequence[str | DataPath], lost: bool = False) -> list[DataFile]:
    r"""The files of paths that are there, in order, with their sizes and their last changes.

    With `lost` also paths that are no patterns, and of which nothing has the name.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("ts\n")
    >>> [file.size for file in list_data_files([str(folder), "/no/such.csv"])]
    [3]
    """
    listed = sorted(_listed(paths).items())
    files = ((path, _local_file(path) if info is None else _remote_file(path, info)) for path, info in listed)
    return [file or DataFile(path) for path, file in files if lost or file is not None]


def _listed(paths: Sequence[str | DataPath]) -> dict[str, pafs.FileInfo | None]:
    """The files of paths; of those in a file system of Arrow what it says of them."""
    places = data_paths(paths)
    files = {file: info for place in places for file, info in _files(place)}
    for place in places:
        if place.fixed in files and os.path.isdir(place.fixed):
            del files[place.fixed]
    return files


def _local_file(path: str) -> DataFile | None:
    try:
        stat = os.stat(path)
    except OSError:  # a link that is not followed is listed, so that its reader says so
        return DataFile(path) if os.path.islink(path) else None
    return DataFile(path, stat.st_size, stat.st_mtime_ns // 1000)


def _remote_file(path: str, info: pafs.FileInfo) -> DataFile | None:
    if info.type == pafs.FileType.NotFound:
        return None
    return DataFile(path, info.size or 0, (info.mtime_ns or 0) // 1000)


def lost_links(files: Sequence[str]) -> list[str]:
    """The local files of a list that are links to nothing, which Spark does not list."""
    return [file for file in files if not parts_of(file)[0] and os.path.islink(file) and not os.path.exists(file)]


def _files(path: DataPath) -> Iterator[tuple[str, pafs.FileInfo | None]]:
    address = path.address
    system, inside = locate(path.fixed, path.access)
    try:
        info = system.get_file_info(inside)
        if info.type == pafs.FileType.Directory:
            names = _remote_names(system, inside) if address else ((name, None) for name in _local_names(path.fixed))
        elif path.pattern:
            return
        else:
            yield path.fixed, info if address else None
            return
        prefix = path.fixed.rstrip("/") + "/"
        for name, own in names:
            if _fits(name.split("/"), path.pattern):
                yield prefix + name, own
    except OSError as error:
        if address:
            raise unreachable(path.fixed, error) from None
        raise UnreadableFile(f"{path.fixed} cannot be listed: {error}", path.fixed) from None


def _remote_names(system: pafs.FileSystem, folder: str) -> Iterator[tuple[str, pafs.FileInfo]]:
    """The files below a folder of a file system of Arrow, and what it says of them."""
    start = len(folder.rstrip("/")) + 1
    for info in system.get_file_info(pafs.FileSelector(folder, recursive=True)):
        if info.type == pafs.FileType.File and not hidden(info.path[start:]):
            yield info.path[start:], info


def _local_names(folder: str) -> Iterator[str]:
    """The files below a local folder, and the links that are not followed."""
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with os.scandir(f"{folder}/{below}") as entries:
            for entry in entries:
                if hidden(entry.name):
                    continue
                name = below + entry.name
                if entry.is_symlink() and fault_of_link(f"{folder.rstrip('/')}/{name}", folder) is not None:
                    yield name
                elif entry.is_dir():
                    waiting.append(f"{name}/")
                elif entry.is_file():
                    yield name


def _fits(parts: list[str], pattern: Sequence[str]) -> bool:
    """True if the pattern matches the file or a folder above it."""
    return len(parts) >= len(pattern) and all(map(fnmatchcase, parts, pattern))


__all__ = ["DataFile", "list_data_files", "list_files", "lost_links"]
