"""A seed: the state of a flow as data, in a folder of Arrow files and a manifest, without an engine.

The idea: a state is rows, a few numbers and the positions of its sources, so it can leave the checkpoint that an engine
keeps and be where any engine starts. Its rows are in pieces, one for each shard that wrote it, and each row can say by
which hash it belongs to a shard. So a shard takes the rows that are its own, and the number of shards is free.

A state also takes panes for shown. Those that nobody has shown yet, since the state was computed and not run, are the
corrections of the seed: the reader of the seed shows them first.

The manifest is written last. A folder without it is no seed, so that a seed is whole or is none. Not promised: that a
seed starts another flow than the one that it is of.

Guarded by tests/panes/state/test_seed.py.
"""

from __future__ import annotations

import json
import posixpath
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.fs as pafs

from ...errors import InvalidArgument, StateMismatch
from ...files.paths import locate
from ...windows.times import MIN_TIME
from .codec import CODEC, pack
from .operator_state import OF_ALL_SHARDS, Counts, OperatorState
from .pane_type import with_panes_of_now
from .seed_checks import checked, with_check
from .store import Chunk

FORMAT = 3
"""The number of the format. Seeds of every number up to this one are read, for ever."""

MANIFEST = "seed.json"

CORRECTIONS = "corrections"
"""The name in the place of that of a store, in a file of panes."""

PANES_AT_ONCE = 1 << 20
"""The panes of a file of corrections, which is read as a whole."""


@dataclass(frozen=True)
class SeedFile:
    """A file of a seed: some rows of a store of a piece, with their clocks, or panes."""

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
    closed: int = MIN_TIME
    """The end of the last windows that expired under a shorter lateness."""
    since: Mapping[str, int] = field(default_factory=dict)
    """For each combiner that was added without a history: the start of the first windows of which it has all rows."""

    @classmethod
    def of(cls, state: OperatorState, marks: Mapping[str, Any]) -> SeedPiece:
        return cls(
            watermark=state.watermark,
            output_watermark=state.output_watermark,
            processing_time=state.processing_time,
            percentiles=tuple(sorted(state.percentiles.items())),
            counts=state.counts,
            marks=marks,
            closed=state.closed,
            since=dict(state.since),
        )


@dataclass(frozen=True)
class SeedStep:
    """A step of the flow that a seed is of."""

    made_by: Mapping[str, Any]
    """The fingerprint of the step."""
    pieces: tuple[SeedPiece, ...]
    files: tuple[SeedFile, ...]
    corrections: tuple[SeedFile, ...] = ()
    """The panes of the step that its state takes for shown, or for retracted, and that nobody has shown yet."""

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


@dataclass(frozen=True, repr=False)
class Seed:
    """A seed as its manifest says it is; its rows stay in the files of its folder."""

    folder: str
    steps: tuple[SeedStep, ...]
    maker: SeedMaker
    positions: tuple[str, ...] = ()
    """The place to which each source has been read, as the text in which its engine notes it; "-" for none."""
    corrects: bool = False
    """True if the table of its maker is still to be made, of that of `base` and of the corrections."""
    base: SeedMaker | None = None
    """The query or the run whose table is corrected; None for a new table."""
    shards: int | None = None
    """The number of shards among which it is to be divided; None for that of the flow."""

    @property
    def bytes(self) -> int:
        """The bytes of its files."""
        return sum(file.size for step in self.steps for file in (*step.files, *step.corrections))

    def __repr__(self) -> str:
        told = []
        for number, step in enumerate(self.steps, 1):
            rows = {**step.rows, CORRECTIONS: sum(file.rows for file in step.corrections)}
            parts = [f"{count:,} {name}" for name, count in rows.items() if count]
            told.append(f"step {number}: {', '.join(parts) or 'no rows'}")
        return f"Seed({self.folder!r}: {'; '.join(told)}; {self.bytes:,} bytes)"


def write_piece(
    folder: str, piece: int, state: OperatorState, marks: Mapping[str, Any]
) -> tuple[SeedPiece, list[SeedFile]]:
    """Write the rows of a shard into the folder of a seed; its manifest names them later."""
    files = [
        write_bytes(folder, name, piece, chunk.count, pack(Chunk.of(*chunk.living())))
        for name, store in state.stores.items()
        for chunk in (() if store is None else store.chunks)
        if chunk.count and (piece == 0 or name != OF_ALL_SHARDS)
    ]
    return SeedPiece.of(state, marks), files


