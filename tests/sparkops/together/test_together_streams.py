"""Flows that run as one query on Spark: each gives the rows of a run in this process, and shared steps run once."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from differing import cut_at_random, differs
from pyspark.sql import SparkSession
from row_steps import SCHEMA, SECOND, START, ledger, script_of
from seeds import seeds
from streams import rows_flow
from together_engine import TogetherEngine
from together_flows import Reminder, tables_together
from together_queries import batches_of, files, tree

import uncombine as uc
from uncombine.errors import InvalidArgument, StateMismatch
from uncombine.flows.flow import Flow


def streamed(name: str, options: dict[str, Any]) -> Flow:
    return rows_flow(SCHEMA, "ts", uc.BoundedLag("1 minute"), name=name, **options)


@pytest.mark.parametrize("seed", seeds(200, 5_000))
def test_rule_93_each_flow_of_a_query_gives_the_rows_of_a_run_in_this_process(seed: int) -> None:
    """Batches are cut anywhere, some have new workers, some run twice from the same state."""
    flows, tables = tables_together(seed, streamed, steps_alone=True)
    r = random.Random(seed + 1)
    engine = TogetherEngine(flows, seed)
    panes: dict[str, list[pa.Table]] = {name: [flow.schema.empty_table()] for name, flow in flows.items()}
    for rows in cut_at_random(tables, r, 4):
        if r.random() < 0.2:
            engine.restart()
        if r.random() < 0.2:
            kept = engine.snapshot()
            engine.batch(rows)
            engine = TogetherEngine(flows, seed, kept)
        for name, table in engine.batch(rows).items():
            panes[name].append(table)
    results = uc.together(**flows).run(script_of(tables)[:-1])
    for name in flows:
        assert differs(name, pa.concat_tables(panes[name]), results[name], ("map remembered",)) is None


def test_rule_92_time_passes_by_the_rows_of_a_source_that_a_step_does_not_read() -> None:
    """Its timers fire, and a part of its own source becomes idle."""
    strategy = uc.PerSource("k", idle_after="1 minute")
    silent, other = (rows_flow(SCHEMA, "ts", strategy, name=name, processing_time="seen") for name in "ab")
    delayed = silent.window("1 hour", uc.Repeatedly(uc.AfterDelay("1 minute")))
    flows = {
        "idle": silent.window("5 minutes").combine(by="k", n=uc.Count()),
        "delayed": delayed.combine(n=uc.Count()),
        "reminded": silent.process(by="k", function=Reminder),
        "other": other.distinct("id", within="1 minute"),
    }
    a = rows_at({"k": "q", "ts": 0, "seen": 0}, {"k": "p", "ts": 900, "seen": 50})
    b = rows_at({"k": "p", "ts": 0, "seen": 55}, {"k": "p", "ts": 0, "seen": 200})
    engine = TogetherEngine(flows, 5)
    first = engine.batch({"a": a, "b": b.slice(0, 1)})
    assert [first[name].num_rows for name in flows] == [0, 0, 0, 1]
    second = engine.batch({"a": a.slice(0, 0), "b": b.slice(1)})
    assert [second[name].num_rows for name in flows] == [1, 1, 2, 0]
    results = uc.together(**flows).run(script_of({"a": a, "b": b})[:-1])
    for name in flows:
        assert differs(name, pa.concat_tables([first[name], second[name]]), results[name], ()) is None


def rows_at(*rows: dict[str, Any]) -> pa.Table:
    """Rows with times in seconds after noon."""
    times = [{name: START + row[name] * SECOND for name in ("ts", "seen")} for row in rows]
    return pa.Table.from_pylist(
        [{**row, **own, "id": 1, "x": 1, "w": 1} for row, own in zip(rows, times, strict=True)], SCHEMA
    )


def test_a_query_goes_on_from_its_checkpoint_and_a_step_is_there_once(spark: SparkSession, tmp_path: Path) -> None:
    def all_of(rows: Flow) -> dict[str, Flow]:
        """Results of groupings, and three outputs of one step."""
        return tree(rows) | dict(zip(("thirds", "sums", "large"), ledger(rows), strict=True))

    batches = batches_of(4)
    flows = all_of(files(spark, tmp_path / "in", batches))
    shown: dict[str, list[pa.Table]] = {name: [flow.schema.empty_table()] for name, flow in flows.items()}
    progress: list[Any] = []

    def run(limit: int | None = None) -> None:
        left = [limit]

        def take(results: Any, batch: int) -> None:
            if left[0] == 0:
                raise RuntimeError("enough")
            left[0] = None if left[0] is None else left[0] - 1
            for name, df in results.items():
                shown[name].append(df.toArrow().cast(flows[name].schema))

        writer = uc.together(**flows).write_stream(checkpoint=tmp_path / "c").foreach_batch(take)
        query = writer.trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        except Exception:
            assert limit is not None
        progress.extend(query.recentProgress)

    run(len(batches) // 2)
    run()
    local = uc.together(**all_of(uc.flow(SCHEMA, watermark="1 minute", processing_time="seen")))
    results = local.run(script_of({None: pa.concat_tables(batches)})[:-1])
    for name in flows:
        assert differs(name, pa.concat_tables(shown[name]), results[name], ()) is None
    assert all(results[name].num_rows for name in ("thirds", "sums", "large"))
    assert {len(uc.progress(one).stages) for one in progress} == {4}
    assert [step.words for step in uc.checkpoint(tmp_path / "c", spark=spark).steps] == [
        "a grouping by (k: string)",
        "a grouping by ()",
        "a grouping by ()",
        "process()",
    ]
    with pytest.raises(InvalidArgument, match="is the checkpoint of a query of several flows"):
        uc.checkpoint(tmp_path / "c", spark=spark).seed(to=str(tmp_path / "seed"))
    with pytest.raises(StateMismatch, match="its steps were"):
        uc.together(totals=flows["totals"], best=flows["best"]).write_stream(checkpoint=tmp_path / "c")
    with pytest.raises(StateMismatch):
        flows["best"].write_stream(checkpoint=tmp_path / "c")


def test_a_query_of_one_flow_is_none_of_flows_together(spark: SparkSession, tmp_path: Path) -> None:
    flows = tree(files(spark, tmp_path / "in", batches_of(3)))
    writer = flows["best"].write_stream(checkpoint=tmp_path / "c").format("noop")
    writer.trigger(availableNow=True).start().awaitTermination()
    both = uc.together(totals=flows["totals"], best=flows["best"])
    with pytest.raises(StateMismatch, match="it ran in a query of its own and runs together with other flows"):
        both.write_stream(checkpoint=tmp_path / "c")


def test_flows_that_cannot_run_together_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    flow = files(spark, tmp_path / "in", batches_of(3))
    totals = tree(flow)["totals"]
    with pytest.raises(InvalidArgument, match="one of them gives the rows of its source"):
        uc.together(all=flow, totals=totals).write_stream(checkpoint=tmp_path / "c")
    bounded = tree(uc.flow(str(tmp_path / "in"), spark=spark, watermark=None))
    with pytest.raises(InvalidArgument, match="are streams, and 'totals' is bounded: write the df of each flow"):
        uc.together(**bounded).write_stream(checkpoint=tmp_path / "c")
