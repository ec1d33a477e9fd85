"""Parts of the changes of a table: data files whose rows come or are retracted, and that one task reads.

Guarded by tests/lakehouse/test_changed_files.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class ChangedFile:
    """A data file, and the weight with which its rows are read."""

    path: str
    weight: int
    """1 for rows that come, -1 for those that are retracted, 0 if each row says it in the column `_change_type`."""
    size: int
    partition: Mapping[str, str | None]
    """The values of the columns that the file lacks, because all its rows have the same, as texts."""
    masked: int | None = None
    """The version that says which rows of the file are deleted; None if all are there."""
    scan: str | None = None
    """The scan of the file, of a format that has its own way to name one."""


@dataclass(frozen=True)
class Part:
    """Files of a version that are read together; their rows and retractions that are equal cancel.

    >>> part = Part(version=3, at=0, files=(ChangedFile(path="a", weight=1, size=9, partition={}),))
    >>> Part.of_text(part.text) == part, part.size
    (True, 9)
    """

    version: int
    at: int
    """The time of the commit, in microseconds."""
    files: tuple[ChangedFile, ...]
    metadata: str | None = None
    """The place of the description of the table by which the files are read, of a format that has such."""

    @property
    def size(self) -> int:
        """The bytes of its files."""
        return sum(file.size for file in self.files)

    @property
    def nets(self) -> bool:
        """True if rows and retractions of it can be equal."""
        return len({file.weight for file in self.files}) > 1 or any(file.weight == 0 for file in self.files)

    @property
    def text(self) -> str:
        """The part as a text."""
        return json.dumps(asdict(self))

    @classmethod
    def of_text(cls, text: str) -> Part:
        """The part that a text says."""
        values: dict[str, Any] = json.loads(text)
        files = tuple(ChangedFile(**file) for file in values.pop("files"))
        return cls(files=files, **values)


def parts_of(files: Iterable[ChangedFile], version: int, at: int, metadata: str | None = None) -> list[Part]:
    """The files of a version in parts: those whose rows can be equal together, and each other one by itself.

    A row is in the files of its own partition alone.
    """
    groups: dict[str, list[ChangedFile]] = {}
    for file in files:
        groups.setdefault(json.dumps(sorted(file.partition.items())), []).append(file)
    parts: list[Part] = []
    for group in groups.values():
        apart = len({file.weight for file in group}) == 1
        together = [(file,) for file in group] if apart else [tuple(group)]
        parts += [Part(version=version, at=at, files=some, metadata=metadata) for some in together]
    return parts


__all__ = ["ChangedFile", "Part", "parts_of"]
