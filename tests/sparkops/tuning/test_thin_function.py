"""Functions that Spark's workers read: on a worker without the library they say so."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from uncombine.sparkops.inputs import instants
from uncombine.sparkops.spark_private import pickled
from uncombine.sparkops.tuning.thin_function import load, thin_function

WORDS = "a worker of Spark has no library 'uncombine': install it where each worker runs"

WORKER = """
import pickle, sys
sys.modules["uncombine"] = None
function = pickle.load(open(sys.argv[1], "rb"))
try:
    function(3, None)
except ModuleNotFoundError as error:
    print(error.name, error)
"""
"""A worker without the library reads a function and calls it."""

CLUSTER = """
import logging, sys, tempfile
from pathlib import Path
import pyarrow as pa, pyarrow.parquet as pq
import uncombine as uc
from uncombine.sparkops.session import WORKER_PATH
folder = Path(sys.argv[1])
(folder / "start").mkdir()
(folder / "start" / "sitecustomize.py").write_text("import sys; sys.modules['uncombine'] = None")
spark = uc.session(cores=2, settings={WORKER_PATH: folder / "start", "spark.python.use.daemon": "false"})
(folder / "in").mkdir()
times = pa.array([0], pa.timestamp("us", "UTC"))
pq.write_table(pa.table({"ts": times, "k": ["a"], "v": [1]}), folder / "in" / "a.parquet")
def minutes(source):
    return source.window("1 minute").combine(by="k", n=uc.Count(), mid=uc.Median("v"))
def streamed():
    stream = uc.flow(str(folder / "in"), spark=spark, streaming=True, watermark="1 minute")
    live = minutes(stream).to_table(f"parquet:{folder}/t", checkpoint=folder / "c", trigger={"availableNow": True})
    live.awaitTermination()
df = spark.createDataFrame([("a", 1.0)], "k string, x double")
mean = uc.Accumulator(uc.Median("x"), schema=df)
works = {
    "files": lambda: minutes(uc.flow(str(folder / "in"), spark=spark)).df.collect(),
    "a DataFrame": lambda: mean.add(df, by="k").collect(),
    "a UDF": lambda: df.groupBy("k").agg(mean.udf("x")).collect(),
    "a stream": streamed,
}
for name, work in works.items():
    try:
        work()
    except Exception as error:
        print(name, "|", "a worker of Spark has no library 'uncombine': install it" in str(error))
        print(str(error)[:300], file=sys.stderr)
"""


def test_a_function_is_read_when_it_is_called() -> None:
    whole = thin_function(instants)
    assert whole(2, pa.int64()).to_pylist() == [0, 0]
    travelled = pickle.loads(pickled(whole))
    assert travelled.whole is None
    assert travelled(count=2, kind=pa.int64()).to_pylist() == [0, 0]


def test_a_worker_without_the_library_says_so(tmp_path: Path) -> None:
    (tmp_path / "function").write_bytes(pickled(thin_function(instants)))
    command = [sys.executable, "-c", WORKER, str(tmp_path / "function")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"uncombine.sparkops {WORDS}" in ran.stdout
    assert "spark.addPyFile('uncombine.zip')" in ran.stdout


def test_another_module_that_is_missing_is_named_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    payload = pickle.dumps(Path)
    monkeypatch.setitem(sys.modules, "pathlib", None)
    with pytest.raises(ModuleNotFoundError, match="pathlib"):
        load(payload)


@pytest.mark.full
@pytest.mark.spark
def test_each_way_to_the_workers(tmp_path: Path) -> None:
    """The workers of this session find no library."""
    command = [sys.executable, "-c", CLUSTER, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    said = dict(line.split(" | ") for line in ran.stdout.splitlines() if " | " in line)
    assert said == dict.fromkeys(["files", "a DataFrame", "a UDF", "a stream"], "True"), ran.stderr[-3000:]


def test_a_module_of_the_user_that_a_worker_lacks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "of_the_user.py").write_text("def twice(x):\n    return 2 * x\n")
    monkeypatch.syspath_prepend(tmp_path)
    import of_the_user

    payload = pickle.dumps(of_the_user.twice)
    assert load(payload)(2) == 4
    monkeypatch.undo()
    monkeypatch.delitem(sys.modules, "of_the_user")
    with pytest.raises(ModuleNotFoundError, match="a worker of Spark has no module 'of_the_user', in which a function"):
        load(payload)
