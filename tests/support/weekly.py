"""A history of files that have names and last changes in another order than event times, and what it must give."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

START = 1_420_070_400_000_000  # 2015-01-01
DAY = 86_400_000_000
KEYS = ["a", "b", "c"]
SCHEMA = pa.schema({"k": pa.string(), "ts": pa.timestamp("us", "UTC")})


def rows_of(times: Any, r: np.random.Generator) -> pa.Table:
    """Rows of some keys at these times."""
    keys = r.choice(KEYS, len(times))
    return pa.table({"k": keys, "ts": pa.array(times, pa.int64()).cast(SCHEMA.field("ts").type)}, schema=SCHEMA)


def write(path: Path, table: pa.Table, changed: int) -> None:
    """A file that is in its place at once, in the format that its name ends with."""
    part = path.with_name(f"_{path.name}")
    match path.suffix:
        case ".parquet":
            pq.write_table(table, part, row_group_size=50)
        case ".csv":
            pacsv.write_csv(table, part)
        case _:
            part.write_text("\n".join(json.dumps({**row, "ts": str(row["ts"])}) for row in table.to_pylist()))
    os.utime(part, (1_600_000_000 + changed,) * 2)
    part.rename(path)


def weeks(folder: Path, count: int = 52, each: int = 200, seed: int = 1) -> pa.Table:
    """A file for each week, by names and last changes in another order than by times; all rows."""
    r = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    tables = []
    for place, week in enumerate(r.permutation(count)):
        times = START + 7 * DAY * week + r.integers(0, 7 * DAY, each)
        tables.append(rows_of(times, r))
        write(folder / f"{place:03}.parquet", tables[-1], int(r.integers(10_000)))
    return pa.concat_tables(tables)


def by_day(table: pa.Table) -> dict[tuple[str, str], int]:
    """The number of rows of each key and day, by pandas."""
    frame: pd.DataFrame = table.to_pandas()
    sizes = frame.groupby(["k", frame["ts"].dt.strftime("%Y-%m-%d")]).size()
    return {(str(k), str(day)): int(n) for (k, day), n in sizes.items()}


def last(folder: Path, form: str = "parquet") -> None:
    """A file with a row of each key that ends all windows before it, and is itself in one that does not end."""
    write(folder / f"last.{form}", pa.table({"k": KEYS, "ts": [START + 1_000 * DAY] * len(KEYS)}).cast(SCHEMA), 0)
