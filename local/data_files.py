"""Files as the source of a local run: threads read them, and combine their rows.

Guarded by tests/local/test_local_files.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from typing import Any

import pyarrow as pa

from ..changelogs.base import Changelog
from ..changelogs.flows import changed_flow, reading_of, warn_of_changes
from ..combiners.expressions.expr import Expr
from ..errors import TypeMismatch
from ..flows.flow import Flow, flow_of
from ..flows.reading import Reading
from ..flows.settings import Settings
from ..panes.readers.data_paths import DataPath, data_paths
from ..panes.readers.formats import check_arguments
from ..panes.readers.listing import list_files
from ..panes.readers.paths import locate
from ..panes.readers.reading import FileFormat, Split, describe, read, splits
from ..panes.watermarks.watermark_strategies import WatermarkStrategy
from .sources import WithoutSpark
from .threads import in_threads

READER_BYTES = 32 << 20
"""The bytes of files, roughly, that one reader reads. A larger file has several readers, where its format allows it."""


@dataclass(frozen=True, eq=False)
class LocalFiles(WithoutSpark):
    """Files of one format."""

    paths: tuple[DataPath, ...]
    listed: tuple[str, ...]
    """The files that there were when the flow was made, which are read or missed."""
    format: FileFormat
    schema: pa.Schema
    streaming: bool
    reading: Reading | None = None
    told: set[str] = field(default_factory=set)
    """The columns of which a warning has said that folders and files differ."""
    made_by = "uc.local.files()"
    has_rows = many = True

    def describe(self) -> str:
        read_by = "" if self.reading is None else f", messages read by {self.reading.words}"
        return f"{self.format.format} files at {', '.join(path.words for path in self.paths)}{read_by}"

    @property
    def whole(self) -> pa.Table:
        names = self.schema.names
        return pa.concat_tables([self.schema.empty_table(), *in_threads(lambda table: table, self.readers(names))])

    def readers(self, columns: Sequence[str], coded: frozenset[str] = frozenset()) -> list[Iterator[pa.Table]]:
        reading, form = self.reading, self.format
        if reading is not None:
            form = replace(form, columns=tuple(reading.needs(columns)))
            return [
                map(partial(reading, columns=columns), read(form, parts, _skipped, self.told))
                for parts in self._parts()
            ]
        filtered = () if form.filter is None else form.filter.columns
        form = replace(form, columns=tuple(columns), coded=coded - set(filtered))
        return [read(form, parts, _skipped, self.told) for parts in self._parts()]

    def _parts(self) -> Iterator[list[Split]]:
        """The parts of files for each reader: several small files, or a part of a large one."""
        held: list[Split] = []
        size = 0
        for path in sorted({*list_files(self.paths), *self.listed}):
            system, inside = locate(path)
            mine = system.get_file_info(inside).size or 0
            if held and size + mine > READER_BYTES:
                yield held
                held, size = [], 0
            if mine > READER_BYTES:
                yield from ([part] for part in splits(self.format, path, READER_BYTES))
                continue
            held.append(Split(path))
            size += mine
        if held:
            yield held


def _skipped(path: str, reason: str) -> None:
    warnings.warn(f"skipped: {reason}", stacklevel=2)


def files(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    format: str | None = None,
    *,
    time: str = "ts",
    watermark: WatermarkStrategy | str | None = None,
    schema: pa.Schema | None = None,
    diff: str | None = None,
    changelog: Changelog | None = None,
    processing_time: str | None = None,
    name: str | None = None,
    filter: Expr | None = None,
    on_bad_file: str = "error",
    on_missing_column: str = "error",
    **options: Any,
) -> Flow:
    """Start a flow over files that this process reads, for `uc.local.run(flow=...)` without Spark.

    A flow whose windows each have one pane, when they expire, reads and combines its rows in threads, as many as
    `pyarrow.cpu_count()`, and holds what they add up to. Any other flow holds all rows. `explain()` says which.

    Parameters
    ----------
    path
        A folder, a file, a pattern, or several of them. A path that exists is itself, and no pattern. Folders named
        `key=value` below it are columns. A link below it that leads out of it is not followed.
    format
        "parquet", "arrow" (also Feather), "csv" or "json" (a row a line). If not given, the names
        of the files decide.
    schema
        The columns and their types; if not given, those of one of the files.
    filter
        A condition for rows. Parts of files that cannot have such rows are not read.
    on_bad_file
        The treatment of a file that cannot be read: "error", or "skip", which leaves out the part of it that one
        thread reads, with a warning. Only the columns that a flow needs are read where threads combine.
    on_missing_column
        The treatment of a file without one of the columns: "error", or "null" for a column of nulls.
    time, watermark, diff, changelog, processing_time, name
        As for `uc.local.source`.
    **options
        Options of the format: for csv delimiter=, quote_char=, header=, null_values=.

    Examples
    --------
    >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile, uncombine as uc
    >>> folder = tempfile.mkdtemp()
    >>> rows = pa.table({"ts": pa.array([0, 61_000_000], pa.timestamp("us", "UTC")), "score": [3, 4]})
    >>> pq.write_table(rows, f"{folder}/scores.parquet")
    >>> totals = uc.local.files(folder).window(uc.Fixed("1 minute")).combine(total=uc.Sum("score"))
    >>> sorted(uc.local.run(flow=totals)["total"].to_pylist())
    [3, 4]
    """
    if not isinstance(path, str | PathLike | Sequence):
        raise TypeMismatch(f"local.files() takes a path or several, but was given a {type(path).__name__} as path=")
    check_arguments(options, files, "uc.local.files()")
    paths = data_paths(path)
    listed = tuple(list_files(paths))
    described = describe(
        paths,
        format,
        schema,
        filter=filter,
        on_bad_file=on_bad_file,
        on_missing_column=on_missing_column,
        options=options,
        files=listed,
    )
    settings = Settings(time, watermark, diff, processing_time, name=name)
    source = LocalFiles(paths, listed, described, described.schema, settings.strategy is not None)
    if changelog is None:
        warn_of_changes(source.schema.names, settings)
        return flow_of(source, settings)
    reading = reading_of(changelog, described.schema, settings, strict=True)
    return changed_flow(replace(source, schema=reading.schema, reading=reading), settings, reading)


__all__ = ["LocalFiles", "files"]
