"""Files as other systems write them: their values, joins and streams of them do not depend on their layout."""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from engine import Engine
from join_flows import KINDS, WITHIN, joined
from odd_files import FORMATS, KEYS, START, TIME, VALUES, Kind, drawn_values, odd_folder, plain, written_files
from odd_streams import SECOND, draw_program
from opened import opened
from pyspark.sql import DataFrame, SparkSession
from seeds import seeds
from streams import changed, rows_flow

import uncombine as uc
from uncombine.files.listing import list_files
from uncombine.files.reading import FileFormat, Split, describe, read
from uncombine.sparkops.routes.streaming import StreamRoute


def failed(path: str, reason: str) -> None:
    raise AssertionError((path, reason))


def described(folder: Path, format: str, schema: pa.Schema, coded: frozenset[str] = frozenset()) -> FileFormat:
    found = describe(str(folder), named(format), schema, on_missing_column="null")
    return replace(found, coded=coded)


def named(format: str) -> str:
    return "arrow" if format == "arrows" else format


def draw_rows(r: random.Random, format: str, kinds: dict[str, Kind], count: int) -> list[dict[str, Any]]:
    columns = {name: drawn_values(r, kind, count, format) for name, kind in kinds.items()}
    times = [START + r.randrange(40) * 15 * SECOND for _ in range(count)]
    return [{"ts": ts, **{name: columns[name][i] for name in kinds}} for i, ts in enumerate(times)]


def bits(table: pa.Table) -> Counter[Any]:
    return Counter(map(plain, table.to_pylist()))


@pytest.mark.parametrize("first", seeds(60, 2_400, step=15))
def test_values_are_read_to_the_last_bit(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 15):
        r, folder = random.Random(seed), odd_folder(seed, tmp_path / str(seed))
        format = r.choice(FORMATS)
        fits = {name: kind for name, kind in VALUES.items() if format in kind.formats}
        kinds = {name: fits[name] for name in r.sample(list(fits), 4)}
        schema = pa.schema({"ts": TIME, **{name: kind.type for name, kind in kinds.items()}})
        rows = draw_rows(r, format, kinds, r.choice([0, 1, 5, 40]))
        by = next((name for name, kind in kinds.items() if kind.folder), None) if r.random() < 0.4 else None
        if written_files(r, rows, schema, folder, format, by):
            coded = frozenset(name for name in kinds if r.random() < 0.5)
            parts = [Split(path) for path in list_files([str(folder)])]
            tables = list(read(described(folder, format, schema, coded), parts, failed))
            found = sum((bits(table.select(schema.names)) for table in tables), Counter[Any]())
            assert found == bits(pa.Table.from_pylist(rows, schema)), seed


