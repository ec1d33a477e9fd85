"""The queries of NEXMark on Spark: as a batch against Spark's SQL, as streams where Spark's own can run them."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from harness import Row, wall
from nexmark import native
from nexmark.events import Events
from nexmark.on_spark import WAYS, site, write
from nexmark.queries import QUERIES
from pyspark.sql import DataFrame
from streams import both, run

import uncombine as uc

TITLE = "NEXMark"

EVENTS, PARTS = 2_000_000, 6


def rows() -> Iterator[Row]:
    spark = uc.session("benchmarks", cores=2)
    made, folder = Events(rate=10_000), Path(tempfile.mkdtemp(prefix="uncombine-nexmark-"))
    write(spark, made, EVENTS, PARTS, folder)
    for name, query in QUERIES.items():
        flow = query(site(spark, made, folder))
        theirs = native.query(spark, name, folder)
        yield wall(f"{name}, batch", done(flow.df), done(theirs), "Spark SQL", None, runs=3)
    for name, query in QUERIES.items():
        ours = partial(streamed, query, lambda: site(spark, made, folder, **WAYS["stream"]))
        if name in native.STREAMED:
            yield both(
                f"{name}, a batch of {EVENTS // PARTS:,} events", ours, partial(native.stream, spark, name, folder),
                "Spark's own streaming query", None, PARTS,
            )  # fmt: skip
        else:
            times = run(ours(), PARTS)[2:]
            one = run(streamed(QUERIES["q0"], lambda: site(spark, made, folder, **WAYS["stream"])), PARTS)[2:]
            yield Row(
                f"{name}, a batch of {EVENTS // PARTS:,} events", statistics.median(times), statistics.median(one),
                None, "q0: Spark has no such streaming query",
            )  # fmt: skip


def streamed(query: Callable[..., uc.Flow], made: Callable[[], object]) -> DataFrame:
    df: DataFrame = query(made()).df
    return df


def done(df: DataFrame) -> Callable[[], None]:
    return lambda: df.write.format("noop").mode("overwrite").save()
