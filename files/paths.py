"""Paths of data files: names as in Spark, and file systems of Arrow."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import lru_cache

import pyarrow.fs as pafs

from ..errors import InvalidArgument, UnreadableFile

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?://([^/]*))?(/.*|$)", re.DOTALL)

ARROW_SCHEMES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfs", "abfss": "abfss", "viewfs": "viewfs"}
"""Hadoop's names of file systems, and the names of Arrow for them."""


def parts_of(path: str) -> tuple[str, str]:
    """Split a path into the address of its file system ("" for the local one) and the path in it.

    Nothing is percent-decoded, since Spark's file sources use the names on disk.

    >>> from uncombine.files.paths import parts_of
    >>> parts_of("file:/tmp/a%20b.parquet"), parts_of("s3a://bucket/x.csv")
    (('', '/tmp/a%20b.parquet'), ('s3://bucket', '/x.csv'))
    """
    match = _SCHEME.fullmatch(path)
    if match is None:
        return "", path
    scheme, authority, rest = match.group(1).lower(), match.group(2) or "", match.group(3)
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


def paths_of(paths: Sequence[str] | str | os.PathLike[str]) -> list[str]:
    """The paths of a user as a list of texts, which is not empty."""
    several = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not several or not all(isinstance(path, str | os.PathLike) and os.fspath(path) for path in several):
        raise InvalidArgument(f"files are named by a path or a list of paths, but the path is {paths!r}")
    return [os.fspath(path) for path in several]
