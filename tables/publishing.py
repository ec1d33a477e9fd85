"""A published copy: readers open a copy of a file, whole at each moment, and never the file that a query writes.

The copy takes the place of the last one by one rename. A reader that has the last one open reads it to its end.

Guarded by tests/tables/test_tables_published.py.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Timer

from ..errors import TableUnreachable
from .renames import remove_leftovers, replaced

LOGGER = logging.getLogger("uncombine")

PIECE = 1 << 20
"""The bytes that are copied at a time."""


class PublishedCopy:
    """The copy of a file for readers, made after a change of the file, and at most once in `every` seconds.

    `still` gives a context in which nothing changes the file, and all its changes are in it.

    >>> import tempfile
    >>> from contextlib import nullcontext
    >>> folder = Path(tempfile.mkdtemp())
    >>> size = (folder / "a.db").write_text("one")
    >>> copy = PublishedCopy(folder / "a.db", folder / "seen.db", 0, "me", nullcontext)
    >>> copy.start()
    >>> size = (folder / "a.db").write_text("two")
    >>> (folder / "seen.db").read_text(), copy.changed(), copy.refresh(), (folder / "seen.db").read_text()
    ('one', None, None, 'two')
    """

    def __init__(
        self,
        source: Path,
        path: Path,
        every: float,
        owner: str,
        still: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self.source, self.path, self.every, self.owner, self.still = source, path, every, owner, still
        self._stale, self._due = False, 0.0
        self._timer: Timer | None = None

    def start(self) -> None:
        """Publish the file as it is, also if the process of an earlier run ended before it could."""
        remove_leftovers(self.path.parent, self.owner)
        self._publish()

    def changed(self) -> None:
        """Note that the file has changes that are not published."""
        self._stale = True

    def refresh(self) -> None:
        """Publish the changes, now or by a thread when that is due."""
        if not self._stale:
            return
        if (wait := self._due - time.monotonic()) <= 0:
            self._publish()
        elif self._timer is None:
            self._publish_in(wait)

    def finish(self) -> None:
        """Publish the changes, due or not."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._stale:
            self._publish()

    def _publish_in(self, seconds: float) -> None:
        self._timer = Timer(seconds, self._publish_late)
        self._timer.daemon = True
        self._timer.start()

    def _publish_late(self) -> None:
        self._timer = None
        try:
            if self._stale:
                self._publish()
        except Exception as error:  # the next batch, or the end of the query, tries again and raises it
            LOGGER.warning("%s is old: %s", self.path, error)
            self._publish_in(self.every)

    def _publish(self) -> None:
        began = time.monotonic()
        with self.still():
            self._stale = False
            try:
                self._copy()
            except BaseException:
                self._stale = True
                raise
        ended = time.monotonic()
        self._due = ended + self.every
        LOGGER.debug("%s: published in %.3f s", self.path, ended - began)

    def _copy(self) -> None:
        try:
            # The source stays open until the rename. A process that closes a file gives up its locks of the file.
            with open(self.source, "rb") as source, replaced(self.path, self.owner) as file:
                shutil.copyfileobj(source, file, PIECE)
        except OSError as error:
            raise TableUnreachable(f"{self.source} cannot be published as {self.path}: {error}") from None


__all__ = ["PublishedCopy"]
