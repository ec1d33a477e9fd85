"""Manifests, chunks and parcels that are damaged or were made with bad intent: an error of ours, or a right result."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from seeds import seeds
from watched import changed_paths, tree

import uncombine as uc
from uncombine.errors import StateMismatch
from uncombine.panes.grouping import contents
from uncombine.panes.grouping.grouping import Grouping
from uncombine.panes.grouping.operator import Operator
from uncombine.panes.parcels import Parcel
from uncombine.panes.state.cache import ChunkCache
from uncombine.panes.state.chunk_log import load, save
from uncombine.panes.state.codec import pack_places, unpack_places
from uncombine.panes.state.host_files import FileCache
from uncombine.panes.state.manifest import bytes_of, checked_head

pytestmark = pytest.mark.full

SECOND = 1_000_000


class Log(dict[int, bytes]):
    """As Spark's map state: a number that it does not have can be removed."""

    put = dict.__setitem__

    def remove(self, id: int) -> None:
        self.pop(id, None)


SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.string(), "x": pa.int64()})
COMBINERS = {"n": uc.Count(), "s": uc.Sum("x"), "m": uc.Median("x"), "t": uc.Max("k")}
LATE = {"allowed_lateness": "5 seconds", "by": "k"}
EARLY = uc.AfterWatermark(early=uc.AfterCount(2), late=uc.AfterCount(1))
OPERATORS = [
    Operator(Grouping(COMBINERS, uc.Fixed("4 seconds"), EARLY, mode="retracting", **LATE), SCHEMA),
    Operator(Grouping(COMBINERS, uc.Sessions("2 seconds"), **LATE), SCHEMA),
]
DAMAGED = [
    *(pytest.param(operator, False, id=name) for operator, name in zip(OPERATORS, ("fixed", "sessions"), strict=True)),
    *(
        pytest.param(operator, True, id=f"{name}, deposits")
        for operator, name in zip(OPERATORS, ("fixed", "sessions"), strict=True)
    ),
]
SEEDS = seeds(12, 250)
CASES = 20
"""The damaged states of a seed, of each operator."""

NAMES = ["../home/.profile", "/{outside}/canary", "..", ".", "", "a/b", "A" * 32, "0" * 31, "0" * 33, "0" * 32 + "\n"]
NAMES += ["../outside/canary", "..\\canary", "\u0660" * 32, "0" * 31 + "\0"]
ODD = [None, True, -1, 0, 1, 7, 2**31, 2**63 - 1, 2**63, -(2**63), 2**200, 1.5, float("nan"), "x", [], {}, [[]], [1, 2]]


def bundle(r: random.Random, count: int, second: int) -> pa.Table:
    rows = [(second * SECOND + r.randrange(4 * SECOND), f"k{r.randrange(40)}", r.randrange(9)) for _ in range(count)]
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
    return pa.table(columns, schema=SCHEMA)