@pytest.mark.weekly
@pytest.mark.parametrize("first", seeds(12, 360, step=3))
def test_streams_of_odd_files_with_restarts(first: int, tmp_path: Path) -> None:
    """The panes that are left are those of all rows, whatever form each file has its keys and texts in."""
    for seed in range(first, first + 3):
        r = random.Random(seed)
        program = draw_program(r)

        def flow(program: Any = program, seed: int = seed) -> uc.Flow:
            return program.over(rows_flow(program.schema, "ts", "1 second", 1 + seed % 3, diff=program.diff))

        route = StreamRoute(flow(), flow().source.input)  # type: ignore[attr-defined]
        coded = route.lift(route.graph.steps[0], 0).coded
        engine, out = Engine(flow(), seed), []
        for i, rows in enumerate(program.files):
            folder = tmp_path / f"{seed}.{i}"
            written_files(r, rows, program.schema, folder, program.format, None)
            form = described(folder, program.format, program.schema, coded)
            if r.random() < 0.5:
                engine = Engine(flow(), seed + i, restored=engine.snapshot())
            given = [table for path in list_files([str(folder)]) for table in read(form, [Split(path)], failed)]
            out.append(engine.batch(given, START // 1000 + i)[0])
        assert program.shown(pa.concat_tables(out)) == program.expected(), seed


@pytest.mark.parametrize("seed", seeds(1, 40))
def test_queries_over_odd_files_with_restarts(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    """A query that ends and starts again between files shows what the batch shows."""
    r = random.Random(seed)
    program = draw_program(r)
    folder, panes = odd_folder(seed, tmp_path / "files"), list[pa.Table]()
    given: dict[str, Any] = {"schema": program.schema, "on_missing_column": "null", "diff": program.diff}
    live = {"streaming": True, "watermark": "1 second", "wake": False, "max_files_per_batch": r.choice([1, 2])}
    waiting = list(enumerate(program.files))

    def kept(df: DataFrame, batch: int) -> None:
        panes.append(df.toArrow())

    def flow(**options: Any) -> uc.Flow:
        return program.over(opened(folder, spark=spark, format=named(program.format), shards=2, **given, **options))

    with changed(spark):
        while waiting:
            for i, rows in [waiting.pop(0) for _ in range(min(len(waiting), r.choice([1, 2])))]:
                written_files(r, rows, program.schema, tmp_path / f"new {i}", program.format, None)
                for j, path in enumerate(sorted((tmp_path / f"new {i}").iterdir())):
                    os.utime(path, (1_000_000_000 + 10 * i + j,) * 2)
                    path.rename(folder / f"{i}.{j}{path.name}")
            writer = flow(**live).write_stream(checkpoint=tmp_path / "state").foreachBatch(kept)
            writer.trigger(availableNow=True).start().awaitTermination()
        final = replace(program, options={**program.options, "mode": "accumulating"})
        assert final.shown(flow().df.toArrow()) == program.expected()
    assert program.shown(pa.concat_tables(panes)) == program.expected()


@pytest.mark.parametrize("seed", seeds(2, 200))
def test_joins_of_odd_files(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    """A join of files in batch, in a replay and in this process is that of the rows by pandas."""
    r = random.Random(seed)
    kind = KEYS[r.choice(list(KEYS))]
    tables, sources, by = [], [], "k" if kind.folder and r.random() < 0.4 else None
    for side in ("left", "right"):
        format = r.choice(kind.formats)
        kinds = {"k": kind, "v": VALUES[r.choice([n for n, other in VALUES.items() if format in other.formats])]}
        schema = pa.schema({"ts": TIME, **{name: one.type for name, one in kinds.items()}, "x": pa.int64()})
        rows = [{**row, "x": i} for i, row in enumerate(draw_rows(r, format, kinds, r.choice([1, 8, 30])))]
        folder = odd_folder(seed, tmp_path / side)
        written_files(r, rows, schema, folder, format, by)
        tables.append(pa.Table.from_pylist(rows, schema))
        sources.append((folder, named(format)))
    (how, unmatched), within = r.choice(KINDS), r.choice(WITHIN)

    def flow(sides: list[uc.Flow]) -> uc.Flow:
        right = sides[1].with_columns(y=uc.col("x"), u=uc.col("v")).select("ts", "k", "y", "u")
        return sides[0].join(right, "k", how, within, unmatched)

    def files(**options: Any) -> uc.Flow:
        given = {"on_missing_column": "null", "shards": 2, **options}
        return flow(
            [
                opened(path, format=form, spark=spark, schema=table.schema, name=name, **given)
                for (path, form), table, name in zip(sources, tables, "ab", strict=True)
            ]
        )

    names = ["k", "x", "v"] if how in ("semi", "anti") else ["k", "x", "v", "y", "u"]
    live = {"replay": True, "processing_time": "ts", "watermark": "1 day", "close_at_end": True}
    want = expected_join(tables, how, *(int(uc.span(bound)) for bound in within))
    with changed(spark):
        shown = [files().df.toArrow(), files(**live).df.toArrow()]
    shown.append(flow([uc.flow(table) for table in tables]).run().panes)
    for panes in shown:
        net: Counter[Any] = Counter()
        for row in panes.to_pylist():
            net[tuple(plain(row[name]) for name in names)] += row["diff"]
        assert {row: count for row, count in net.items() if count} == dict(want)


def expected_join(tables: list[pa.Table], how: str, low: int, high: int) -> Counter[Any]:
    """The columns of the join by pandas, keys with -0.0 as 0.0."""
    given = [{row["x"]: row for row in table.to_pylist()} for table in tables]
    frames = []
    for table, rows in zip(tables, given, strict=True):
        keys = [None if row["k"] is None else plain(row["k"], zeros=True) for row in rows.values()]
        times = table["ts"].cast(pa.int64()).to_pylist()
        frames.append(pd.DataFrame({"k": pd.Series(keys, dtype=object), "x": list(rows), "t": times, "w": 1}))
    out: Counter[Any] = Counter()
    for (_, x, _, y, _), count in joined(*frames, how, low, high, ["k"]).items():
        left, right = (None if place is None else rows[int(place)] for place, rows in zip((x, y), given, strict=True))
        row = [plain((left or right or {})["k"], zeros=True)]
        for side in (left, right)[: 1 if how in ("semi", "anti") else 2]:
            row += [None, None] if side is None else [side["x"], plain(side["v"])]
        out[tuple(row)] += count
    return out
