"""The log of a Delta table: the actions of a commit, and what of a table of Delta is not read here.

Guarded by tests/lakehouse/test_delta_changes.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from ..errors import InvalidArgument
from .changed_files import ChangedFile

FEATURES = {"columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
"""The features of readers that are understood here."""


@dataclass(frozen=True)
class DeltaCommit:
    """The part of a commit that says which rows it changes, and how they are read from then on."""

    at: int
    """The time of the commit, in microseconds."""
    added: Sequence[Mapping[str, Any]]
    removed: Sequence[Mapping[str, Any]]
    changed: Sequence[Mapping[str, Any]]
    """Files of the change data feed, which say all that the commit changes if there is one."""
    metadata: Mapping[str, Any] | None
    protocol: Mapping[str, Any] | None

    @classmethod
    def of(cls, text: str, modified: int) -> DeltaCommit:
        """The commit that a file of the log has; `modified` is its time if it says none itself."""
        actions: dict[str, list[Any]] = {}
        for line in text.splitlines():
            for kind, action in json.loads(line).items() if line.strip() else ():
                actions.setdefault(kind, []).append(action)
        about = (actions.get("commitInfo") or [{}])[0]
        millis = about.get("inCommitTimestamp", about.get("timestamp"))
        return cls(
            at=modified if millis is None else int(millis) * 1000,
            added=[one for one in actions.get("add", ()) if one.get("dataChange", True)],
            removed=[one for one in actions.get("remove", ()) if one.get("dataChange", True)],
            changed=actions.get("cdc", ()),
            metadata=next(iter(actions.get("metaData", ())), None),
            protocol=next(iter(actions.get("protocol", ())), None),
        )

    def files(self, version: int, table: str) -> list[ChangedFile]:
        """The files whose rows the commit changes. Where it has a feed of changes, that says all."""
        if self.changed:
            return [changed_file(one, 0, None, table) for one in self.changed]
        removed = [changed_file(one, -1, version - 1, table) for one in self.removed]
        return [*removed, *(changed_file(one, 1, version, table) for one in self.added)]


def changed_file(action: Mapping[str, Any], weight: int, masked: int | None, table: str) -> ChangedFile:
    """The file of an action; `masked` is the version in which its deleted rows are looked up, if it has such."""
    return ChangedFile(
        path=inner_path(action["path"], table),
        weight=weight,
        size=action.get("size") or 0,
        partition=action.get("partitionValues") or {},
        masked=masked if action.get("deletionVector") else None,
    )


def inner_path(path: str, table: str) -> str:
    """The path of a file below its table, from the text that the log has; raises for one elsewhere."""
    inner = unquote(path)
    if "://" in path or path.startswith(("/", "file:")) or ".." in inner.split("/"):
        raise InvalidArgument(
            f"{table} has data files that are elsewhere, as a shallow clone has: read the table that it was cloned of"
        )
    return inner


def check_protocol(features: Sequence[str] | None, reader: int, table: str) -> None:
    """Raise if the table asks readers for more than is understood here."""
    unknown = sorted({*(features or ())} - FEATURES) if reader <= 3 else [f"minReaderVersion {reader}"]
    if unknown:
        raise InvalidArgument(
            f"{table} needs readers with {', '.join(unknown)}, which uc.TableChanges has not: read the table by Spark, "
            "or drop the feature"
        )


__all__ = ["DeltaCommit", "changed_file", "check_protocol", "inner_path"]
