"""The part of a job that a result is of: files, rows and bytes that were read, of all that there are.

Guarded by tests/local/test_early_end.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...triggers import Trigger


@dataclass(frozen=True, kw_only=True)
class Seen:
    r"""The part of the files of a flow that a result is of, after `flow.run(until=)` or `flow.to_table(until=)`.

    >>> import pathlib, tempfile, uncombine as uc
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for n in range(4):
    ...     _ = (folder / f"{n}.csv").write_text(f"ts,x\n2024-05-0{n + 1},5\n")
    >>> result = uc.flow(folder).combine(total=uc.Sum("x")).run(until="50 % of the files")
    >>> result.seen
    Seen(files=2, all_files=4, rows=2, bytes=36, all_bytes=72, ended_by=FilesPercentile(50))
    >>> result.seen.share, result.seen.words
    (0.5, 'the result so far: 2 of 4 files, 50 %')
    """

    files: int
    """The files that were read to their end."""
    all_files: int
    """The files that there are, without those that `uc.Files(filter=)` leaves out by their folders."""
    rows: int
    """The rows of files that the result is of, after `uc.Files(filter=)`; of files with messages the messages."""
    bytes: int
    """The sizes of the files that were read to their end, together."""
    all_bytes: int
    """The sizes of all files, together."""
    ended_by: Trigger | None
    """The part of the trigger that ended the reading; None if everything was read."""
    paths: Sequence[str] = field(repr=False)
    """The files that the result is of, in their order. If they are more than `files`, the last one was read in part."""

    @property
    def share(self) -> float:
        """The share of the files that were read to their end; 1.0 if everything was read."""
        return self.files / self.all_files if self.all_files else 1.0

    @property
    def words(self) -> str:
        """The share in words, as the result shows it."""
        result = "the whole result" if self.ended_by is None else "the result so far"
        part = " and a part of the next" if len(self.paths) > self.files else ""
        percent = 100 if self.ended_by is None else 1000 * self.files // self.all_files / 10
        files = f"{self.files:,} of {self.all_files:,} file{'s' * (self.all_files != 1)}"
        return f"{result}: {files}{part}, {percent:g} %"


__all__ = ["Seen"]
