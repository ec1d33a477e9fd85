"""Runs that an interrupt ends: `python interrupt.py script|replay|threads|uncaught`, which prints what is left as JSON.

The run says "here" in the middle of its work, and waits there until a signal comes. A thread waits for a line instead,
since the signal is for the program and not for one of its threads.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import uncombine as uc
from uncombine.local import data_files

MINUTE = 60_000_000


def say() -> None:
    sys.stdout.write("here\n")
    sys.stdout.flush()


def wait(table: pa.Table) -> pa.Table:
    """A function that waits when the value 7 comes."""
    if 7 in table["x" if "x" in table.column_names else "total"].to_pylist():
        say()
        signal.pause()
    return table


def by_script() -> uc.Flow:
    """A run whose fourth entry waits, with a late row and a row without a time before."""
    rows = [[{"ts": i * MINUTE, "x": i + 4}] for i in range(4)]
    script = [uc.Elements(some) for some in rows]
    script[2:2] = [uc.Watermark(MINUTE), uc.Elements([{"ts": 0, "x": 1}, {"ts": None, "x": 1}])]
    minutes = uc.flow([*script, uc.Watermark(None)]).map(wait).window("1 minute")
    return minutes.combine(total=uc.Sum("x"))


def by_replay() -> uc.Flow:
    """A replay of 1,000 rows, each of which gives a pane; the function after it waits at the 704th."""
    rows = [{"ts": i * MINUTE, "seen": i * MINUTE, "x": 7 if i == 703 else 0} for i in range(1_000)]
    played = uc.flow(rows, watermark="1 minute", processing_time="seen").replay(close_at_end=True)
    return played.window("1 minute", "each row").combine(total=uc.Sum("x")).map(wait)


def by_threads(folder: str) -> uc.Flow:
    """A run of files, of which the second waits for the signal."""
    for i in range(3):
        pq.write_table(pa.table({"ts": pa.array([i], pa.timestamp("us", "UTC")), "x": [i]}), f"{folder}/{i}.parquet")
    data_files.READER_BYTES = 1  # a reader for each file
    read = data_files.read

    def reading(form: Any, parts: Any, *others: Any) -> Any:
        for table in read(form, parts, *others):
            if "/1.parquet" in parts[0].path:
                say()
                sys.stdin.readline()
            yield table

    data_files.read = reading
    pa.set_cpu_count(2)
    return uc.flow(folder).window("1 minute").combine(total=uc.Sum("x"))


def main(how: str, *arguments: str) -> None:
    if how == "uncaught":
        by_script().collect()
    flow = {"script": by_script, "replay": by_replay, "threads": by_threads}[how](*arguments)
    try:
        flow.run()
    except KeyboardInterrupt as interrupt:
        result: uc.Result = interrupt.result  # type: ignore[attr-defined]
        left = {
            "kind": type(interrupt).__name__,
            "notes": interrupt.__notes__,
            "totals": result["total"].to_pylist(),
            "steps": result["step"].to_pylist(),
            "counts": result.counts(),
            "why": result.left_out["why"].to_pylist() if result.left_out.num_rows else [],
            "dropped_rows": result.dropped_rows,
            "watermarks": len(result.output_watermarks),
            "last": repr(result).splitlines()[-1],
        }
        try:
            result.to_table("duckdb:///nowhere.db#t")
        except uc.UncombineError as refused:
            left["refused"] = str(refused)
        sys.stdout.write(json.dumps(left))


if __name__ == "__main__":
    main(*sys.argv[1:])
