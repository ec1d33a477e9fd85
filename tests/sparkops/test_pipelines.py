"""Random pipelines of groupings, joins, unions and steps: replays and streams give the rows of a run here."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from bounded import bounded_flow, cut
from differing import cut_at_random, differs, left
from engine import Engine
from opened import opened
from pyspark.sql import SparkSession
from random_pipelines import SCHEMA, draw, draw_rows
from row_steps import script_of
from seeds import seeds
from streams import read_stream, rows_flow, started, written

import uncombine as uc
from uncombine.flows.graph import graph_of
from uncombine.sparkops.routes import route_with_left_out
from uncombine.sparkops.sql_types import spark_schema

STRATEGIES = [uc.BoundedLag("2 minutes"), uc.BoundedLag("30 seconds"), uc.Monotonic()]
STRATEGIES += [uc.ProcessingTime("1 minute"), uc.PerSource("k", "30 seconds", "2 minutes")]
BUNCH = 5


class Case:
    """A random pipeline, over any sources of its rows."""

    def __init__(self, seed: int) -> None:
        r = random.Random(seed)
        self.seed, self.weighted = seed, r.random() < 0.5
        names = "abc"[: r.choice([1, 2, 2, 3])]
        self.tables = {name: draw_rows(r, self.weighted, place) for place, name in enumerate(names)}
        self.strategies = {name: r.choice(STRATEGIES) for name in names}
        by_clock = any(isinstance(strategy, uc.ProcessingTime) for strategy in self.strategies.values())
        self.shards = 1 if by_clock else r.choice([1, 2, 3])  # of several each reports in its own steps only
        self.steps = r.random()
        self.beside = r.random() < 0.5
        used = {leaf for leaf in self.pipeline(self._replayed).names if leaf in self.tables}
        self.tables = {name: table for name, table in self.tables.items() if name in used}
        self.script = script_of(self.tables)

    def pipeline(self, source: Any) -> Any:
        flows = {}
        for name in self.strategies:
            flow = source(name)
            flows[name] = flow if self.weighted else flow.select("ts", "k", "x")
        return draw(random.Random(self.steps), flows)

    @property
    def options(self) -> dict[str, Any]:
        return {"diff": "w" if self.weighted else None, "processing_time": "seen", "shards": self.shards}

    def _replayed(self, name: str) -> uc.Flow:
        parts = cut(self.tables.get(name, SCHEMA.empty_table()), 3, self.seed)
        settings = {**self.options, "replay": True, "close_at_end": True, "name": name}
        return bounded_flow(parts, "ts", self.strategies[name], self.seed, **settings)

    def _streamed(self, name: str) -> uc.Flow:
        return rows_flow(SCHEMA, "ts", self.strategies[name], name=name, **self.options)

    def replay(self) -> str | None:
        made = self.pipeline(self._replayed)
        flow = made.flow
        want = flow.run(self.script)
        if not self.beside:
            return differs("replay", flow.df.toArrow(), want, made.names)
        first = graph_of(flow).leaves[0].source.input  # type: ignore[attr-defined]
        both = route_with_left_out(flow, first).df().toArrow()
        return differs("replay", both, want, made.names)

    def batches(self, r: random.Random, most: int) -> Iterator[dict[str, pa.Table]]:
        """The rows of all sources, those of one to so many instants at a time."""
        return cut_at_random(self.tables, r, most)

    def batch(self) -> str | None:
        """All rows at once: the result of one source, in which nothing is retracted."""
        name, table = next(iter(self.tables.items()))
        options = {"diff": self.options["diff"], "shards": self.shards, "name": name}
        source = bounded_flow(cut(table, 3, self.seed), "ts", None, self.seed, **options)
        source = source if self.weighted else source.select("ts", "k", "x")
        made = draw(random.Random(self.steps), {name: source})
        got = made.flow.df.toArrow()
        want = made.flow.run([uc.Elements(table), uc.Watermark(None)]).drop_columns(["step"])
        one, other = (left(some.select(want.column_names).to_pylist()) for some in (got, want))
        if one != other:
            return f"batch: only here {one - other}, only in this process {other - one}"
        return f"batch: retractions of {made.names}" if min(got["diff"].to_pylist(), default=1) < 0 else None

    def stream(self) -> str | None:
        """Micro-batches cut anywhere, some of them with new workers, some run twice from the same checkpoint."""
        made, r = self.pipeline(self._streamed), random.Random(self.seed + 1)
        flow = made.flow
        engine = Engine(flow, self.seed, beside=self.beside)
        panes = [engine.route.schema.empty_table()]
        for rows in self.batches(r, 4):
            if r.random() < 0.2:
                engine.restart()
            if r.random() < 0.2:
                kept = engine.snapshot()
                engine.batch(rows)
                engine = Engine(flow, self.seed, kept, self.beside)
            panes.append(engine.batch(rows)[0])
        want = flow.run(self.script[:-1])
        return differs("stream", pa.concat_tables(panes), want, made.names)

    def query(self, spark: SparkSession, folder: Path) -> str | None:
        """A query over files, of which each micro-batch takes one of each source."""
        batches = list(self.batches(random.Random(self.seed), 12))
        frames = {
            name: read_stream(spark, written([batch[name] for batch in batches], folder / name), SCHEMA)
            for name in self.tables
        }

        def source(name: str) -> uc.Flow:
            options = {**self.options, "name": name, "wake": False}
            return opened(frames.get(name, frames[min(frames)]), time="ts", watermark=self.strategies[name], **options)

        made = self.pipeline(source)
        flow = made.flow
        started(flow.df, folder / "out").awaitTermination()
        got = spark.read.schema(spark_schema(flow.schema)).parquet(str(folder / "out" / "panes")).toArrow()
        want = flow.run(self.script[:-1])
        return differs("query", got.cast(flow.schema), want, made.names)


FIRSTS = seeds(10, 500, step=BUNCH)


@pytest.mark.daily
@pytest.mark.parametrize("first", FIRSTS)
def test_a_replay_and_a_stream_give_the_rows_of_a_local_run(first: int) -> None:
    cases = [Case(seed) for seed in range(first, first + BUNCH)]
    found = {case.seed: case.replay() or case.batch() or case.stream() for case in cases}
    assert not {seed: one for seed, one in found.items() if one is not None}


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_a_query_gives_the_rows_of_a_local_run(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    assert Case(seed).query(spark, tmp_path) is None
