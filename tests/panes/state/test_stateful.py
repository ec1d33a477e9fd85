"""Shards and the chunk log know the protocol of operators alone: one that is no grouping goes through both."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
from later import SCHEMA, Later

import uncombine as uc
from uncombine.panes.shard.arrivals import Arrival
from uncombine.panes.shard.shard import Shard
from uncombine.panes.state.chunk_log import load, save


def rows(*given: tuple[str, int]) -> Arrival:
    return Arrival([pa.Table.from_pylist([{"id": id, "due": due} for id, due in given], SCHEMA)])


class Log(dict[int, bytes]):
    put, remove = dict.__setitem__, dict.__delitem__


def test_another_operator_waits_and_is_stored() -> None:
    operator, log = Later(), Log()
    manifest: bytes | None = None
    given: list[tuple[int, Arrival]] = [
        (1, rows(("a", 5), ("b", 9))),
        (2, rows(("a", 7))),
        (8, rows(("c", 8))),
        (20, Arrival(reports=[(None, 6)])),
    ]
    shown: list[tuple[int, Any]] = []
    for at, arrival in given:
        loaded = load(manifest, log, operator)
        shard, played = replace(Shard.start(operator), state=loaded.state).take(at, arrival)
        manifest = save(shard.state, loaded, log)
        shown += [(done.at, row["id"]) for done in played for row in done.panes.to_pylist()]
    assert shown == [(7, "a"), (8, "c"), (9, "b")]
    assert shard.next_timer is None
    assert [done.output_watermark for done in played] == [uc.windows.MIN_TIME, 6]
