"""The manifest: the small part of a stored state that each save writes again, with a list of all other parts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from ...errors import StateMismatch
from ...windows.times import MIN_TIME
from .manifest_checks import check_head, check_store, check_times, head_of
from .operator_state import Counts, OperatorState
from .store import Store

VERSION = 5
"""The format of everything that is stored for a shard: the manifest, its chunks and deaths, and its extra. A change to
any of them increases the number, except new keys in the JSON of the extra, which a state without them does not need."""

WITHOUT_SINCE, WITHOUT_CLOSED, WITHOUT_DEPOSITS = 4, 3, 2
"""The formats of a state without combiners that were added without a history, of one without windows that are closed
under a shorter lateness either, and of one that has no deposits either: the same without them. They are read, and
written where they do."""

_SINCE = "since"
"""The times that only the last format has."""

_CLOSED = "closed"
"""The number that only later formats have."""

_ADDED = "deposits"
"""The store that format 2 does not have, and that a grouping without divisible contents does not have either."""

_SENT = "sent"
"""The store of the versions of values that were not sent. A state that has none is written without it, and one that has
some is refused by versions of the library that do not know it, as the state of another kind of step."""

UNKNOWN = pa.schema([])
"""The columns of a store that is read without its operator."""

_BEGINNING = re.compile(rb'\{"version": ?(\d{1,9})[,}]')
"""The beginning of a manifest of any format."""

_NUMBERS = ("watermark", "output_watermark", "processing_time")
_HEAD = frozenset({"version", "token", "next", "percentiles", "counts", _SINCE, _CLOSED, *_NUMBERS})
"""All keys of a manifest except those of its stores."""


@dataclass(frozen=True)
class Entry:
    """A value in the log: its number, its unguessable name for caches, and its count and size, which are checked."""

    id: int
    name: str
    """32 hexadecimal digits, since it also names a file of the host."""
    size: int
    check: int
    count: int
    """The number of rows of the chunk, dead or alive, or of places of rows that died."""

    @property
    def key(self) -> str:
        """The name of the value in caches, so that other bytes under the same name are another value there."""
        return f"{self.name}{self.check:08x}"


@dataclass(frozen=True)
class StoredChunk:
    """A chunk in the log."""

    rows: Entry
    deaths: tuple[Entry, ...]
    stamp: str
    """An unguessable name for the set of living rows."""
    alive: int
    least: Mapping[str, int]
    exact: bool
    clocked: bool
    """True if rows that a clock has passed are dead, although the deaths do not list them."""

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All values of the chunk in the log."""
        return (self.rows, *self.deaths)