def write_corrections(folder: str, piece: int, panes: Iterable[pa.Table]) -> list[SeedFile]:
    """Write panes of a shard into the folder of a seed, for the reader of the seed to show first."""
    files = []
    for table in panes:
        for start in range(0, table.num_rows, PANES_AT_ONCE):
            some = table.slice(start, PANES_AT_ONCE)
            files.append(write_bytes(folder, CORRECTIONS, piece, some.num_rows, _packed(some)))
    return files


def corrections(
    seed_folder: str, files: Sequence[SeedFile], schema: pa.Schema, place: int = 0, places: int = 1
) -> Iterator[pa.Table]:
    """The corrections of a step, file by file, in these columns: those of one place where several divide them."""
    for number, file in enumerate(files):
        if number % places == place:
            value = file_bytes(seed_folder, file)
            try:
                table = pa.ipc.open_stream(pa.py_buffer(value)).read_all()
                table.validate(full=True)
                if table.num_rows != file.rows or table.column_names != schema.names:
                    raise ValueError("it has other rows or columns")
                yield with_panes_of_now(table).cast(schema)
            except (
                pa.ArrowException,
                OSError,
                ValueError,
                TypeError,
                LookupError,
                MemoryError,
                OverflowError,
            ) as error:
                raise unreadable_file(seed_folder, file, f"cannot be read ({type(error).__name__})") from None


def file_bytes(folder: str, file: SeedFile) -> bytes:
    """The bytes of a file of a seed; raises unless they are those that were written."""
    system, path = locate(folder)
    try:
        with system.open_input_file(posixpath.join(path, file.name)) as opened:
            value: bytes = opened.read()
    except FileNotFoundError:
        raise StateMismatch(
            f"the seed {folder!r} has lost the file {file.name}, which its manifest names: restore it from a copy"
        ) from None
    if len(value) != file.size or zlib.crc32(value) != file.check:
        raise unreadable_file(folder, file, "has other bytes than were written")
    return value


def unreadable_file(folder: str, file: SeedFile, fault: str) -> StateMismatch:
    """The error for a file of a seed with a fault."""
    return StateMismatch(f"the file {file.name} of the seed {folder!r} {fault}: restore it from a copy")


def write_seed(seed: Seed) -> Seed:
    """Write the manifest of a seed, whose rows are written; from now on the folder is one."""
    parts = {name: value for name, value in asdict(seed).items() if name != "folder"}
    written = with_check({"seed": FORMAT, **parts})
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
        corrects=head["corrects"],
        base=None if head["base"] is None else SeedMaker(**head["base"]),
        shards=head["shards"],
    )


def opened_seed(seed: Seed | str | None) -> Seed | None:
    """A seed, given as one or by its folder, or none."""
    return read_seed(seed) if isinstance(seed, str) else seed


def write_bytes(folder: str, store: str, piece: int, rows: int, value: bytes) -> SeedFile:
    """Write a file into the folder of a seed."""
    name = f"{uuid4().hex}.arrow"
    system, path = locate(folder)
    system.create_dir(path, recursive=True)
    with system.open_output_stream(posixpath.join(path, name)) as file:
        file.write(value)
    return SeedFile(name=name, store=store, piece=piece, rows=rows, size=len(value), check=zlib.crc32(value))


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=CODEC)) as writer:
        writer.write_table(table)
    value: bytes = sink.getvalue().to_pybytes()
    return value


def _step(fields: Mapping[str, Any]) -> SeedStep:
    return SeedStep(
        made_by=fields["made_by"],
        pieces=tuple(read_piece(piece) for piece in fields["pieces"]),
        files=tuple(SeedFile(**file) for file in fields["files"]),
        corrections=tuple(SeedFile(**file) for file in fields["corrections"]),
    )


def read_piece(fields: Mapping[str, Any]) -> SeedPiece:
    """The piece whose fields are in a manifest."""
    percentiles = tuple((float(percent), time) for percent, time in fields["percentiles"])
    return SeedPiece(**{**fields, "percentiles": percentiles, "counts": Counts(**fields["counts"])})


__all__ = [
    "CORRECTIONS",
    "FORMAT",
    "MANIFEST",
    "Seed",
    "SeedFile",
    "SeedMaker",
    "SeedPiece",
    "SeedStep",
    "corrections",
    "file_bytes",
    "opened_seed",
    "read_piece",
    "read_seed",
    "require_free",
    "unreadable_file",
    "write_bytes",
    "write_corrections",
    "write_piece",
    "write_seed",
]
