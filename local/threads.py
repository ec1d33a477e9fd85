"""Threads that share work, as many as Arrow uses. No result depends on their number.

Guarded by tests/local/test_local_final.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Condition
from typing import Generic, TypeVar

import pyarrow as pa

Item = TypeVar("Item")
Made = TypeVar("Made")


def in_threads(work: Callable[[Item], Made], readers: Iterable[Iterator[Item]]) -> list[Made]:
    """The results for everything that the readers give, in its order.

    A reader is read by one thread at a time, while other threads work on what it gave before.

    >>> in_threads(lambda number: 10 * number, [iter([1, 2]), iter([3])])
    [10, 20, 30]
    """
    items = _ReaderPool(readers)
    made: dict[tuple[int, int], Made] = {}

    def run() -> None:
        try:
            while (item := items.next()) is not None:
                made[item[0]] = work(item[1])
                del item
        except BaseException:
            items.stop()
            raise

    threads = pa.cpu_count()
    if threads == 1:
        run()
    else:
        with ThreadPoolExecutor(threads) as pool:
            running = [pool.submit(run) for _ in range(threads)]
            try:
                for one in running:
                    one.result()
            finally:
                items.stop()
    return [made[place] for place in sorted(made)]


class _ReaderPool(Generic[Item]):
    """Some readers, for several threads."""

    def __init__(self, readers: Iterable[Iterator[Item]]) -> None:
        self._free = deque((place, 0, reader) for place, reader in enumerate(readers))
        self._busy, self._stopped, self._changed = 0, False, Condition()

    def next(self) -> tuple[tuple[int, int], Item] | None:
        """The next piece of work and its place; None if there is no other one."""
        while (one := self._free_reader()) is not None:
            place, number, reader = one
            item = None
            try:
                item = next(reader, None)
            finally:
                with self._changed:
                    self._busy -= 1
                    if item is not None:
                        # First again, so that few readers are open at a time.
                        self._free.appendleft((place, number + 1, reader))
                    self._changed.notify_all()
            if item is not None:
                return (place, number), item
        return None

    def _free_reader(self) -> tuple[int, int, Iterator[Item]] | None:
        """A reader that nobody reads, after its place and the number of what it gives next."""
        with self._changed:
            while not self._free and self._busy and not self._stopped:
                self._changed.wait()
            if self._stopped or not self._free:
                return None
            self._busy += 1
            return self._free.popleft()

    def stop(self) -> None:
        """Hand out nothing more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


__all__ = ["in_threads"]
