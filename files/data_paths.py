"""The paths that a user names: each is a file, a folder, or a pattern. An existing path is itself.

Guarded by tests/files/test_data_paths.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow.fs as pafs

from ..errors import UnreadableFile
from .paths import absolute, locate, parts_of, paths_of

_WILD = re.compile(r"[*?\[\]{}\\]")
"""Characters that Spark takes for wildcards, or for a part of them."""


@dataclass(frozen=True)
class DataPath:
    """A path that a user named: a file or a folder, or a pattern of names below a folder.

    A wildcard counts only where nothing has the name that it stands in, so an existing path is itself.

    >>> from uncombine.files.data_paths import DataPath
    >>> DataPath.of("/no/such/*.csv").words
    '/no/such/*.csv (a pattern)'
    """

    text: str
    """The path as the user wrote it."""
    fixed: str
    """The absolute path, without its pattern."""
    pattern: tuple[str, ...] = ()
    """The names with wildcards, and those below them."""

    @classmethod
    def of(cls, text: str) -> DataPath:
        """The path, of which each name with wildcards is looked up."""
        path = absolute(text)
        address, inside = parts_of(path)
        parts = inside.split("/")
        for place, part in enumerate(parts):
            if _WILD.search(part) and not _exists(address + "/".join(parts[: place + 1])):
                return cls(text=text, fixed=address + "/".join(parts[:place]), pattern=tuple(parts[place:]))
        return cls(text, path)

    @property
    def words(self) -> str:
        """The path and its kind, if it has wildcards."""
        if not _WILD.search(self.text):
            return self.text
        if not self.pattern:
            return f"{self.text} (an existing path, not a pattern)"
        below = f" {'/'.join(self.pattern)!r} below the existing {self.fixed}" if _WILD.search(self.fixed) else ""
        return f"{self.text} (a pattern{below})"

    @property
    def for_spark(self) -> str:
        """The path for Spark, with a backslash before each character of a name that Spark takes for a wildcard."""
        if not _WILD.search(self.text + self.fixed):
            return self.text
        # Spark makes a path absolute, and then looks for wildcards.
        path = absolute(self.text) if parts_of(self.text) == ("", self.text) else self.text.rstrip("/")
        parts = path.split("/")
        names = len(parts) - len(self.pattern)
        return "/".join([*map(escaped_name, parts[:names]), *parts[names:]])

    def has(self, path: str) -> bool:
        """True for a path below the folder."""
        return path.startswith(self.fixed.rstrip("/") + "/")

    def below(self, name: str) -> str:
        """The path of a name below the folder."""
        return f"{self.fixed.rstrip('/')}/{name}"


def missing(paths: Sequence[DataPath]) -> list[DataPath]:
    """The paths that are no patterns, and of which nothing has the name."""
    return [path for path in paths if not path.pattern and not _exists(path.fixed)]


def escaped_name(path: str) -> str:
    r"""A path that Spark takes for itself, though it has wildcards.

    >>> print(escaped_name("/data/export [1]"))
    /data/export \[1\]
    """
    return _WILD.sub(r"\\\g<0>", path)


def data_paths(paths: Sequence[str | os.PathLike[str] | DataPath] | str | os.PathLike[str]) -> tuple[DataPath, ...]:
    """The paths of a user, of which there is at least one."""
    if not isinstance(paths, str | os.PathLike) and paths and all(isinstance(path, DataPath) for path in paths):
        return tuple(path for path in paths if isinstance(path, DataPath))
    return tuple(map(DataPath.of, paths_of(paths)))  # type: ignore[arg-type]


def root_of(paths: Sequence[DataPath]) -> str:
    """The folder below which `key=value` folders are columns.

    It is the folder that all paths share. A file counts as its folder, a pattern as the part before it.
    """
    roots = [path.fixed if path.pattern or _is_folder(path.fixed) else path.fixed.rpartition("/")[0] for path in paths]
    first = roots[0].split("/")
    alike = 0
    while all(len(r.split("/")) > alike and r.split("/")[alike] == first[alike : alike + 1][0] for r in roots):
        alike += 1
        if alike == len(first):
            break
    return "/".join(first[:alike])


def _exists(path: str) -> bool:
    """True for a path that is there, be it a link to nothing; False also where the driver cannot look."""
    try:
        system, inside = locate(path)
        return bool(system.get_file_info(inside).type != pafs.FileType.NotFound) or _is_link(path)
    except (OSError, UnreadableFile):
        return False


def _is_link(path: str) -> bool:
    address, inside = parts_of(path)
    return not address and os.path.islink(inside)


def _is_folder(path: str) -> bool:
    system, inside = locate(path)
    try:
        return bool(system.get_file_info(inside).type == pafs.FileType.Directory)
    except OSError as error:
        raise UnreadableFile(f"{path} cannot be listed: {error}", path) from None


__all__ = ["DataPath", "data_paths", "escaped_name", "missing", "root_of"]
