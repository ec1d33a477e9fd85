"""DuckDB, into a table of Arrow."""

from __future__ import annotations

from functools import partial

import duckdb
import pyarrow as pa
from contender import GAP, MINUTE, THREADS, Task, serve

from tables import facts

SAME = f"time_bucket(INTERVAL {MINUTE} MICROSECONDS, ts)"
WINDOWS = "SELECT k, {same} AS start, sum(v) AS s, count(*) AS c FROM read_parquet('{folder}/*.parquet') GROUP BY ALL"
SESSIONS = """
    WITH rows AS (
        SELECT k, ts, v, ts - lag(ts) OVER (PARTITION BY k ORDER BY ts) AS pause FROM read_parquet('{folder}/*.parquet')
    ), numbered AS (
        SELECT k, ts, v, count(*) FILTER (WHERE pause IS NULL OR pause >= INTERVAL {gap} MICROSECONDS) OVER before AS n
        FROM rows WINDOW before AS (PARTITION BY k ORDER BY ts)
    )
    SELECT k, min(ts) AS start, max(ts) AS last, sum(v) AS s, count(*) AS c FROM numbered GROUP BY k, n
"""


def run(query: str, folder: str) -> pa.Table:
    made = duckdb.sql(query.format(folder=folder, same=SAME, gap=GAP))
    table: pa.Table = made.to_arrow_table()
    return table


if __name__ == "__main__":
    duckdb.sql(f"SET threads = {THREADS}")
    queries = {"windows": WINDOWS, "sessions": SESSIONS}
    serve("duckdb", {name: Task(partial(run, query), facts) for name, query in queries.items()})
