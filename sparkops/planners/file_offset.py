"""The offset of a stream of files: the files of the batch that it ends, all that are read, and the hold.

Guarded by tests/sparkops/planners/test_file_offset.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta

import numpy as np

from ...errors import StateMismatch
from .path_set import EMPTY, PathSet, hashes_of
from .planner import Offset

FORM = 1
"""The number of the form of an offset; another one is refused."""

KNOWN_FOR = timedelta(days=7)
"""A file that is gone is known for so long, and is not read again if it comes back meanwhile."""


@dataclass(frozen=True, eq=False)
class FileOffset:
    """The place in a stream of files after a batch."""

    files: Mapping[str, int] = field(default_factory=dict)
    """The files of the batch with their bytes, by which they are divided among tasks whenever it is done again."""
    hold: int | None = None
    """The least time of the files that were there and not read, in microseconds; None if it is not known or needed."""
    read: PathSet = EMPTY
    """The files that are read and were there."""
    gone: Mapping[str, PathSet] = field(default_factory=dict)
    """The files that are read and were gone, by the day on which they were missed."""
    waiting: int = 0
    """The number of files that were there and not read when the batch was planned."""

    def has(self, hashes: np.ndarray) -> np.ndarray:
        """True for each file that is read, by its hash."""
        known = self.read.has(hashes)
        for day in self.gone.values():
            known |= day.has(hashes)
        return known

    def after(
        self, files: Mapping[str, int], hold: int | None, there: np.ndarray, today: date, waiting: int = 0
    ) -> FileOffset:
        """The offset after a batch of these files; `there` has the hashes of all files that are there."""
        batch = hashes_of(list(files))
        present = PathSet(np.concatenate([there, batch]))
        missed = ~present.has(self.read.hashes)
        gone = {day: paths.only(~present.has(paths.hashes)) for day, paths in self.gone.items()}
        gone[str(today)] = self.read.only(missed).both(gone.get(str(today), EMPTY))
        kept = {day: paths for day, paths in gone.items() if len(paths) and day > str(today - KNOWN_FOR)}
        read = PathSet(np.concatenate([present.hashes[self.has(present.hashes)], batch]))
        return FileOffset(dict(files), hold, read, kept, waiting)

    @property
    def stored(self) -> Offset:
        """The offset as Spark keeps it."""
        return {
            "files": dict(self.files),
            "hold": self.hold,
            "read": self.read.text,
            "gone": {day: paths.text for day, paths in self.gone.items()},
            "counts": [len(self.read), self.waiting],
            "form": FORM,
        }

    @staticmethod
    def planned(stored: Offset) -> bool:
        """True for the offset of files in an order of the library, in whatever form; False for that of Spark's own."""
        return isinstance(stored, Mapping) and "form" in stored

    @classmethod
    def of(cls, stored: Offset) -> FileOffset:
        """The offset that Spark has kept; raises if it is that of another source."""
        form = stored["form"] if cls.planned(stored) else None
        if form != FORM:
            written = "without order= of uc.Files" if form is None else "by another version of the library"
            raise StateMismatch(
                f"the checkpoint was written {written}, so it does not say which files are read: go on as it was, or "
                "start from a new checkpoint"
            )
        gone = {str(day): PathSet.of_text(text) for day, text in stored["gone"].items()}
        _, waiting = stored.get("counts", (0, 0))
        return cls(dict(stored["files"]), stored["hold"], PathSet.of_text(stored["read"]), gone, waiting)


__all__ = ["FileOffset"]
