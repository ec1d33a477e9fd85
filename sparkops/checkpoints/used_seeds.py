"""The rows of the seed with which the query of a changed flow begins: they leave once the query has stored its own.

The seed still has what was shown of rows that were deleted, to retract it, so it must not stay. From the first batch
that has ended with state of each step on nothing reads its files: a start goes on from the state. Its manifest stays.

Guarded by tests/sparkops/checkpoints/test_used_seeds.py.
"""

from __future__ import annotations

import json
import logging
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow.fs as pafs

from ...files.paths import locate
from ...panes.state.seed import MANIFEST

LOGGER = logging.getLogger("uncombine")

_STATEFUL = "transformWithState"
"""The beginning of the name that Spark gives to the operators of the steps."""


@dataclass(frozen=True)
class UsedSeed:
    """The seed in a checkpoint, and that of which it was made, if a kill has left it.

    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> os.mkdir(f"{folder}/seed")
    >>> for name in ("seed.json", "rows.arrow"):
    ...     open(f"{folder}/seed/{name}", "w").close()
    >>> UsedSeed(folder, "seed", "former", steps=1).drop()
    >>> os.listdir(f"{folder}/seed")
    ['seed.json']
    """

    checkpoint: str
    name: str
    """The folder in the checkpoint."""
    former: str
    """The folder in the checkpoint of the seed of which it was made."""
    steps: int
    """The steps of the flow that keep state."""

    def drop(self) -> None:
        """Delete all files but the manifest; what cannot be deleted is told, and stays until a later start."""
        system, inside = locate(self.checkpoint)
        there = pafs.FileSelector(f"{inside}/{self.name}", allow_not_found=True)
        try:
            for file in system.get_file_info(there):
                if file.base_name != MANIFEST:
                    system.delete_file(file.path)
            if system.get_file_info(f"{inside}/{self.former}").type == pafs.FileType.Directory:
                system.delete_dir(f"{inside}/{self.former}")
        except OSError as error:
            LOGGER.warning("%s/%s still has rows that are not needed: %s", self.checkpoint, self.name, error)

    def after(self, event: Mapping[str, Any]) -> bool:
        """True if the batch of this event was one after which the files are not needed; then they are deleted."""
        stateful = [one for one in event.get("stateOperators", ()) if one["operatorName"].startswith(_STATEFUL)]
        if len(stateful) != self.steps or not all(one.get("numRowsTotal") for one in stateful):
            return False
        if not self._has_ended(event["id"], event["batchId"]):
            return False
        self.drop()
        return True

    def _has_ended(self, query: str, batch: int) -> bool:
        """True if the checkpoint is that of a query, and has the end of a batch."""
        system, inside = locate(self.checkpoint)
        try:
            with system.open_input_stream(posixpath.join(inside, "metadata")) as file:
                own = json.loads(file.read())["id"]
        except (OSError, ValueError, LookupError):
            return False
        done = system.get_file_info(posixpath.join(inside, "commits", str(batch)))
        return bool(own == query and done.type == pafs.FileType.File)


_waiting: list[UsedSeed] = []
"""The seeds of this process whose queries have not stored all of their state yet."""


def drop_later(seed: UsedSeed) -> None:
    """Delete the files of a seed after the first batch of its query that does not need them any more."""
    if seed not in _waiting:
        _waiting.append(seed)


def drop_used(event: Mapping[str, Any]) -> None:
    """Delete the files of the seeds that are not needed after the batch of this event."""
    for seed in [seed for seed in tuple(_waiting) if seed.after(event)]:
        _waiting.remove(seed)


__all__ = ["UsedSeed", "drop_later", "drop_used"]
