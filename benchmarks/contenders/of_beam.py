"""Beam for Python with its direct runner, from Parquet files."""

from __future__ import annotations

import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow.parquet as pq
from apache_beam.io import WriteToText
from apache_beam.io.fileio import MatchFiles
from apache_beam.transforms import window
from contender import GAP, MINUTE, Task, serve

WINDOWS = {"windows": window.FixedWindows(MINUTE / 1e6), "sessions": window.Sessions(GAP / 1e6)}


class Sums(beam.CombineFn):  # type: ignore[misc]
    """The sum and the count of the values of a key."""

    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add_input(self, made: tuple[int, int], value: int) -> tuple[int, int]:
        return made[0] + value, made[1] + 1

    def merge_accumulators(self, many: Any) -> tuple[int, int]:
        pairs = list(many)
        return sum(s for s, _ in pairs), sum(c for _, c in pairs)

    def extract_output(self, made: tuple[int, int]) -> tuple[int, int]:
        return made


class Facts(beam.CombineFn):  # type: ignore[misc]
    """The rows, the sum and the greatest of sums."""

    def create_accumulator(self) -> tuple[int, int, int]:
        return 0, 0, 0

    def add_input(self, made: tuple[int, int, int], row: Any) -> tuple[int, int, int]:
        s = row[1][0]
        return made[0] + 1, made[1] + s, max(made[2], s)

    def merge_accumulators(self, many: Any) -> tuple[int, int, int]:
        parts = list(many)
        return sum(p[0] for p in parts), sum(p[1] for p in parts), max((p[2] for p in parts), default=0)

    def extract_output(self, made: tuple[int, int, int]) -> tuple[int, int, int]:
        return made


def rows(path: str) -> Any:
    table = pq.read_table(path, columns=["k", "ts", "v"])
    micros = table["ts"].cast("int64").to_pylist()
    return zip(table["k"].to_pylist(), micros, table["v"].to_pylist(), strict=True)


def timed(row: tuple[int, int, int]) -> Any:
    return window.TimestampedValue((row[0], row[2]), row[1] / 1e6)


def run(span: Any, folder: str) -> Path:
    """The rows are counted and summed by Beam itself, and the sums written into a file."""
    made_at = Path(tempfile.mkdtemp(prefix="uncombine-world-")) / "facts.json"
    with beam.Pipeline(runner="DirectRunner") as pipeline:
        made = (
            pipeline
            | MatchFiles(f"{folder}/*.parquet")
            | "path" >> beam.Map(lambda found: found.path)
            | "rows" >> beam.FlatMap(rows)
            | "timed" >> beam.Map(timed)
            | "windows" >> beam.WindowInto(span)
            | beam.CombinePerKey(Sums())
        )
        whole = made | "as one" >> beam.WindowInto(window.GlobalWindows())
        (
            whole
            | beam.CombineGlobally(Facts())
            | "json" >> beam.Map(json.dumps)
            | WriteToText(str(made_at), shard_name_template="")
        )
    return made_at


def facts(made_at: Path) -> tuple[int, float, float]:
    count, total, most = json.loads(made_at.read_text())
    return count, total, most


if __name__ == "__main__":
    serve("apache-beam", {name: Task(partial(run, span), facts) for name, span in WINDOWS.items()})
