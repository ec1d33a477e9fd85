"""Lists of data files: those of paths, folders and patterns, without hidden ones.

A link that is not followed is listed too, so that its reader says so. Guarded by tests/files/test_links.py.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import takewhile

import pyarrow.fs as pafs

from ..errors import StoreUnreachable, UnreadableFile
from .data_paths import DataPath, data_paths, require_reachable
from .links import fault_of_link
from .paths import STORE_FAULTS, hidden, locate, parts_of, unreachable

MANY = 50
"""So many paths in one folder of a store are looked up by a list of it: a request for each thousand of its files."""


@dataclass(frozen=True)
class DataFile:
    """A file that is there: its bytes, and the microsecond of its last change."""

    path: str
    size: int = 0
    changed: int = 0


@dataclass(frozen=True)
class Listing:
    """The paths of a user as they are when they are first looked at, for which each is looked up once.

    >>> Listing.of("/no/such/*.csv").files
    ()
    """

    paths: tuple[DataPath, ...]

    @classmethod
    def of(cls, paths: Sequence[str | os.PathLike[str] | DataPath] | str | os.PathLike[str]) -> Listing:
        """The paths; raise for a store that does not answer, or has no such bucket."""
        places = data_paths(paths)
        require_reachable(places)
        return cls(places)

    @cached_property
    def infos(self) -> Mapping[str, pafs.FileInfo]:
        """The kinds of the paths, and of patterns those of the folders above them, by `fixed`."""
        return _infos({place.fixed: place for place in self.paths})

    @cached_property
    def found(self) -> Mapping[str, pafs.FileInfo | None]:
        """The files, and what a store says of each."""
        files = {file: info for place in self.paths for file, info in _files(place, self.infos[place.fixed])}
        for place in self.paths:
            if place.fixed in files and os.path.isdir(place.fixed):
                del files[place.fixed]
        return files

    @property
    def files(self) -> tuple[str, ...]:
        """The files in order, among them the paths that are no pattern, and of which nothing has the name."""
        return tuple(sorted(self.found))

    @property
    def lost(self) -> list[DataPath]:
        """The paths that are no patterns, and of which nothing has the name."""
        gone = [place for place in self.paths if not place.pattern and self._kind(place) == pafs.FileType.NotFound]
        return [place for place in gone if place.address or not os.path.islink(place.fixed)]

    @property
    def root(self) -> str:
        """The folder below which `key=value` folders are columns.

        It is the folder that all paths share. A file counts as its folder, a pattern as the part before it.
        """
        roots = [
            place.fixed
            if place.pattern or self._kind(place) == pafs.FileType.Directory
            else place.fixed.rpartition("/")[0]
            for place in self.paths
        ]
        names = zip(*(root.split("/") for root in roots), strict=False)
        return "/".join(shared[0] for shared in takewhile(lambda alike: len(set(alike)) == 1, names))

    def _kind(self, place: DataPath) -> pafs.FileType:
        return self.infos[place.fixed].type


def list_files(paths: Sequence[str | DataPath]) -> list[str]:
    """The files of paths, in order: files, all files below folders, and all files that match a pattern.

    A path that is no pattern is listed also if nothing has its name.
    """
    return list(Listing(data_paths(paths)).files)


def list_data_files(paths: Sequence[str | DataPath], lost: bool = False) -> list[DataFile]:
    r"""The files of paths that are there, in order, with their sizes and their last changes.

    With `lost` also paths that are no patterns, and of which nothing has the name.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("ts\n")
    >>> [file.size for file in list_data_files([str(folder), "/no/such.csv"])]
    [3]
    """
    listed = sorted(Listing(data_paths(paths)).found.items())
    files = ((path, _local_file(path) if info is None else _remote_file(path, info)) for path, info in listed)
    return [file or DataFile(path) for path, file in files if lost or file is not None]


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


def _infos(paths: Mapping[str, DataPath]) -> dict[str, pafs.FileInfo]:
    """The kinds of what is at some paths, or above patterns; many in one folder of a store by one list of it."""
    folders = defaultdict[str, list[DataPath]](list)
    for path in paths.values():
        if path.address and not path.pattern and path.fixed != path.address:
            folders[path.fixed.rpartition("/")[0]].append(path)
    listed: dict[str, pafs.FileInfo] = {}
    for folder, named in folders.items():
        if len(named) >= MANY:
            listed |= _infos_in(folder, named)
    return {fixed: listed[fixed] if fixed in listed else _info(path) for fixed, path in paths.items()}


def _infos_in(folder: str, named: Sequence[DataPath]) -> dict[str, pafs.FileInfo]:
    """The kinds of what is at some paths of one folder of a store; nothing if it may not be listed."""
    system, inside = locate(folder, named[0].access)
    try:
        infos = system.get_file_info(pafs.FileSelector(inside, allow_not_found=True))
    except STORE_FAULTS:  # who may read the objects alone
        return {}
    there = {info.base_name: info for info in sorted(infos, key=lambda info: info.type == pafs.FileType.File)}
    names = {path.fixed: path.fixed.rpartition("/")[2] for path in named}
    return {
        fixed: there.get(name) or pafs.FileInfo(f"{inside}/{name}", pafs.FileType.NotFound)
        for fixed, name in names.items()
    }


def _info(path: DataPath) -> pafs.FileInfo:
    """The kind of what is at a path, or above a pattern."""
    system, inside = locate(path.fixed, path.access)
    try:
        return system.get_file_info(inside)
    except STORE_FAULTS as error:
        raise _not_listed(path, error) from None


def _not_listed(path: DataPath, error: Exception) -> UnreadableFile | StoreUnreachable:
    if path.address:
        return unreachable(path.fixed, error)
    return UnreadableFile(f"{path.fixed} cannot be listed: {error}", path.fixed)


def _files(path: DataPath, info: pafs.FileInfo) -> Iterator[tuple[str, pafs.FileInfo | None]]:
    """The files of a path, of which `info` has the kind."""
    address = path.address
    if info.type != pafs.FileType.Directory:
        if not path.pattern:
            yield path.fixed, info if address else None
        return
    prefix = path.fixed.rstrip("/") + "/"
    try:
        for name, own in _remote_names(path) if address else _local_names(path.fixed):
            if _fits(name.split("/"), path.pattern):
                yield prefix + name, own
    except STORE_FAULTS as error:
        raise _not_listed(path, error) from None


def _remote_names(path: DataPath) -> Iterator[tuple[str, pafs.FileInfo]]:
    """The files below a folder of a store, and what it says of them."""
    system, folder = locate(path.fixed, path.access)
    start = len(folder.rstrip("/")) + 1
    for info in system.get_file_info(pafs.FileSelector(folder, recursive=True)):
        if info.type == pafs.FileType.File and not hidden(info.path[start:]):
            yield info.path[start:], info


def _local_names(folder: str) -> Iterator[tuple[str, None]]:
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
                    yield name, None
                elif entry.is_dir():
                    waiting.append(f"{name}/")
                elif entry.is_file():
                    yield name, None


def _fits(parts: list[str], pattern: Sequence[str]) -> bool:
    """True if the pattern matches the file or a folder above it."""
    return len(parts) >= len(pattern) and all(map(fnmatchcase, parts, pattern))


__all__ = ["DataFile", "Listing", "list_data_files", "list_files", "lost_links"]
