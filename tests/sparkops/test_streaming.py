"""Streaming flows: the tasks of Spark's workers, batch by batch, against the local runner."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from engine import Engine
from pyspark.sql import DataFrame, SparkSession
from reference.byrule.agree import combiners_of
from reference.byrule.transcripts import SCHEMA
from scripts import locally, scripted
from seeds import seeds
from streams import MARK, NOW, ORIGIN, in_order, play, punctuated, punctuated_schema, rows_flow, split, together

import uncombine as uc
from uncombine.errors import InvalidArgument

SECOND = 1_000_000
MARKED = uc.Punctuated(MARK, source=ORIGIN)


def flow_of(options: dict[str, Any], shards: int, **settings: Any) -> Any:
    """A flow with the options of a random transcript."""
    given = dict(options)
    diff, by = given.pop("diff"), given.pop("by")
    flow = rows_flow(punctuated_schema(SCHEMA), "ts", MARKED, shards, diff=diff, **settings)
    return flow.window(**given).combine(by=by, **combiners_of(options))


def forgetful(engine: Engine, batch: int) -> None:
    """Every other batch finds new workers on a host that was never used."""
    if batch % 2:
        engine.restart()


def prepared(script: list[Any], options: dict[str, Any]) -> tuple[Any, pa.Table] | None:
    """A streaming flow and the panes of the local runner; None if a stream cannot have such a grouping."""
    try:
        # Each shard decides which rows are before the output watermark and so count for no timestamp.
        shards = 1 if options["timestamp"] in ("earliest", "latest") or options["window"] == uc.Global() else 3
        flow = flow_of(options, shards, processing_time=NOW)
    except InvalidArgument as refused:
        if "can never fire on Global()" not in str(refused):
            raise
        return None
    return flow, locally(script, options)


def agree(seed: int) -> bool:
    """True if a stream can have the grouping of this seed; then both ways to run it give the same panes."""
    script, options = scripted(seed)
    both = prepared(script, options)
    if both is None:
        return False
    flow, want = both
    beside = seed % 2 == 0
    got = play(flow, punctuated(script, SCHEMA), seed=seed, meddle=forgetful, beside=beside)
    if beside:
        got, left_out = split(got)
        assert reasons(left_out) == reasons(want.left_out)
    assert in_order(got) == in_order(want)
    return True


def reasons(left_out: pa.Table) -> Counter[str]:
    """The rows that were left out, each with the reason; a stream has the columns of a script besides."""
    return Counter(
        repr((row["why"], {name: row["row"][name] for name in SCHEMA.names})) for row in left_out.to_pylist()
    )


@pytest.mark.weekly
@pytest.mark.parametrize("seed", seeds(20, 60))
def test_random_scripts_give_the_panes_of_the_local_runner_through_restarts(seed: int) -> None:
    """Entries of one processing time are micro-batches of their own, which `test_flows.py` does not have."""
    agree(seed)


@pytest.mark.weekly
def test_streams_have_most_groupings() -> None:
    assert sum(prepared(*scripted(seed)) is not None for seed in range(20)) > 15


def through_spark(seeds: range, wanted: int, spark: SparkSession, folder: Path, longest: int = 1_000) -> None:
    """Some scripts of at most so many entries, a micro-batch to an entry, as flows of one query."""
    flows, want = {}, {}
    for seed in seeds:
        script, options = scripted(seed)
        both = prepared(script, options) if len(script) <= longest and len(flows) < wanted else None
        if both is None:
            continue
        name = f"seed {seed}"
        flows[name] = punctuated(script, SCHEMA), partial(streamed, options)
        want[name] = both[1]
    assert len(flows) == wanted
    got = together(spark, flows, folder)
    for name, panes in got.items():
        assert in_order(panes) == in_order(want[name]), name


def streamed(options: dict[str, Any], df: DataFrame) -> Any:
    given = dict(options)
    diff, by = given.pop("diff"), given.pop("by")
    flow = uc.flow(df, time="ts", watermark=MARKED, diff=diff, processing_time=NOW, tuning=uc.Tuning(shards=1))
    return flow.window(**given).combine(by=by, **combiners_of(options))


@pytest.mark.parametrize("first", seeds(100, 400, step=100))
def test_random_scripts_through_a_query(first: int, spark: SparkSession, tmp_path: Path) -> None:
    through_spark(range(first, first + 100), 2, spark, tmp_path, longest=10)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1_000, 2_000, 100))
def test_more_random_scripts_through_queries(first: int, spark: SparkSession, tmp_path: Path) -> None:
    through_spark(range(first, first + 100), 10, spark, tmp_path)


@pytest.mark.soak
def test_many_random_scripts_give_the_panes_of_the_local_runner() -> None:
    for seed in range(60, 3_000):
        agree(seed)
