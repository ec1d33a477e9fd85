"""A seed: the state of a flow as data, in a folder of Arrow files and a manifest, without an engine.

The idea: a state is rows, a few numbers and the positions of its sources, so it can leave the checkpoint that an engine
keeps and be where any engine starts. Its rows are in pieces, one for each shard that wrote it, and each row can say by
which hash it belongs to a shard. So a shard takes the rows that are its own, and the number of shards is free.

The manifest is written last. A folder without it is no seed, so that a seed is whole or is none. Not promised: that a
seed starts another flow than the one that made it.

Guarded by tests/panes/state/test_seed.py.
"""

from __future__ import annotations

import json
import posixpath
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import gcd
from typing import Any, TypeAlias
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from ...errors import InvalidArgument, StateMismatch
from ...files.paths import locate
from ..row_lift import shard_of
from ..watermarks.stored_watermarks import together
from ..watermarks.watermarks import InputWatermarks, Watermarks
from .codec import pack, unpack
from .operator import StatefulOperator
from .operator_state import Counts, OperatorState
from .seed_checks import checked
from .store import Chunk

FORMAT = 1
"""The number of the format. Seeds of every number up to this one are read, for ever."""

MANIFEST = "seed.json"

Routes: TypeAlias = Callable[[str, pa.Table], np.ndarray]
"""The hashes by which the rows of a store, given by its name, belong to shards."""


@dataclass(frozen=True)
class SeedFile:
    """A file of a seed: some rows of a store of a piece, with their clocks."""

    name: str
    store: str
    piece: int
    rows: int
    size: int
    check: int


@dataclass(frozen=True)
class SeedPiece:
    """The numbers of the shard that wrote a piece."""

    watermark: int
    output_watermark: int
    processing_time: int
    percentiles: tuple[tuple[float, int], ...]
    counts: Counts
    marks: Mapping[str, Any]
    """The watermarks of each source, and the strategies by which they were made, as `stored` gives them."""

    @classmethod
    def of(cls, state: OperatorState, marks: Mapping[str, Any]) -> SeedPiece:
        return cls(
            watermark=state.watermark,
            output_watermark=state.output_watermark,
            processing_time=state.processing_time,
            percentiles=tuple(sorted(state.percentiles.items())),
            counts=state.counts,
            marks=marks,
        )


@dataclass(frozen=True)
class SeedStep:
    """A step of the flow that a seed is of."""

    made_by: Mapping[str, Any]
    """The fingerprint of the step."""
    pieces: tuple[SeedPiece, ...]
    files: tuple[SeedFile, ...]

    @property
    def rows(self) -> dict[str, int]:
        """The number of rows of each store."""
        rows: dict[str, int] = {}
        for file in self.files:
            rows[file.store] = rows.get(file.store, 0) + file.rows
        return rows


@dataclass(frozen=True)
class SeedMaker:
    """The query or the run whose state a seed is. A table of it shows what the state takes for shown."""

    owner: str
    """The id of the query, or of the run, which its table has too."""
    batch: int
    """The last batch that is in the state, and in the table."""


@dataclass(frozen=True)
class Seed:
    """A seed as its manifest says it is; its rows stay in the files of its folder."""

    folder: str
    steps: tuple[SeedStep, ...]
    maker: SeedMaker
    positions: tuple[str, ...] = ()
    """The place to which each source has been read, as the text in which its engine notes it."""

    @property
    def bytes(self) -> int:
        """The bytes of its files."""
        return sum(file.size for step in self.steps for file in step.files)


def write_piece(
    folder: str, piece: int, state: OperatorState, marks: Mapping[str, Any]
) -> tuple[SeedPiece, list[SeedFile]]:
    """Write the rows of a shard into the folder of a seed; its manifest names them later."""
    files = [
        _write(folder, name, piece, chunk)
        for name, store in state.stores.items()
        for chunk in (() if store is None else store.chunks)
        if chunk.count
    ]
    return SeedPiece.of(state, marks), files