def stored(operator: Operator, r: random.Random) -> tuple[bytes, Log]:
    """A state after some bundles, with several chunks and lists of dead rows."""
    log, manifest = Log(), None
    for second in range(6):
        loaded = load(manifest, log, operator)
        rows = bundle(r, 300 if second == 0 else 6, second // 3)
        stepped = operator.step(loaded.state, rows, watermark=second // 3 * SECOND)
        manifest = save(stepped.state, loaded, log, b"any bytes")
    assert manifest is not None
    return manifest, log


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all values within JSON."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from leaves(inner, (*path, key))


def put(head: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        head = head[key]
    head[path[-1]] = value


def entries(head: dict[str, Any]) -> list[dict[str, Any]]:
    parts = [part for name in ("windows", "atoms", "deposits") for part in head.get(name) or []]
    return [entry for part in parts for entry in (part["rows"], *part["deaths"])]


def flipped(r: random.Random, value: bytes) -> bytes:
    """The bytes with some of them changed, left out or added."""
    raw = bytearray(value)
    for _ in range(r.choice([1, 1, 1, 5])):
        at = r.randrange(len(raw) + 1)
        fate = r.random()
        if fate < 0.7 and at < len(raw):
            raw[at] = r.choice([r.randrange(256), raw[at] ^ 1 << r.randrange(8), 0, 255])
        elif fate < 0.85:
            del raw[at : at + r.choice([1, 8, len(raw)])]
        else:
            raw[at:at] = r.randbytes(r.choice([1, 8, 64]))
        if not raw:
            break
    return bytes(raw)


def spoilt(r: random.Random, manifest: bytes, log: Log, outside: Path) -> tuple[str, bytes, Log]:
    """A state with damage, and the kind of the damage."""
    text, _, extra = manifest.partition(b"\n")
    head, log = json.loads(text), Log(log)
    kind = r.choice(["name", "value", "value", "key", "bytes", "log", "forged", "forged", "table", "text"])
    match kind:
        case "name":
            name = r.choice(NAMES).replace("/{outside}", str(outside))
            r.choice(entries(head))["name"] = name
            if r.random() < 0.3:
                head["windows"][0]["stamp"] = name
        case "value":
            put(head, r.choice(list(leaves(head))), deepcopy(r.choice([*ODD, *NAMES])))
        case "key":
            path = r.choice([path for path in leaves(head) if isinstance(path[-1], str)])
            owner = head
            for key in path[:-1]:
                owner = owner[key]
            value = owner.pop(path[-1])
            if r.random() < 0.5:
                owner[r.choice(["more", "name", "deaths", "", "windows"])] = value
        case "bytes":
            return kind, flipped(r, manifest), log
        case "text":
            nested = b"[" * 100_000, b'{"version":2,"token":' + b"[" * 100_000, b'{"version":' + b"2" * 5000 + b"}\n"
            return (
                kind,
                r.choice([*nested, b"", b"\n", b'{"version":2}\n', b'{"version":2}', manifest[: r.randrange(99)]]),
                log,
            )
        case "log":
            id = r.choice(list(log))
            log[id] = flipped(r, log[id])
        case _:
            entry = r.choice(entries(head))
            value = flipped(r, log[entry["id"]]) if kind == "forged" else forged_table(r, log[entry["id"]])
            log[entry["id"]] = value
            entry |= {"size": len(value), "check": zlib.crc32(value)}
            if r.random() < 0.2:
                entry["count"] = r.choice([0, 1, 2**31 - 1, entry["count"] + 1])
    return kind, json.dumps(head, separators=(",", ":")).encode() + b"\n" + extra, log


def forged_table(r: random.Random, value: bytes) -> bytes:
    """Another table in the place of a chunk, or places of rows that it does not have."""
    try:
        table = pa.ipc.open_stream(value).read_all()
    except (pa.ArrowException, OSError):
        return pack_places(np.array(sorted(r.sample(range(10**6), 3))), 10**6)
    names = table.column_names
    place = r.randrange(len(names))
    match r.randrange(5):
        case 0:
            table = table.drop_columns([names[place]])
        case 1:
            table = table.set_column(place, names[place], pa.nulls(table.num_rows, table.column(place).type))
        case 2:
            table = table.slice(r.randrange(3), r.randrange(9))
        case 3:
            table = table.append_column(
                r.choice(["wake.more", "index.hash", "more"]), pa.nulls(table.num_rows, pa.int64())
            )
        case _:
            table = table.set_column(place, names[place], pa.array(["a"] * table.num_rows))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(("operator", "deposits"), DAMAGED)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_damaged_state_is_refused_or_right(
    operator: Operator, deposits: bool, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a checkpoint says, only files in the folder of the cache are written or removed."""
    outside, host = tmp_path / "outside", tmp_path / "host"
    outside.mkdir()
    (tmp_path / "home").mkdir()
    (outside / "canary").write_bytes(b"alive")
    (tmp_path / "home" / ".profile").write_bytes(b"alive")
    r = random.Random(seed)
    if deposits:
        monkeypatch.setattr(contents, "DEPOSIT_BYTES", 1)
    manifest, log = stored(operator, r)
    assert bool(json.loads(manifest.partition(b"\n")[0]).get("deposits")) == deposits
    rows = bundle(r, 8, 2)
    whole = load(manifest, log, operator)
    expected = operator.step(whole.state, rows, watermark=2 * SECOND).panes
    kinds = set()
    for _ in range(CASES):
        kind, written, values = spoilt(r, manifest, log, outside)
        kinds.add(kind)
        cache = ChunkCache.shared(directory=host)
        with changed_paths() as changed:
            try:
                loaded = load(written, values, operator, cache)
            except StateMismatch:
                continue
            finally:
                assert all(Path(path).is_relative_to(host) for path in changed), (kind, changed)
            if kind in ("name", "log", "text"):
                assert (kind == "log" and r) or written == manifest
            if checked_head(written) == checked_head(manifest) and values == log:
                assert operator.step(loaded.state, rows, watermark=2 * SECOND).panes.equals(expected)
            if kind not in ("forged", "table"):
                try:
                    after = operator.step(loaded.state, rows, watermark=2 * SECOND)
                except uc.UncombineError:
                    continue
                save(after.state, loaded, values)
            assert bytes_of(written) >= 0
        assert all(Path(path).is_relative_to(host) for path in changed), (kind, changed)
    assert tree(outside) | tree(tmp_path / "home") == {"canary": b"alive", ".profile": b"alive"}
    assert len(kinds) > 3
    assert operator.step(
        load(manifest, log, operator, ChunkCache.shared(directory=host)).state, rows, watermark=2 * SECOND
    ).panes.equals(expected)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_leads_out_of_the_folder_is_refused(name: str, tmp_path: Path) -> None:
    home, host = tmp_path / "home", tmp_path / "host"
    home.mkdir()
    (home / ".profile").write_text("alive")
    manifest, log = stored(OPERATORS[0], random.Random(1))
    text, _, extra = manifest.partition(b"\n")
    head = json.loads(text)
    head["windows"][0]["rows"]["name"] = name.replace("{outside}", str(home)[1:])
    written = json.dumps(head, separators=(",", ":")).encode() + b"\n" + extra
    with pytest.raises(StateMismatch, match=r"has a name .*, where 32 hexadecimal digits belong"):
        load(written, log, OPERATORS[0], ChunkCache.shared(directory=host))
    files = FileCache(host)
    if name not in ("A" * 32, "0" * 31, "0" * 33):
        for use in (files.get, files.has, files.forget, lambda name: files.put(name, b"bytes")):
            with pytest.raises(uc.errors.InvalidArgument, match="letters and digits as its name"):
                use(name)
    assert (home / ".profile").read_text() == "alive"


def test_names_are_written_as_they_are_read() -> None:
    manifest, _ = stored(OPERATORS[1], random.Random(2))
    head = checked_head(manifest)
    names = [head["token"], *(entry["name"] for entry in entries(head)), *(part["stamp"] for part in head["windows"])]
    assert all(len(name) == 32 and set(name) <= set("0123456789abcdef") for name in names)
    assert len(names) > 3


def test_least_times_that_hide_a_row_are_refused() -> None:
    """A row that is due before the least time of its chunk would be found late, or never."""
    manifest, log = stored(OPERATORS[0], random.Random(3))
    text, _, extra = manifest.partition(b"\n")
    head = json.loads(text)
    head["windows"][0]["least"]["event"] += 3600 * SECOND
    with pytest.raises(StateMismatch, match="due before the time that its manifest has for the clock 'event'"):
        load(json.dumps(head, separators=(",", ":")).encode() + b"\n" + extra, log, OPERATORS[0])


def test_chunks_of_the_cache_that_are_others_are_refused(tmp_path: Path) -> None:
    """The rows of another chunk, under the name that the manifest has."""
    cache = ChunkCache.shared(directory=tmp_path)
    manifest, log = stored(OPERATORS[0], random.Random(4))
    other, others = stored(OPERATORS[0], random.Random(5))
    loaded = load(other, others, OPERATORS[0], cache)
    part, chunk = next(iter(loaded.stored.values()))
    head = json.loads(manifest.partition(b"\n")[0])
    rows = head["windows"][0]["rows"]
    cache.add(f"{rows['name']}{rows['check']:08x}", replace(chunk, alive=np.ones(len(chunk.alive), np.bool_)))
    assert rows["count"] != part.rows.count
    with pytest.raises(StateMismatch, match=r"chunk \d+ of the state has \d+ rows with clocks"):
        load(manifest, log, OPERATORS[0], cache)


@pytest.mark.parametrize("value", [b"", b"1", b"9abc", b"b", b"4" + b"\xff" * 9])
def test_places_that_were_not_written_are_errors(value: bytes) -> None:
    with pytest.raises((ValueError, OSError)):
        unpack_places(value, 3, 100)
    with pytest.raises(ValueError, match="3 places of 5 rows"):
        unpack_places(pack_places(np.array([1, 4, 9]), 100), 3, 5)


def parcels(r: random.Random) -> Parcel:
    rows = bundle(r, r.choice([1, 20]), 0)
    table = r.choice([rows, rows.slice(0, 0), rows.set_column(1, "k", rows["k"].dictionary_encode())])
    return Parcel(r.choice(["cells", "rows"]), table, at=r.randrange(9), bad=1, lo=2)


@pytest.mark.parametrize("seed", seeds(6, 100))
def test_a_damaged_parcel_is_refused(seed: int) -> None:
    """Also one with the right checksum, whose offsets lead out of its texts."""
    r = random.Random(seed)
    for _ in range(60):
        packed = parcels(r).pack()
        damaged = flipped(r, packed)
        if damaged != packed:
            with pytest.raises(StateMismatch, match="another checksum"):
                Parcel.unpack(damaged)
        message = flipped(r, packed[:-4])
        try:
            parcel = Parcel.unpack(message + zlib.crc32(message).to_bytes(4, "little"))
        except StateMismatch:
            continue
        parcel.table.validate(full=True)
        assert len(str(parcel.table)) > 0


@pytest.mark.parametrize(
    "about",
    [b"{}", b"[]", b"[" * 100_000, b'{"kind":"code","at":0,"bad":0,"unassigned":0,"lo":0,"input":0}',
     b'{"kind":"rows","at":0,"bad":0,"unassigned":0,"lo":1.5,"input":0}', b"\xff", b'{"kind":[],"at":0}'],
)  # fmt: skip
def test_a_parcel_with_other_words_is_refused(about: bytes) -> None:
    table = pa.table({"x": [1]}).replace_schema_metadata({b"uncombine.parcel": about})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    message = sink.getvalue().to_pybytes()
    with pytest.raises(StateMismatch, match="a parcel on its way between two steps"):
        Parcel.unpack(message + zlib.crc32(message).to_bytes(4, "little"))
