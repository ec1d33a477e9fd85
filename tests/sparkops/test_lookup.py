"""Lookups and kept joins on Spark: streams, restarts, other shards and batches give the rows of a run here."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from opened import opened
from pyspark.sql import SparkSession
from row_steps import SECOND, START, TIME

import uncombine as uc
from uncombine.sparkops.sql_types import spark_schema

SCHEMAS = {
    "orders": pa.schema({"ts": TIME, "user": pa.string(), "n": pa.int64(), "w": pa.int64()}),
    "users": pa.schema({"ts": TIME, "user": pa.string(), "city": pa.string(), "w": pa.int64()}),
}
KINDS: dict[str, dict[str, Any]] = {
    "lookup": {"how": "left_lookup", "allowed_lateness": "5 minutes"},
    "keep": {"how": "left", "keep": ("5 minutes", None)},
}


def bundles(count: int = 4) -> list[dict[str, pa.Table]]:
    """Orders, of which some are retracted later, and the changes of the table of users that come with them."""
    rng, cities, given = np.random.default_rng(5), dict[str, tuple[int, str]](), list[tuple[int, str | None, int]]()
    out = []
    for place in range(count):
        now, changes, orders = START + 60 * SECOND * place, list[tuple[Any, ...]](), list[tuple[Any, ...]]()
        for user in rng.choice(list("abcd"), 3, replace=False).tolist():
            if user in cities:
                changes.append((cities[user][0], user, cities[user][1], -1))
            cities[user] = now, str(rng.choice(["Rome", "Oslo", "Bonn"]))
            changes.append((now, user, cities[user][1], 1))
        for order in rng.permutation(len(given))[:4].tolist():
            orders.append((*given[order], -1))
        given = [one for one in given if (*one, -1) not in orders]
        for _ in range(12):
            given.append((now + int(rng.integers(-30, 30)) * SECOND, rng.choice([*"abcde", None]), len(given)))
            orders.append((*given[-1], 1))
        some = {"orders": orders, "users": changes}
        out.append(
            {
                name: pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in some[name]], schema)
                for name, schema in SCHEMAS.items()
            }
        )
    return out


def joined(flows: dict[str, uc.Flow], kind: str) -> uc.Flow:
    return flows["orders"].join(flows["users"], on="user", **KINDS[kind])


def net(table: pa.Table) -> Counter[str]:
    """Rows with the sums of their weights."""
    out: Counter[str] = Counter()
    names = [name for name in table.column_names if name not in ("diff", "step")]
    for row in table.to_pylist():
        values = (row[name] for name in names)
        out[repr([uc.timestamp(v) if hasattr(v, "year") else v for v in values])] += row["diff"]
    return Counter({row: n for row, n in out.items() if n})


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_goes_on_after_a_restart_and_with_other_shards(kind: str, spark: SparkSession, tmp_path: Path) -> None:
    """Orders from before meet their retractions, and give back what they met then, whatever the table has now."""
    batches = bundles()

    def stream() -> uc.Flow:
        flows = {
            name: uc.flow(
                uc.Files(str(tmp_path / name), order="name", max_files_per_batch=1),
                spark=spark,
                streaming=True,
                watermark="1 minute",
                diff="w",
                name=name,
                tuning=uc.Tuning(shards=2),
            )
            for name in SCHEMAS
        }
        return joined(flows, kind)

    def run(checkpoint: str, *places: int) -> pa.Table:
        """The rows that a query gives for more bundles."""
        for place in places:
            for name, table in batches[place].items():
                (tmp_path / name).mkdir(exist_ok=True)
                pq.write_table(table, tmp_path / name / f"{place}.parquet")
        out = tmp_path / f"{checkpoint} out"
        writer = stream().write_stream(checkpoint=tmp_path / checkpoint).format("parquet").option("path", str(out))
        writer.trigger(availableNow=True).start().awaitTermination()
        return pa.concat_tables([pq.read_table(file) for file in sorted(out.glob("*.parquet"))])

    run("old", 0, 1)
    first = run("old", 2)
    found = uc.checkpoint(tmp_path / "old", spark=spark)
    assert found.steps[0].words == ("a lookup join" if kind == "lookup" else "a join")
    assert found.rows(1, "right rows").num_rows == 4
    change = uc.evolve(tmp_path / "old", stream(), to=tmp_path / "new", shards=3)
    assert [step.fate for step in change.plan.steps] == ["kept"]
    shown = pa.concat_tables([first, run("new", 3)])
    local = joined(
        {name: uc.flow(schema, name=name, watermark="1 minute", diff="w") for name, schema in SCHEMAS.items()}, kind
    )
    script = [uc.Elements(batch[name], input=name) for batch in batches for name in ("users", "orders")]
    result = local.run(script)
    assert result.dropped == 0
    assert net(shown) == net(result.panes.select(shown.column_names))
    retracted = [row["city"] for row in shown.to_pylist() if row["diff"] < 0]
    assert len(set(retracted)) > 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_gives_the_rows_of_a_local_run(kind: str, spark: SparkSession) -> None:
    tables = {name: pa.concat_tables([batch[name] for batch in bundles()]) for name in SCHEMAS}
    for weight in ("w", None):
        flows = {
            name: opened(spark.createDataFrame(table, spark_schema(table.schema)), shards=2, name=name, diff=weight)
            for name, table in tables.items()
        }
        both = joined(flows, kind)
        why = (
            "it looks up what is valid"
            if kind == "lookup"
            else "an input has weights"
            if weight
            else "Spark's own left"
        )
        assert why in both.explain()
        local = joined({name: uc.flow(table, name=name, diff=weight) for name, table in tables.items()}, kind).run()
        got = both.df.toArrow()
        assert net(got) == net(local.panes.select(got.column_names))
        assert len(local) > 30