def write_seed(seed: Seed) -> Seed:
    """Write the manifest of a seed, whose rows are written; from now on the folder is one."""
    steps, maker = [asdict(step) for step in seed.steps], asdict(seed.maker)
    written = {"seed": FORMAT, "steps": steps, "maker": maker, "positions": list(seed.positions)}
    system, path = locate(seed.folder)
    system.create_dir(path, recursive=True)
    partial, whole = (posixpath.join(path, name) for name in (f"{MANIFEST}.{uuid4().hex}", MANIFEST))
    with system.open_output_stream(partial) as file:
        file.write(json.dumps(written, separators=(",", ":")).encode())
    system.move(partial, whole)
    return seed


def require_free(folder: str) -> None:
    """Raise if a seed cannot be written to a folder, because something is there."""
    system, path = locate(folder)
    info = system.get_file_info(path)
    if info.type == pafs.FileType.File or system.get_file_info(pafs.FileSelector(path, allow_not_found=True)):
        raise InvalidArgument(
            f"a seed is written to a new folder, and {folder!r} is not empty: give another one to to="
        )


def read_seed(folder: str) -> Seed:
    """The seed in a folder, as its manifest says it is; raises unless everything in it can be one of a seed."""
    system, path = locate(folder)
    try:
        with system.open_input_stream(posixpath.join(path, MANIFEST)) as file:
            written = file.read()
    except FileNotFoundError:
        raise InvalidArgument(
            f"{folder!r} is no seed: it has no file {MANIFEST}, which is written last, so the seed was never finished "
            "or is somewhere else"
        ) from None
    head = checked(written, folder, FORMAT)
    return Seed(
        folder=folder,
        steps=tuple(map(_step, head["steps"])),
        maker=SeedMaker(**head["maker"]),
        positions=tuple(head["positions"]),
    )


def opened_seed(seed: Seed | str | None) -> Seed | None:
    """A seed, given as one or by its folder, or none."""
    return read_seed(seed) if isinstance(seed, str) else seed


@dataclass(frozen=True)
class ShardSeed:
    """The part of a seed with which one shard of a step begins; a value that travels to the workers."""

    folder: str
    step: SeedStep

    def state(self, operator: StatefulOperator, shard: int, shards: int, routes: Routes) -> OperatorState:
        """The state of a shard, the one in this place of so many."""
        empty, own = operator.initial(), numbers(self.step.pieces, shard, shards)
        every = len(self.step.pieces)
        near = gcd(every, shards)
        files = [file for file in self.step.files if file.piece % near == shard % near]
        if odd := {file.store for file in files} - {name for name, store in empty.stores.items() if store is not None}:
            raise self._other(f"it has rows of {', '.join(map(repr, sorted(odd)))}, which the step does not keep")
        stores = dict(empty.stores)
        for file in files:
            store = stores[file.store]
            assert store is not None
            rows = self._rows(file, store.schema, operator)
            if every != shards:
                there = shard_of(routes(file.store, rows.table), shards) == shard
                rows = rows.without(np.flatnonzero(~there))
            hashes, table, wake = rows.living()
            stores[file.store] = store.put(hashes, table, wake)
        return replace(
            empty,
            stores=stores,
            watermark=own.watermark,
            output_watermark=own.output_watermark,
            processing_time=own.processing_time,
            percentiles=dict(own.percentiles),
            counts=own.counts,
        )

    def watermarks(
        self, fresh: Sequence[Watermarks], strategies: Sequence[str], shard: int, shards: int
    ) -> InputWatermarks:
        """The watermarks of the shard; `fresh` are those of each input before any report."""
        return together([piece.marks for piece in own_pieces(self.step.pieces, shard, shards)], fresh, strategies)

    def _rows(self, file: SeedFile, schema: pa.Schema, operator: StatefulOperator) -> Chunk:
        system, path = locate(self.folder)
        try:
            with system.open_input_file(posixpath.join(path, file.name)) as opened:
                value = opened.read()
        except FileNotFoundError:
            raise StateMismatch(
                f"the seed {self.folder!r} has lost the file {file.name}, which its manifest names: restore it from a "
                "copy"
            ) from None
        if len(value) != file.size or zlib.crc32(value) != file.check:
            raise self._damaged(file, "has other bytes than were written")

        def hashes(table: pa.Table) -> np.ndarray:
            if not table.schema.equals(schema):
                raise self._other(f"its rows have {_columns(table.schema)}, and the step keeps {_columns(schema)}")
            return operator.hashes(file.store, table)

        try:
            chunk = unpack(value, hashes)
        except StateMismatch:
            raise
        except (pa.ArrowException, OSError, ValueError, TypeError, LookupError, MemoryError, OverflowError) as error:
            raise self._damaged(file, f"cannot be read ({type(error).__name__})") from None
        if chunk.count != file.rows:
            raise self._damaged(file, f"has {chunk.count} rows, and its manifest counts {file.rows}")
        return chunk

    def _damaged(self, file: SeedFile, fault: str) -> StateMismatch:
        return StateMismatch(f"the file {file.name} of the seed {self.folder!r} {fault}: restore it from a copy")

    def _other(self, fault: str) -> StateMismatch:
        return StateMismatch(f"the seed {self.folder!r} is of another flow, for {fault}: give the seed of this flow")


