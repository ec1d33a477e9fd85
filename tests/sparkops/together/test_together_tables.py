"""Live tables of flows that run as one query: each has the result of a bounded run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from together_queries import batches_of, files, tree

import uncombine as uc
from uncombine.errors import InvalidArgument


def test_tables_of_flows_that_run_together(spark: SparkSession, tmp_path: Path) -> None:
    batches = batches_of(4)
    flows = tree(files(spark, tmp_path / "in", batches))
    targets = {name: f"duckdb:{tmp_path}/live.db#{name}" for name in flows}
    both = uc.together(**flows)
    with both.to_tables(targets, checkpoint=tmp_path / "c", trigger={"availableNow": True}) as live:
        live.awaitTermination()
        for name, flow in tree(uc.flow(pa.concat_tables(batches))).items():
            one, other = (rows(table) for table in (live[name].arrow(), flow.run().table(flat=True)))
            assert one == other, name
    with pytest.raises(KeyError, match="keeps no table 'total'"):
        live["total"]
    again = both.to_tables(targets, checkpoint=tmp_path / "c", trigger={"availableNow": True})
    again.awaitTermination()
    assert sorted(again) == sorted(flows)
    same = targets | {"high": targets["totals"]}
    with pytest.raises(InvalidArgument, match="two of them have one target"):
        both.to_tables(same, checkpoint=tmp_path / "other")


def rows(table: pa.Table) -> Counter[str]:
    names = [name for name in table.column_names if name not in ("event_time", "diff", "pane")]
    return Counter(map(repr, table.select(sorted(names)).to_pylist()))
