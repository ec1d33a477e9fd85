"""Paths of data files: names as in Spark, file systems of Arrow, and lists of files without hidden ones."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

import pyarrow.fs as pafs

from ...errors import InvalidArgument, UnreadableFile

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?://([^/]*))?(/.*|$)", re.DOTALL)
_GLOB = re.compile(r"[*?\[]")

ARROW_SCHEMES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfs", "abfss": "abfss", "viewfs": "viewfs"}
"""Hadoop's names of file systems, and the names of Arrow for them."""


def parts_of(path: str) -> tuple[str, str]:
    """Split a path into the address of its file system ("" for the local one) and the path in it.

    Nothing is percent-decoded, since Spark's file sources use the names on disk.

    >>> from uncombine.panes.readers.paths import parts_of
    >>> parts_of("file:/tmp/a%20b.parquet"), parts_of("s3a://bucket/x.csv")
    (('', '/tmp/a%20b.parquet'), ('s3://bucket', '/x.csv'))
    """
    found = _SCHEME.fullmatch(path)
    if found is None:
        return "", path
    scheme, authority, rest = found.group(1).lower(), found.group(2) or "", found.group(3)
    if scheme == "file":
        return "", rest
    return f"{ARROW_SCHEMES.get(scheme, scheme)}://{authority}", rest


def absolute(path: str) -> str:
    """The path without a trailing slash; a local path becomes absolute."""
    address, inside = parts_of(path)
    return address + inside.rstrip("/") if address else os.path.abspath(inside)


def locate(path: str) -> tuple[pafs.FileSystem, str]:
    """The Arrow file system of a path, and the path in the form of that file system."""
    address, inside = parts_of(path)
    if not address:
        return _local(), inside
    system, root = _system(address)
    return system, root + inside


@lru_cache(maxsize=1)
def _local() -> pafs.FileSystem:
    return pafs.LocalFileSystem()


@lru_cache(maxsize=64)
def _system(address: str) -> tuple[pafs.FileSystem, str]:
    try:
        system, root = pafs.FileSystem.from_uri(address + "/")
    except (OSError, ValueError, NotImplementedError) as error:
        raise UnreadableFile(f"{address} cannot be reached: {error}", address) from None
    return system, root.rstrip("/")


def hidden(relative: str) -> bool:
    """True for a path that Spark ignores below the folder that is read: `_SUCCESS`, `.part.crc`, `_delta_log/x`."""
    return any(
        part.startswith(".") or (part.startswith("_") and "=" not in part) or part.endswith("._COPYING_")
        for part in relative.split("/")
    )


def root_of(paths: Sequence[str]) -> str:
    """The folder below which `key=value` folders are columns.

    It is the folder that all paths share. A file counts as its folder, a pattern as the part before its first wildcard.
    """
    roots = []
    for path in paths:
        fixed = fixed_part(absolute(path))
        roots.append(_parent(fixed) if fixed == absolute(path) and not _is_folder(fixed) else fixed)
    first = roots[0].split("/")
    alike = 0
    while all(len(r.split("/")) > alike and r.split("/")[alike] == first[alike : alike + 1][0] for r in roots):
        alike += 1
        if alike == len(first):
            break
    return "/".join(first[:alike])


def fixed_part(path: str) -> str:
    """The part of a path before the first wildcard."""
    address, inside = parts_of(path)
    parts = inside.split("/")
    wild = next((i for i, part in enumerate(parts) if _GLOB.search(part)), None)
    return path if wild is None else address + "/".join(parts[:wild])


def list_files(paths: Sequence[str]) -> list[str]:
    """The files of paths, in order: files, all files below folders, and all files that match a pattern."""
    found: dict[str, None] = {}
    for path in paths:
        found.update(dict.fromkeys(_files(absolute(path))))
    return sorted(found)


def _files(path: str) -> Iterator[str]:
    fixed = fixed_part(path)
    address, _ = parts_of(path)
    system, inside = locate(fixed)
    cut = len(_system(address)[1]) if address else 0
    try:
        info = system.get_file_info(inside)
        if info.type == pafs.FileType.File:
            yield fixed
            return
        if info.type == pafs.FileType.NotFound:
            return
        below = system.get_file_info(pafs.FileSelector(inside, recursive=True))
    except OSError as error:
        raise UnreadableFile(f"{fixed} cannot be listed: {error}", fixed) from None
    start = len(inside.rstrip("/")) + 1
    pattern = path[len(fixed) + 1 :].split("/") if path != fixed else []
    for one in below:
        relative = one.path[start:]
        if one.type == pafs.FileType.File and not hidden(relative) and _fits(relative.split("/"), pattern):
            yield address + one.path[cut:]


def _fits(parts: list[str], pattern: list[str]) -> bool:
    """True if the pattern matches the file or a folder above it."""
    return len(parts) >= len(pattern) and all(map(fnmatchcase, parts, pattern))


def _is_folder(path: str) -> bool:
    system, inside = locate(path)
    try:
        return bool(system.get_file_info(inside).type == pafs.FileType.Directory)
    except OSError as error:
        raise UnreadableFile(f"{path} cannot be listed: {error}", path) from None


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def paths_of(paths: Sequence[str] | str | os.PathLike[str]) -> list[str]:
    """The paths of a user as a list of texts, which is not empty."""
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given or not all(isinstance(path, str | os.PathLike) and os.fspath(path) for path in given):
        raise InvalidArgument(f"files are named by a path or a list of paths, but the path is {paths!r}")
    return [os.fspath(path) for path in given]
