"""The processor that a query starts with: the process on the driver reads it without importing the library."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from engine import Handle
from streams import rows_flow

import uncombine as uc
from uncombine.flows.graph import Step
from uncombine.sparkops.routes.shard_processor import ShardProcessor
from uncombine.sparkops.routes.streaming import StreamRoute
from uncombine.sparkops.routes.thin_processor import thin
from uncombine.sparkops.spark_private import pickled

SCHEMA = pa.schema({"k": pa.string(), "ts": pa.timestamp("us", "UTC")})

DRIVER = """
import json, pickle, sys
import pyspark.sql.streaming.transform_with_state_driver_worker
before = set(sys.modules)
processor = pickle.load(open(sys.argv[1], "rb"))
asked = []
class Handle:
    def __getattr__(self, name):
        return lambda *given: asked.append([name, given[0]])
processor.init(Handle())
processor.close()
print(json.dumps([asked, sorted({name.partition(".")[0] for name in set(sys.modules) - before})]))
"""
"""The part of Spark's process on the driver that reads the processor, and asks it for its state."""


def processor() -> ShardProcessor:
    flow = rows_flow(SCHEMA, watermark="1 minute").window(uc.Fixed("1 minute")).combine(by="k", n=uc.Count())
    route = StreamRoute(flow, flow.source.input)  # type: ignore[attr-defined]
    step: Step = route.graph.steps[0]
    return ShardProcessor(route.task(step, None))


def test_the_process_on_the_driver_imports_nothing_more(tmp_path: Path) -> None:
    """It imported 807 modules more, of pandas, Arrow and the library, with 0.8 s of a processor."""
    (tmp_path / "processor").write_bytes(pickled(thin(processor())))
    command = [sys.executable, "-c", DRIVER, str(tmp_path / "processor")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    asked, modules = json.loads(ran.stdout.splitlines()[-1])
    assert asked == [["getValueState", "manifest"], ["getMapState", "chunks"]]
    assert not {"uncombine", "pandas", "pyarrow", "numpy"} & set(modules)


def test_a_task_reads_the_processor_once_when_rows_come(monkeypatch: Any) -> None:
    handle, begun = Handle(), []
    monkeypatch.setattr(ShardProcessor, "begin", lambda self, *state: begun.append(state))
    found: Any = pickle.loads(pickled(thin(processor())))
    found.init(handle)
    assert begun == []
    whole = found.processor()
    assert isinstance(whole, ShardProcessor)
    assert found.processor() is whole
    assert begun == [(handle, found.manifest, found.chunks)]
