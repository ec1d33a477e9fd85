"""Flink's Table API from Python in batch, over CSV files, whose format comes with it."""

from __future__ import annotations

from functools import partial

from contender import MINUTE, THREADS, Task, serve
from pyflink.table import EnvironmentSettings, TableEnvironment

# The first line of a file, its header, is no row: Flink leaves out what it cannot parse.
SOURCE = """
    CREATE TEMPORARY TABLE {name} (
        k BIGINT, micros BIGINT, v BIGINT, ts AS CAST(TO_TIMESTAMP_LTZ(micros / 1000, 3) AS TIMESTAMP(3)),
        WATERMARK FOR ts AS ts
    ) WITH ('connector' = 'filesystem', 'path' = '{folder}', 'format' = 'csv', 'csv.ignore-parse-errors' = 'true')
"""
SPANS = {"windows": f"TUMBLE(ts, INTERVAL '{MINUTE // 1_000_000}' SECOND)"}
"""Flink has no sessions in batch."""


def run(span: str, folder: str) -> tuple[int, float, float]:
    """The rows are counted and summed by Flink itself, so that none has to come to Python."""
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    tables.get_config().set("parallelism.default", str(THREADS))
    tables.execute_sql(SOURCE.format(name="given", folder=folder))
    grouped = f"SELECT k, SUM(v) AS s, COUNT(*) AS c FROM given GROUP BY k, {span}"
    with tables.execute_sql(f"SELECT COUNT(*), SUM(s), MAX(s) FROM ({grouped})").collect() as made:
        count, total, most = next(made)
    return count, total, most


if __name__ == "__main__":
    serve(
        "apache-flink",
        {f"{name} of CSV": Task(partial(run, span), lambda made: made) for name, span in SPANS.items()},
    )
