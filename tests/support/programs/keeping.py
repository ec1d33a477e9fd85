"""A program whose parts are killed: each keeps a table up to date until a timer ends it, as kill -9 does."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from time import perf_counter

from live_tables import changes, in_order, random_batches, table_of, writer_of

from uncombine.tables import Keeper

BATCHES, LONGEST = 8, 0.03
"""A part takes so many batches. It ends so many seconds after its start at most, or soon after one of them starts."""


def keep(url: str, seed: int, count: int, life: int) -> None:
    """Apply the batches that the table does not have, until the end of this life."""
    r = random.Random(f"{seed} {life}")
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process, without a line of Python

    def soon(longest: float = LONGEST) -> None:
        signal.setitimer(signal.ITIMER_REAL, r.uniform(0.0005, max(longest, 0.001)))

    ends = None if life < 0 else r.randrange(BATCHES)
    if ends == 0:
        soon()
    keeper = Keeper(writer_of(url))
    last, slowest = keeper.start(), 0.0
    for batch, (rows, _) in enumerate(random_batches(seed, count)):
        if ends is not None and batch > last + BATCHES:
            break
        if ends and batch == last + ends:
            soon(2 * slowest or LONGEST)  # in this batch or the next
        if batch >= last:  # the last one comes again
            began = perf_counter()
            assert keeper.take(batch, changes(rows)) == (batch > last)
            slowest = max(slowest, perf_counter() - began)
    if ends is not None:  # a part that was faster than its timer waits for it
        if signal.getitimer(signal.ITIMER_REAL)[0] == 0:
            soon()
        while True:
            signal.pause()
    keeper.close()


def check(url: str, seed: int, count: int, life: int) -> None:
    """Compare the table with the rows that its batches leave, and print the number of its last batch."""
    states = [{}, *(left for _, left in random_batches(seed, count))]
    copy = url.partition("publish=")[2].partition("#")[0]
    if os.path.exists(copy):  # as the killed process has left it
        reader = writer_of(f"duckdb:{copy}#t")
        assert in_order(reader.read()) == table_of(states[reader.start() + 1]), f"life {life}: the copy"
    writer = writer_of(url)
    last = writer.start()
    for each in (writer, writer_of(f"duckdb:{copy}#t")) if copy else (writer,):
        assert in_order(each.read()) == table_of(states[last + 1]), f"life {life}: batch {last}"
    writer.close()
    print(json.dumps({"url": url, "life": life, "batch": last}), flush=True)


def forked(work: Callable[[], None]) -> int:
    """Run a part in a process of its own; the signal that ended it, or 0."""
    child = os.fork()
    if child:
        status = os.waitpid(child, 0)[1]
        if os.WIFEXITED(status) and os.WEXITSTATUS(status):
            raise SystemExit(f"a part failed with {os.WEXITSTATUS(status)}")
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    try:
        work()
        sys.stdout.flush()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


def main() -> None:
    """Print the lives of each table; `places` are pairs of a URL and the library that its target imports."""
    places, seed, count, lives = json.loads(sys.argv[1]), *map(int, sys.argv[2:])
    for _, library in places:
        import_module(library)
    for rows, left in random_batches(seed, 5):  # loads what a part would load
        assert in_order(changes(rows).reader().read_all()) is not None
        table_of(left)
    for url, _ in places:
        killed = 0
        for life in [*range(lives), -1]:
            killed += bool(forked(partial(keep, url, seed, count, life)))
            assert forked(partial(check, url, seed, count, life)) == 0
        print(json.dumps({"url": url, "killed": killed}), flush=True)


if __name__ == "__main__":
    main()