def own_pieces(pieces: Sequence[SeedPiece], shard: int, shards: int) -> Sequence[SeedPiece]:
    """The pieces whose numbers count for a shard: its own where there are as many shards as pieces, else all."""
    return [pieces[shard]] if len(pieces) == shards else pieces


def numbers(pieces: Sequence[SeedPiece], shard: int, shards: int) -> SeedPiece:
    """The numbers of a shard.

    Of several pieces the furthest readings of the clocks count, since a row that came too late for one of them must not
    open a window again; and the least promise to the step after it. The counts of all are those of the first shard.
    """
    own = own_pieces(pieces, shard, shards)
    if len(pieces) == shards:
        return own[0]
    percentiles: dict[float, int] = {}
    for percent, time in (pair for piece in own for pair in piece.percentiles):
        percentiles[percent] = max(time, percentiles.get(percent, time))
    counts = Counts()
    for piece in own if shard == 0 else ():
        counts += piece.counts
    return SeedPiece(
        watermark=max(piece.watermark for piece in own),
        output_watermark=min(piece.output_watermark for piece in own),
        processing_time=max(piece.processing_time for piece in own),
        percentiles=tuple(sorted(percentiles.items())),
        counts=counts,
        marks={},
    )


def _write(folder: str, store: str, piece: int, chunk: Chunk) -> SeedFile:
    value = pack(Chunk.of(*chunk.living()))
    name = f"{uuid4().hex}.arrow"
    system, path = locate(folder)
    system.create_dir(path, recursive=True)
    with system.open_output_stream(posixpath.join(path, name)) as file:
        file.write(value)
    return SeedFile(name=name, store=store, piece=piece, rows=chunk.count, size=len(value), check=zlib.crc32(value))


def _step(fields: Mapping[str, Any]) -> SeedStep:
    return SeedStep(
        made_by=fields["made_by"],
        pieces=tuple(_piece(piece) for piece in fields["pieces"]),
        files=tuple(SeedFile(**file) for file in fields["files"]),
    )


def _piece(fields: Mapping[str, Any]) -> SeedPiece:
    percentiles = tuple((float(percent), time) for percent, time in fields["percentiles"])
    return SeedPiece(**{**fields, "percentiles": percentiles, "counts": Counts(**fields["counts"])})


def _columns(schema: pa.Schema) -> str:
    return "(" + ", ".join(f"{field.name}: {field.type}" for field in schema) + ")"


__all__ = [
    "FORMAT",
    "Seed",
    "SeedFile",
    "SeedMaker",
    "SeedPiece",
    "SeedStep",
    "ShardSeed",
    "opened_seed",
    "read_seed",
    "require_free",
    "write_piece",
    "write_seed",
]
