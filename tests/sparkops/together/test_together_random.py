"""Random flows that share steps as real queries, stopped and killed at random: each has the rows of a run here."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apps import committed, finished, reached, running
from differing import differs
from programs import program
from programs.graphs import cut, started, write_rows
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from row_steps import script_of
from seeds import seeds
from together_flows import tables_together

import uncombine as uc


class Stopped(Exception):
    """The end of a run in a batch that was not committed."""


def check(seed: int, tables: dict[str, pa.Table], out: Path) -> None:
    """Compare the files of each flow with a run over the same rows in this process."""
    flows, _ = tables_together(seed, steps_alone=True)
    results = uc.together(**flows).run(script_of(tables)[:-1])
    for name, flow in flows.items():
        files = sorted((out / "panes" / name).glob("*.parquet"))
        panes = pa.concat_tables([flow.schema.empty_table(), *(pq.read_table(one).cast(flow.schema) for one in files)])
        assert differs(name, panes, results[name], ("map remembered",)) is None


@pytest.mark.parametrize("seed", seeds(8, 30))
def test_a_query_that_stops_in_batches_goes_on(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    r, out = random.Random(seed + 2), tmp_path / "out"
    tables = write_rows(seed, tmp_path / "in", 8)
    for _ in range(2):
        last = committed(out) + r.randrange(4)

        def stop(batch: int, last: int = last) -> None:
            if batch >= last:
                raise Stopped

        query = started(spark, seed, tmp_path / "in", out, stop)
        with suppress(StreamingQueryException):
            query.awaitTermination()
        assert query.exception() is None or "Stopped" in str(query.exception())
    started(spark, seed, tmp_path / "in", out).awaitTermination()
    assert committed(out) == len(list((tmp_path / "in").glob("*/*.parquet"))) / len(tables)
    check(seed, tables, out)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [seed for seed in range(40) if 4 <= len(cut(seed, 4)[1]) <= 8][:7])
def test_a_query_that_is_killed_twice(seed: int, tmp_path: Path) -> None:
    r, out, files = random.Random(seed + 3), tmp_path / "out", tmp_path / "in"
    out.mkdir()
    tables = write_rows(seed, files, 4)
    most = len(cut(seed, 4)[1])
    killed = 0
    for moment in r.sample(["offsets", "state", "commits", "later"], 2):
        batch = committed(out) + r.randrange(2)
        while batch < most - 1 and reached(out, batch, moment):
            batch += 1
        with running(out, seed, files, out, script=program("graphs")) as app:
            alive = app.wait_for(batch, moment) and app.wait(r.random() * (2.0 if moment == "later" else 0.3))
            assert alive or app.process.returncode == 0, app.said()
            killed += alive
    finished(out, seed, files, out, script=program("graphs"))
    assert killed == 2
    check(seed, tables, out)
