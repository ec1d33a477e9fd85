"""The start of a query whose Python process on the driver does not connect in time."""

from __future__ import annotations

import logging
import shlex
import sys
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from streams import START, changed, read_stream, written

import uncombine as uc
from uncombine.sparkops import starting
from uncombine.sparkops.starting import TOO_LATE, BatchFunction, Interrupted, started

SCHEMA = pa.schema({"k": pa.string(), "ts": pa.timestamp("us", "UTC")})


class Query:
    """A query that fails with this message at the second look, or has a batch."""

    def __init__(self, fails: str | None, message: str = "Processing new data") -> None:
        self.fails, self.looks, self.status = fails, 0, {"message": message}
        self.id, self.runId, self.name = "id", "none", None

    def awaitTermination(self, timeout: float) -> bool:
        self.looks += 1
        if self.looks == 2 and self.fails is not None:
            raise StreamingQueryException(f"[STREAM_FAILED] ... {self.fails}. SQLSTATE: XXKST")
        return False

    @property
    def lastProgress(self) -> Any:
        return {} if self.looks > 2 else None


@pytest.mark.parametrize(
    ("fails", "starts"), [([TOO_LATE, None], 2), ([TOO_LATE, TOO_LATE], 2), (["a value is bad"], 1), ([None], 1)]
)
def test_a_query_is_tried_once_more(fails: list[str | None], starts: int, spark: SparkSession) -> None:
    queries = [Query(words) for words in fails]
    left: list[Any] = list(queries)
    assert started(lambda: left.pop(0)) is queries[starts - 1]
    assert len(left) == len(queries) - starts


def test_a_start_does_not_wait_for_more_than_it_must(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: Any = Query(TOO_LATE, "Waiting for data to arrive")
    assert started(lambda: waits) is waits
    assert waits.looks == 1
    begun: Any = Query(TOO_LATE)
    assert started(lambda: begun, lambda: True) is begun
    assert begun.looks == 1
    monkeypatch.setattr(starting, "LONGEST", 0.0)
    assert started(lambda: begun) is begun
    far: Any = type("Query", (Query,), {"__module__": "pyspark.sql.connect.streaming.query"})(TOO_LATE)
    assert started(lambda: far) is far
    assert far.looks == 0


def test_a_batch_that_a_stop_interrupts_is_told_in_a_line() -> None:
    """Spark's own expression for it overflows the stack on a long text."""

    def failing(text: str) -> str:
        def batch() -> None:
            raise RuntimeError(text)

        try:
            BatchFunction(batch)()
        except Exception:
            return traceback.format_exc()
        return ""

    trace = "\n\tat java.base/java.util.concurrent.locks" * 100
    head = "An error occurred while calling o1.collectToPython.\n: "
    stopped = failing(f"{head}java.lang.InterruptedException{trace}")
    words = stopped[stopped.index("py4j.protocol.Py4JJavaError: An error occurred while calling") :]
    assert words.endswith("java.lang.InterruptedException\n")
    assert len(words) < 300
    for error in (
        "java.io.IOException: disk",
        "java.io.IOException: disk" + trace + "\nCaused by: java.lang.InterruptedException",
    ):
        assert error + trace in failing(f"{head}{error}{trace}")
    assert "java.io.InterruptedIOException: read timed out" in failing(
        f"{head}java.io.InterruptedIOException: read timed out"
    )


@pytest.mark.soak
@pytest.mark.parametrize("way", ["live table", "writer", "foreach_batch"])
def test_a_process_that_comes_too_late(way: str, spark: SparkSession, tmp_path: Path) -> None:
    """The first process on the driver ends before it connects; Spark waits ten seconds for it."""
    late, program = tmp_path / "late", tmp_path / "python"
    once = f"*transform_with_state*) [ -e {late} ] || {{ touch {late}; exit 1; }};;"
    own = spark.sparkContext.pythonExec
    program.write_text(f'#!/bin/sh\ncase "$*" in {once} esac\nexec {shlex.quote(own or sys.executable)} "$@"\n')
    program.chmod(0o755)
    rows = pa.Table.from_pylist([{"k": k, "ts": START} for k in "aab"], SCHEMA)
    source = uc.flow(read_stream(spark, written([rows], tmp_path / "in"), SCHEMA), watermark="1 minute")
    checkpoint, seen = str(tmp_path / "checkpoint"), list[int]()
    spark.sparkContext.pythonExec = str(program)
    try:
        with changed(spark):
            flow = source.window(uc.Global(), uc.Always()).combine(by="k", n=uc.Count())
            if way == "live table":
                where = f"parquet:{tmp_path}/t"
                query: Any = flow.to_table(where, checkpoint=checkpoint, trigger={"availableNow": True})
            else:
                writer = flow.df.writeStream.format("noop")
                if way == "foreach_batch":
                    writer = flow.foreach_batch(lambda panes, left_out, batch: seen.append(panes.count()))
                query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            query.awaitTermination()
    finally:
        spark.sparkContext.pythonExec = own
    assert late.exists()
    assert uc.progress(query).stages[0].rows_in == 3  # type: ignore[union-attr]
    assert seen == ([2] if way == "foreach_batch" else [])


@pytest.mark.parametrize("logger", ["py4j.clientserver", "py4j.java_gateway"])
def test_an_interrupted_batch_is_no_error_in_the_log(logger: str, caplog: pytest.LogCaptureFixture) -> None:
    for error in (Interrupted("a stop"), RuntimeError("disk")):
        try:
            raise error
        except RuntimeError:
            logging.getLogger(logger).exception("There was an exception while executing the Python Proxy")
    assert [record.exc_info[1].args for record in caplog.records if record.exc_info] == [("disk",)]
