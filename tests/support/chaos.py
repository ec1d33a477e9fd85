"""A stand-in for a cluster in which all goes wrong that can: random pipelines, and a way to run them that is not calm.

Tasks crash at any call on the store, and are tried again, or the batch is; results are thrown away, the store goes back
to older checkpoints, batches run that never happened, and workers and the files of their hosts come and go.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from engine import Engine, Handle, Now, joined
from reference.byrule.transcripts import SCHEMA, draw_options, is_merging
from streams import MARK, NOW, ORIGIN, START, punctuated_schema, rows_flow

import uncombine as uc
from uncombine.errors import UncombineError
from uncombine.flows.flow import Flow
from uncombine.flows.graph import Step
from uncombine.panes.state.cache import ChunkCache
from uncombine.sparkops.routes import shard_processor as processor
from uncombine.sparkops.routes.shard_processor import ShardProcessor
from uncombine.sparkops.routes.thin_processor import thin

SECOND = 1_000_000
WHOLE = punctuated_schema(SCHEMA)
OPTIONS = ("by", "diff", "idle_after", "watermark")


class Crash(Exception):
    """A worker is gone."""


@dataclass(frozen=True)
class Batch:
    """A micro-batch: the rows of each task, and its time in milliseconds."""

    tasks: list[pa.Table]
    now: int


def draw_flow(r: random.Random) -> Flow:
    """A pipeline of one or two groupings; draws that are refused are drawn again."""
    while True:
        with suppress(UncombineError):
            first, diff, by = _options(r)
            idle = r.choice([None, "20 seconds"])
            strategies = [
                uc.Punctuated(MARK, ORIGIN, idle),
                uc.Punctuated(MARK, ORIGIN, idle),
                uc.PerSource("k", "10 seconds", idle),
                uc.BoundedLag("20 seconds"),
            ]
            column = r.choice([None, NOW])
            source = rows_flow(WHOLE, "ts", r.choice(strategies), r.randint(1, 3), diff=diff, processing_time=column)
            flow = source.window(**first).combine(by=by, **_combiners(r, "x", diff, first))
            if r.random() < 0.4:
                return flow
            changes = flow.stages[0].grouping.retracting or diff is not None
            second, _, _ = _options(r, changes)
            keys = [key for key in by if r.random() < 0.7]
            return flow.window(**second).combine(by=keys, **_combiners(r, "n", "diff" if changes else None, second))


def _options(r: random.Random, changelog: bool | None = None) -> tuple[dict[str, Any], str | None, list[str]]:
    while True:
        options = draw_options(r)
        if changelog is None or (options["diff"] is not None) == changelog:
            rest = {name: value for name, value in options.items() if name not in OPTIONS}
            return rest, options["diff"], options["by"]


def _combiners(r: random.Random, column: str, diff: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """Named so that triggers find the columns that they ask for, in a second stage too."""
    named: dict[str, Any] = {"x": uc.Sum(column), "n": uc.Count()}
    if diff is None or options["mode"] == "retracting":
        more = {"hi": uc.Max(column), "mid": uc.Median(column), "all": uc.CollectList(column)}
        named |= {name: combiner for name, combiner in more.items() if r.random() < 0.4}
    return named


def draw_batches(r: random.Random, flow: Flow) -> list[Batch]:
    """Rows of many keys and of few, in one task or several, with marks and clocks among them, and time without rows."""
    known: list[dict[str, Any]] = []
    out, clock, place = list[Batch](), 0, 0
    crowded = is_merging(flow.stages[0].grouping.window) and r.random() < 0.5
    names = "ab" if crowded else "abcdefghijklmnop"
    changelog = flow.stages[0].grouping.diff is not None

    def row() -> dict[str, Any]:
        if changelog and known and r.random() < 0.3:
            return {**known.pop(r.randrange(len(known))), "d": -1}
        t = place + r.choice([0, 1, 5, 10, 15, 20, 30, 59, 60, -10, -30, -60, -120])
        t = r.randrange(0, 150, 5) if crowded else t
        one = {"ts": START + t * SECOND, "k": r.choice([*names, None]), "j": r.randrange(2)}
        one |= {"x": r.choice([None, *range(-2, 9)]), "d": 1}
        if r.random() < 0.02:
            return {**one, "ts": r.choice([None, START + 2 * 86_400 * SECOND])}
        if changelog:
            known.append(one)
        return one

    for _ in range(r.randint(6, 14)):
        place = max(0, place + r.choice([0, 0, 10, 20, 45, 90]))
        first, clock = clock, clock + r.choice([0, 1, 1, 10, 30, 70, 600])
        tasks = []
        for _ in range(r.choice([0, 1, 1, 1, 2, 3])):
            rows = [row() for _ in range(r.choice([0, 1, 2, 4, 9, 40]))]
            if r.random() < 0.3:
                rows.append({})
            for one in rows:
                mark = None
                if r.random() < 0.1 or not one:
                    mark = START + (place + r.choice([0, 0, 20, 60, -60])) * SECOND
                one |= {NOW: START + r.choice([first, clock, clock]) * SECOND, MARK: mark, ORIGIN: r.choice("ab")}
            tasks.append(pa.Table.from_pylist(rows, WHOLE))
        out.append(Batch([task for task in tasks if task.num_rows], (START + clock * SECOND) // 1000))
    # An hour later most windows have come to their end; late rows may follow.
    last = [{NOW: START + (clock + 60) * SECOND, MARK: START + 3_600 * SECOND, ORIGIN: name} for name in "ab"]
    last.append({**row(), "ts": START + 3_700 * SECOND, NOW: START + (clock + 70) * SECOND})
    end = Batch([pa.Table.from_pylist(last, WHOLE)], START // 1000 + clock * 1000 + 70_000)
    return [*out[:-1], end, replace(out[-1], now=end.now)]


class Brittle:
    """The part of the store of a task; any call may be its last, done or not."""

    def __init__(self, inner: Any, called: Callable[[], None]) -> None:
        self._inner, self._called = inner, called

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)

        def call(*args: Any) -> Any:
            self._called()
            out = found(*args)
            self._called()
            return Brittle(out, self._called) if name in ("getValueState", "getMapState") else out

        return call


class Hosts:
    """Two hosts with some workers each, all of which can be lost, and whose files can be damaged."""

    def __init__(self, folder: Path, r: random.Random) -> None:
        self.random = r
        self.folders = [folder / "one", folder / "other"]
        self.workers = [self._worker() for _ in range(4)]

    def worker(self) -> ChunkCache:
        """The memory of the current worker."""
        return self.random.choice(self.workers)

    def upset(self) -> None:
        """Something goes wrong, between two tasks or during one."""
        r = self.random
        host = r.choice(self.folders)
        old = host.with_name(host.name + " as it was")
        what = r.choice(["worker", "worker", "gone", "moved", "back", "file", "file", "file"])
        if what == "worker":
            self.workers[r.randrange(len(self.workers))] = self._worker()
        elif what == "gone":
            shutil.rmtree(host, ignore_errors=True)
        elif what in ("moved", "back"):
            here, there = (host, old) if what == "moved" else (old, host)
            if here.exists():
                shutil.rmtree(there, ignore_errors=True)
                here.rename(there)
        elif host.exists() and (files := sorted(host.iterdir())):
            self._damage(r.choice(files), r.choice(files))

    def _damage(self, path: Path, other: Path) -> None:
        r, size = self.random, path.stat().st_size
        match r.choice(["removed", "cut", "changed", "renamed", "swapped"]):
            case "removed":
                path.unlink()
            case "cut":
                os.truncate(path, r.randrange(size))
            case "changed":
                at = r.randrange(size)
                with open(path, "r+b") as file:
                    file.seek(at)
                    file.write(r.randbytes(r.randint(1, size - at)))
            case "renamed":
                os.replace(path, other)
            case "swapped":
                one, another = path.read_bytes(), other.read_bytes()
                path.write_bytes(another)
                other.write_bytes(one)

    def _worker(self) -> ChunkCache:
        memory = self.random.choice([0, 20_000, 256 << 20])
        return ChunkCache.shared(memory, self.random.choice(self.folders))


class Cluster(Engine):
    """The stand-in for Spark's engine, on hosts where little is reliable but the store's commits."""

    def __init__(self, flow: Flow, seed: int, folder: Path) -> None:
        self.hosts = Hosts(folder, random.Random(seed))
        self.crashes = 0
        super().__init__(flow, seed)
        assert self.random is not None
        self.r = self.random

    def restart(self) -> None:
        pass

    def batch(
        self, rows: pa.Table | list[pa.Table] | Mapping[str, pa.Table] | None, now: int | None = None
    ) -> tuple[pa.Table, list[dict[str, int]]]:
        while True:
            before = self.snapshot()
            with suppress(Crash):
                out = super().batch(rows, now)
                if self.r.random() > 0.1:
                    return out
            # Nobody has noted that it is done, so it is done again.
            self.store = before

    def never(self, batch: Batch) -> None:
        """Run a batch that is then forgotten by all but the hosts."""
        before = self.snapshot()
        with suppress(Crash):
            super().batch(batch.tasks, batch.now)
        self.store = before

    def _stage(self, step: Step, packed: list[tuple[int, bytes]], now: int | None) -> pd.DataFrame:
        clock = Now(-1 if not self.timed or now is None else now)
        self.r.shuffle(packed)
        given: dict[int, list[bytes]] = {}
        for shard, payload in packed:
            given.setdefault(shard, []).append(payload)
        for (at, shard), handle in self.store.items():
            if at == step.number - 1 and any(t <= clock.ms for t in handle.timers):
                given.setdefault(shard, [])
        return joined(frame for shard in sorted(given) for frame in self._task(step, shard, given[shard], clock))

    def _task(self, step: Step, shard: int, payloads: list[bytes], clock: Now) -> list[pd.DataFrame]:
        """Tries until one is good enough, or the whole batch is given up."""
        while True:
            handle = self.given(step.number - 1, shard)
            if self.r.random() < 0.3:
                self.hosts.upset()
            try:
                frames = list(self._attempt(step, shard, payloads, clock, handle))
            except Crash:
                self.crashes += 1
                if self.r.random() < 0.3:
                    raise
                continue
            if self.r.random() > 0.1:
                self.store[step.number - 1, shard] = handle
                return frames

    def given(self, stage: int, shard: int) -> Handle:
        """The part of the store of an attempt, which nobody else sees before it is done."""
        return self.store.get((stage, shard), Handle()).copy()

    def _attempt(
        self, step: Step, shard: int, payloads: list[bytes], clock: Now, handle: Handle
    ) -> Iterator[pd.DataFrame]:
        left = self.r.randrange(1, 25) if self.r.random() < 0.4 else -1

        def called() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Crash
            if self.r.random() < 0.02:
                self.hosts.upset()

        processor._CACHE = self.hosts.worker()
        made = thin(ShardProcessor(self.tasks[step]))
        made.init(Brittle(handle, called))  # type: ignore[arg-type]
        if payloads:
            frame = pd.DataFrame({"shard": shard, "lo": 0, "payload": payloads})
            cut = self.r.randrange(len(frame) + 1)
            yield from made.handleInputRows((shard,), iter([frame.iloc[:cut], frame.iloc[cut:]]), clock)
        for timer in [t for t in handle.timers if t <= clock.ms]:
            yield from made.handleExpiredTimer((shard,), clock, timer)
            handle.timers.discard(timer)


def disturbed(
    flow: Flow, batches: list[Batch], seed: int, folder: Path, seen: Callable[[int, Any, Engine], None]
) -> int:
    """Run the batches on a cluster, `seen` after each that was done; how many tasks crashed."""
    cluster = Cluster(flow, seed, folder)
    r, kept, at = cluster.r, [cluster.snapshot()], 0
    while at < len(batches):
        if r.random() < 0.1:
            at = r.randrange(max(0, at - 4), at + 1)
            cluster.store = {key: handle.copy() for key, handle in kept[at].items()}
        if r.random() < 0.2:
            cluster.never(Batch(r.choice(batches).tasks, batches[at].now))
        got = cluster.batch(batches[at].tasks, batches[at].now)
        seen(at, got, cluster)
        at += 1
        kept[at:] = [cluster.snapshot()]
    return cluster.crashes
