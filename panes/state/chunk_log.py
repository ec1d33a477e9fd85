"""The state of an operator as a log of chunks over a small key-value store, such as an engine's state store.

A chunk is written once. Each save writes the places of rows that died since the last one, and these lists are joined
as they pile up. Rows that died because a clock passed them are not written, since the clocks are in the manifest. So
the bytes that a save writes follow the rows that a bundle touched. The manifest lists the chunks. It is small, and the
caller stores it in the same transaction as the log.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol
from uuid import uuid4

import numpy as np
import pyarrow as pa

from ...errors import StateMismatch
from ...windows.times import NEVER
from .cache import ChunkCache
from .codec import DAMAGE, pack, pack_places, unpack, unpack_places
from .hashes import Index
from .manifest import UNKNOWN, Entry, Manifest, StoredChunk
from .operator import StatefulOperator
from .operator_state import OperatorState
from .store import Chunk, Store

_FANOUT = 4


class KeyValue(Protocol):
    """The storage of the log: bytes by a small integer."""

    def get(self, id: int, /) -> bytes | None:
        """The bytes under this number, if there are any."""

    def put(self, id: int, value: bytes, /) -> None:
        """Store or replace the bytes under this number."""

    def remove(self, id: int, /) -> None:
        """Remove the bytes under this number."""


@dataclass(frozen=True)
class LoadedState:
    """A loaded state, and the parts of it that are already in the log."""

    state: OperatorState
    extra: bytes = b""
    token: str = ""
    """New with each save."""
    stored: Mapping[Index, tuple[StoredChunk, Chunk]] = field(default_factory=dict)
    next_id: int = 0
    cache: ChunkCache = field(default_factory=ChunkCache)


def _unguessable() -> str:
    return uuid4().hex


def save(
    state: OperatorState,
    loaded: LoadedState,
    log: KeyValue,
    extra: bytes = b"",
    names: Callable[[], str] = _unguessable,
) -> bytes:
    """Write the changes since `loaded` and return the manifest; `load` returns `extra` unchanged.

    All new values get unused numbers, and only then are old values removed. If the log raises, the log and the manifest
    must both be rolled back; `loaded` stays valid.

    >>> import pyarrow as pa, uncombine as uc
    >>> from uncombine.panes.state.chunk_log import load, save
    >>> schema = pa.schema({"ts": pa.timestamp("us"), "x": pa.int64()})
    >>> from uncombine.panes.grouping.operator import Operator
    >>> from uncombine.panes.grouping.grouping import Grouping
    >>> operator = Operator(Grouping({"n": uc.Count()}, uc.Fixed("1 minute")), schema)
    >>> class Log(dict):
    ...     put, remove = dict.__setitem__, dict.__delitem__
    >>> log = Log()
    >>> loaded = load(None, log, operator)
    >>> bundle = pa.table({"ts": [0], "x": [1]}).cast(schema)
    >>> manifest = save(operator.step(loaded.state, bundle, watermark=0).state, loaded, log)
    >>> list(log), len(load(manifest, log, operator).state.windows)
    ([0], 1)
    """
    saving = _Save(loaded, log, names)
    stored = {
        name: None if store is None else [saving.chunk(chunk, state.clocks) for chunk in store.chunks]
        for name, store in state.stores.items()
    }
    saving.remove_others([part for parts in stored.values() for part in parts or []])
    return Manifest(state=state, token=names(), next_id=saving.next_id, stored=stored, extra=extra).written()


def load(
    manifest: bytes | None, log: KeyValue, operator: StatefulOperator, cache: ChunkCache | None = None
) -> LoadedState:
    """The state that was saved with this manifest, or the state before any row; cached chunks are not read again.

    The operator must be the one that made the state. Only the columns of its stores are compared here.
    """
    cache = ChunkCache(0) if cache is None else cache
    cache.tidy()
    state = operator.initial()
    if manifest is None:
        return LoadedState(state=state, cache=cache)
    content = Manifest.read(manifest, state)
    reading = _Load(log, cache, operator.hashes)
    return LoadedState(
        state=reading.state(content),
        extra=content.extra,
        token=content.token,
        stored=reading.stored,
        next_id=content.next_id,
        cache=cache,
    )


def stored_state(manifest: bytes, log: KeyValue) -> OperatorState:
    """The state that was saved with this manifest, whatever operator made it: to be looked at, and not for a step.

    Its rows are not found by hash, and a store without a row has no columns.
    """
    content = Manifest.read(manifest)
    return _Load(log, ChunkCache(0), lambda _, rows: np.zeros(rows.num_rows, np.uint64)).state(content)


def _passed(chunk: Chunk, least: Mapping[str, int], clocks: Mapping[str, int]) -> np.ndarray | None:
    """A mask of the rows, dead or alive, that some clock has passed; None if there are none."""
    mask: np.ndarray | None = None
    for name, reading in clocks.items():
        if name in chunk.wake and least[name] <= reading:
            passed = chunk.wake[name] <= reading
            mask = passed if mask is None else mask | passed
    return mask


def _require(schema: pa.Schema, wanted: pa.Schema) -> None:
    if wanted is not UNKNOWN and not schema.equals(wanted):
        odd = [f"{field.name}: {field.type}" for field in schema if field not in list(wanted)]
        lacking = [f"{field.name}: {field.type}" for field in wanted if field not in list(schema)]
        raise StateMismatch(
            f"the stored windows have columns {odd}, but this pipeline keeps {lacking}: start from a new checkpoint"
        )


def _fetched(log: KeyValue, entry: Entry) -> bytes:
    value = log.get(entry.id)
    if value is None or len(value) != entry.size or zlib.crc32(value) != entry.check:
        content = "nothing" if value is None else "something else"
        raise StateMismatch(
            f"the state store has {content} under number {entry.id}, but the manifest names a chunk there, so they are "
            "of different batches: restore both from one checkpoint"
        )
    return value


def _damaged(entry: Entry, error: Exception) -> StateMismatch:
    return StateMismatch(
        f"the value under number {entry.id} of the state store is none that this library writes "
        f"({type(error).__name__}): restore the checkpoint from a copy"
    )


def _places(log: KeyValue, cache: ChunkCache, entry: Entry, rows: int) -> np.ndarray:
    value = cache.small(entry.key)
    if value is None or len(value) != entry.size or zlib.crc32(value) != entry.check:
        value = _fetched(log, entry)
        cache.add_small(entry.key, value)
    try:
        return unpack_places(value, entry.count, rows)
    except DAMAGE as error:
        raise _damaged(entry, error) from None


class _Save:
    """One save in progress."""

    def __init__(self, loaded: LoadedState, log: KeyValue, names: Callable[[], str]) -> None:
        self.loaded, self.log, self.names = loaded, log, names
        self.cache = loaded.cache
        self.next_id = loaded.next_id

    def chunk(self, chunk: Chunk, clocks: Mapping[str, int]) -> StoredChunk:
        """Write the parts of a chunk that are not in the log."""
        entry = self.loaded.stored.get(chunk.index)
        if entry is None:
            part, rows = self._written(chunk, clocks)
            dead = ~chunk.alive
        elif entry[0].alive == chunk.count:
            return entry[0]
        else:
            part, rows = entry[0], chunk
            dead = entry[1].alive & ~chunk.alive
        if part.clocked:
            passed = _passed(chunk, chunk.least, clocks)
            dead = dead if passed is None else dead & ~passed
        deaths = self._with_deaths(part, np.flatnonzero(dead))
        part = replace(part, deaths=deaths, stamp=self.names(), alive=chunk.count, exact=chunk.exact)
        self.cache.keep(part.rows.key, part.stamp, rows)
        return part

    def remove_others(self, chunks: list[StoredChunk]) -> None:
        """Remove the values that none of these chunks uses."""
        old = _entries(part for part, _ in self.loaded.stored.values())
        for id in sorted(old.keys() - _entries(chunks).keys()):
            self.log.remove(id)
            self.cache.forget(old[id])

    def _written(self, chunk: Chunk, clocks: Mapping[str, int]) -> tuple[StoredChunk, Chunk]:
        """Write a chunk that is new to the log; return its entry, and the chunk on the memory of the cache."""
        rows = self._put(pack(chunk), len(chunk.alive))
        passed = _passed(chunk, chunk.least, clocks)
        # A row may be put back after a clock passed it. Then the clock does not show which rows of the chunk died.
        clocked = passed is None or not bool(np.any(passed & chunk.alive))
        part = StoredChunk(
            rows=rows, deaths=(), stamp="", alive=chunk.count, least=chunk.least, exact=chunk.exact, clocked=clocked
        )
        return part, self.cache.add(rows.key, chunk)

    def _with_deaths(self, part: StoredChunk, places: np.ndarray) -> tuple[Entry, ...]:
        """The entries of the deaths of a chunk, joined like chunks, so that each death is written few times."""
        deaths = list(part.deaths)
        if len(places) == 0:
            return part.deaths
        size = part.rows.count
        while deaths and deaths[-1].count < _FANOUT * len(places):
            places = np.concatenate([_places(self.log, self.cache, deaths.pop(), size), places])
        value = pack_places(np.sort(places), size)
        entry = self._put(value, len(places))
        self.cache.add_small(entry.key, value)
        return (*deaths, entry)

    def _put(self, value: bytes, count: int) -> Entry:
        entry = Entry(id=self.next_id, name=self.names(), size=len(value), check=zlib.crc32(value), count=count)
        self.log.put(entry.id, value)
        self.next_id += 1
        return entry


class _Load:
    """One load in progress."""

    def __init__(self, log: KeyValue, cache: ChunkCache, hashes: Callable[[str, pa.Table], np.ndarray]) -> None:
        self.log, self.cache, self.hashes = log, cache, hashes
        self.stored: dict[Index, tuple[StoredChunk, Chunk]] = {}

    def state(self, content: Manifest) -> OperatorState:
        """The state of a manifest, with the rows of its stores."""
        state = content.state
        stores = {
            name: None if store is None else self._store(name, store, content.stored[name] or [], state.clocks)
            for name, store in state.stores.items()
        }
        return replace(state, stores=stores)

    def _store(self, name: str, empty: Store, parts: Sequence[StoredChunk], clocks: Mapping[str, int]) -> Store:
        """The store of the chunks that the manifest lists. Columns that nobody knows are those of its first chunk."""
        schema, chunks = empty.schema, list[Chunk]()
        for part in parts:
            chunks.append(self._chunk(name, part, schema, clocks))
            schema = chunks[0].table.schema if schema is UNKNOWN else schema
        return Store(schema, tuple(chunks))

    def _chunk(self, name: str, part: StoredChunk, schema: pa.Schema, clocks: Mapping[str, int]) -> Chunk:
        chunk = self.cache.chunk(part.rows.key, part.stamp)
        if chunk is None:
            chunk = self._alive(part, self._rows(name, part, schema), clocks)
            self.cache.keep(part.rows.key, part.stamp, chunk)
        self._require_fit(part, chunk, schema)
        self.stored[chunk.index] = part, chunk
        return chunk

    def _rows(self, name: str, part: StoredChunk, schema: pa.Schema) -> Chunk:
        """The rows of a chunk, from the cache or else from the log."""
        entry = part.rows
        rows = self.cache.rows(entry.key)
        if rows is not None:
            self._require_fit(part, rows, schema)
            return rows

        def hashes(table: pa.Table) -> np.ndarray:
            _require(table.schema, schema)
            return self.hashes(name, table)

        try:
            rows = unpack(_fetched(self.log, entry), hashes)
        except StateMismatch:
            raise
        except DAMAGE as error:
            raise _damaged(entry, error) from None
        self._require_fit(part, rows, schema)
        return self.cache.add(entry.key, rows)

    def _require_fit(self, part: StoredChunk, chunk: Chunk, schema: pa.Schema) -> None:
        """Raise unless the rows are of the columns, the number and the clocks that the manifest has."""
        _require(chunk.table.schema, schema)
        if len(chunk.alive) != part.rows.count or chunk.wake.keys() != part.least.keys():
            raise StateMismatch(
                f"chunk {part.rows.id} of the state has {len(chunk.alive)} rows with clocks {sorted(chunk.wake)}, but "
                f"its manifest has {part.rows.count} with {sorted(part.least)}: restore the checkpoint from a copy"
            )

    def _alive(self, part: StoredChunk, rows: Chunk, clocks: Mapping[str, int]) -> Chunk:
        alive = np.ones(part.rows.count, np.bool_)
        for entry in part.deaths:
            alive[_places(self.log, self.cache, entry, len(alive))] = False
        passed = _passed(rows, part.least, clocks) if part.clocked else None
        if passed is not None:
            alive &= ~passed
        if np.count_nonzero(alive) != part.alive:
            raise StateMismatch(
                f"chunk {part.rows.id} of the state has {np.count_nonzero(alive)} live rows, but its manifest counts "
                f"{part.alive}: restore the state store from an older checkpoint"
            )
        for clock, least in part.least.items():
            if rows.wake[clock].min(where=alive, initial=NEVER) < least:
                raise StateMismatch(
                    f"chunk {part.rows.id} of the state has a row that is due before the time that its manifest has "
                    f"for the clock {clock!r}: restore the checkpoint from a copy"
                )
        return replace(rows, alive=alive, count=part.alive, least=dict(part.least), exact=part.exact)


def _entries(parts: Iterable[StoredChunk]) -> dict[int, str]:
    return {entry.id: entry.key for part in parts for entry in part.entries}
