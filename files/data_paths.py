"""The paths that a user names: each is a file, a folder, or a pattern. An existing path is itself.

Guarded by tests/files/test_data_paths.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow.fs as pafs

from ..errors import InvalidArgument, StoreUnreachable, UnreadableFile
from .paths import NO_ACCESS, absolute, info_of, parts_of, paths_of, require_no_secret, without_parameters

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
    """The path as the user wrote it, without parameters."""
    fixed: str
    """The absolute path, without its pattern."""
    pattern: tuple[str, ...] = ()
    """The names with wildcards, and those below them."""
    parameters: str = ""
    """The parameters of the file system, such as its region."""

    @classmethod
    def of(cls, text: str) -> DataPath:
        """The path, of which each name with wildcards is looked up."""
        require_no_secret([text])
        text, parameters = without_parameters(text)
        path = absolute(text)
        address, inside = parts_of(path)
        access = {address: parameters}
        parts = inside.split("/")
        for place, part in enumerate(parts):
            if _WILD.search(part) and not _exists(address + "/".join(parts[: place + 1]), access):
                return cls(text, address + "/".join(parts[:place]), tuple(parts[place:]), parameters)
        return cls(text, path, (), parameters)

    @property
    def address(self) -> str:
        """The address of the file system; "" for the local one."""
        return parts_of(self.fixed)[0]

    @property
    def access(self) -> Mapping[str, str]:
        """The parameters of the file system by its address."""
        return {self.address: self.parameters} if self.parameters else NO_ACCESS

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


def access_of(paths: Sequence[DataPath]) -> Mapping[str, str]:
    """The parameters of file systems by their addresses; raise if a file system has two kinds of them.

    >>> access_of(data_paths(["/in", "s3://bucket/in?region=eu-west-1"]))
    {'s3://bucket': 'region=eu-west-1'}
    """
    every: dict[str, str] = {}
    for path in paths:
        if path.address and every.setdefault(path.address, path.parameters) != path.parameters:
            raise InvalidArgument(
                f"the paths in {path.address} have different parameters, {every[path.address]!r} and "
                f"{path.parameters!r}: write the same after each of them"
            )
    return {address: parameters for address, parameters in every.items() if parameters}


def require_reachable(paths: Sequence[DataPath]) -> None:
    """Raise for an object store of some paths that does not answer, or has no such bucket."""
    access = access_of(paths)
    for path in {path.address: path for path in paths if path.address}.values():
        # Who may read some objects alone may not ask for the bucket.
        if not any(_exists(place, access) for place in (path.fixed, path.address)):
            raise UnreadableFile(
                f"there is no bucket or container {path.address}: check its name, its region and its endpoint",
                path.text,
            )


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


def _exists(path: str, access: Mapping[str, str]) -> bool:
    """True for a path that is there, be it a link to nothing; False also where the driver cannot look on its disk."""
    try:
        return bool(info_of(path, access).type != pafs.FileType.NotFound) or _is_link(path)
    except StoreUnreachable:
        raise
    except OSError:
        return False


def _is_link(path: str) -> bool:
    address, inside = parts_of(path)
    return not address and os.path.islink(inside)


__all__ = ["DataPath", "access_of", "data_paths", "escaped_name", "require_reachable"]