@dataclass(frozen=True)
class Manifest:
    """The chunks of a state, and everything of the state that is not in chunks."""

    state: OperatorState
    """The state without the rows of its stores."""
    token: str
    """New with each save."""
    next_id: int
    stored: Mapping[str, Sequence[StoredChunk] | None]
    """The chunks of each store, by its name."""
    extra: bytes

    def written(self) -> bytes:
        """The manifest as a line of JSON, followed by `extra`."""
        state = self.state
        stored = {name: parts for name, parts in self.stored.items() if name not in (_ADDED, _SENT) or parts}
        later: dict[str, Any] = {_CLOSED: state.closed} if state.closed > MIN_TIME or state.since else {}
        later |= {_SINCE: dict(state.since)} if state.since else {}
        without = WITHOUT_SINCE if later else WITHOUT_CLOSED if _ADDED in stored else WITHOUT_DEPOSITS
        head = {
            "version": VERSION if state.since else without,
            "token": self.token,
            "next": self.next_id,
            **{name: getattr(state, name) for name in _NUMBERS},
            **later,
            "percentiles": sorted(state.percentiles.items()),
            "counts": asdict(state.counts),
            **{name: None if parts is None else [asdict(part) for part in parts] for name, parts in stored.items()},
        }
        return json.dumps(head, separators=(",", ":")).encode() + b"\n" + self.extra

    @classmethod
    def read(cls, written: bytes, empty: OperatorState | None = None) -> Manifest:
        """The manifest that `written` wrote, all of it checked; `empty` is the operator's state before any row.

        Without it the stores are those of the manifest, with unknown columns.
        """
        head = checked_head(written)
        if empty is None:
            stores = {name: None if head[name] is None else Store(UNKNOWN) for name in head if name not in _HEAD}
            empty = OperatorState(stores)
        for name in (_ADDED, _SENT):
            head.setdefault(name, [] if name in empty.stores else None)
        used = {name: head.get(name) is not None for name in {**head, **empty.stores} if name not in _HEAD}
        if used != {name: empty.stores.get(name) is not None for name in used}:
            raise StateMismatch(
                "the stored state is of a pipeline with another kind of window or input: start from a new checkpoint"
            )
        numbers: dict[str, Any] = {name: head[name] for name in _NUMBERS}
        numbers[_CLOSED], numbers[_SINCE] = head.get(_CLOSED, MIN_TIME), head.get(_SINCE, {})
        state = replace(empty, percentiles=dict(head["percentiles"]), counts=Counts(**head["counts"]), **numbers)
        stored = {
            name: None if store is None else [_stored(part) for part in head[name]]
            for name, store in empty.stores.items()
        }
        return cls(
            state=state, token=head["token"], next_id=head["next"], stored=stored, extra=written.partition(b"\n")[2]
        )


def checked_head(written: bytes) -> dict[str, Any]:
    """The JSON of a manifest; raises `StateMismatch` unless every value in it can be one of a state."""
    require_version(written)
    head, ids = head_of(written), set[int]()
    check_head(head, (*_NUMBERS, _CLOSED) if _CLOSED in head else _NUMBERS)
    check_times(head.get(_SINCE, {}), _SINCE)
    for name, parts in head.items():
        if name not in _HEAD and parts is not None:
            check_store(parts, head["next"], ids)
    return head


def require_version(written: bytes) -> None:
    r"""Raise `StateMismatch` unless a manifest has the format that this library reads; only its beginning is read.

    >>> from uncombine.panes.state.manifest import require_version
    >>> require_version(b'{"version":2,"token":"any"}\n')
    >>> require_version(b'{"version":7,"token":"any"}\n')  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    uncombine.errors.StateMismatch: the stored state has format 7, but this version of uncombine reads ...
    """
    beginning = _BEGINNING.match(written)
    if beginning is not None and WITHOUT_DEPOSITS <= int(beginning[1]) <= VERSION:
        return
    named = "a format without a number" if beginning is None else f"format {int(beginning[1])}"
    raise StateMismatch(
        f"the stored state has {named}, but this version of uncombine reads formats {WITHOUT_DEPOSITS} to {VERSION}: "
        "use the version of uncombine that wrote it, or start from a new checkpoint"
    )


def extra_of(written: bytes) -> bytes:
    r"""The `extra` that the caller gave to `save`; a manifest of another format is refused.

    >>> from uncombine.panes.state.manifest import extra_of
    >>> extra_of(b'{"version":2,"token":"any"}\nany bytes')
    b'any bytes'
    """
    require_version(written)
    return written.partition(b"\n")[2]


def bytes_of(written: bytes) -> int:
    r"""The number of bytes that the log holds for a state.

    >>> bytes_of(b'{"windows":[{"rows":{"size":7},"deaths":[{"size":2}]}],"atoms":null}\n')
    9
    """
    head = json.loads(written.partition(b"\n")[0])
    parts = [part for name, parts in head.items() if name not in _HEAD for part in parts or []]
    return sum(entry["size"] for part in parts for entry in (part["rows"], *part["deaths"]))


def _stored(fields: dict[str, Any]) -> StoredChunk:
    deaths = tuple(Entry(**entry) for entry in fields["deaths"])
    return StoredChunk(**{**fields, "rows": Entry(**fields["rows"]), "deaths": deaths})
