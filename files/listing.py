"""Lists of data files: those of paths, folders and patterns, without hidden ones.

A link that is not followed is listed too, so that its reader says so. Guarded by tests/files/test_links.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

import pyarrow.fs as pafs

from ..errors import UnreadableFile
from .data_paths import DataPath, data_paths
from .links import fault_of_link
from .paths import hidden, locate, parts_of


def list_files(paths: Sequence[str | DataPath]) -> list[str]:
    """The files of paths, in order: files, all files below folders, and all files that match a pattern.

    A path that is no pattern is listed also if nothing has its name.
    """
    places = data_paths(paths)
    files = {file for place in places for file in _files(place)}
    linked = {place.fixed for place in places if place.fixed in files and os.path.isdir(place.fixed)}
    return sorted(files - linked)


def lost_links(files: Sequence[str]) -> list[str]:
    """The local files of a list that are links to nothing, which Spark does not list."""
    return [file for file in files if not parts_of(file)[0] and os.path.islink(file) and not os.path.exists(file)]


def _files(path: DataPath) -> Iterator[str]:
    address, _ = parts_of(path.fixed)
    system, inside = locate(path.fixed)
    try:
        info = system.get_file_info(inside)
        if info.type == pafs.FileType.Directory:
            names = _remote_names(system, inside) if address else _local_names(path.fixed)
        elif path.pattern:
            return
        else:
            yield path.fixed
            return
        prefix = path.fixed.rstrip("/") + "/"
        for name in names:
            if _fits(name.split("/"), path.pattern):
                yield prefix + name
    except OSError as error:
        raise UnreadableFile(f"{path.fixed} cannot be listed: {error}", path.fixed) from None


def _remote_names(system: pafs.FileSystem, folder: str) -> Iterator[str]:
    """The files below a folder of a file system of Arrow."""
    start = len(folder.rstrip("/")) + 1
    for info in system.get_file_info(pafs.FileSelector(folder, recursive=True)):
        if info.type == pafs.FileType.File and not hidden(info.path[start:]):
            yield info.path[start:]


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


__all__ = ["list_files", "lost_links"]
