"""The start of the Python processes of a session: PySpark comes from its folder, in compiled form."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from uncombine.sparkops.session import WORKER_PATH, WORKER_START

FOLDER = Path(pyspark.__file__).parent
ARCHIVES = sorted(map(str, (FOLDER / "python" / "lib").glob("*.zip")))
DRIVER = """
import sys
import pyspark.sql.streaming.transform_with_state_driver_worker as driver, py4j
files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
print(driver.__file__, sum(".zip" in name for name in files))
"""


def started(shown: str, *path: object) -> list[str]:
    """The words that a Python process prints, whose path has these entries first."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    ran = subprocess.run([sys.executable, "-c", shown], env=env, capture_output=True, text=True, check=True)
    return ran.stdout.split()


@pytest.mark.weekly
def test_the_process_on_the_driver_imports_no_archive() -> None:
    """It compiled 110 modules at each start, with 0.4 s of a processor."""
    assert int(started(DRIVER, *ARCHIVES)[-1]) > 50, "Spark's own path"
    file, archived = started(DRIVER, *ARCHIVES, WORKER_START)
    assert archived == "0"
    assert file == str(FOLDER / "sql" / "streaming" / "transform_with_state_driver_worker.py")
    assert started("import sys; print(*sys.path[-2:])", *ARCHIVES, WORKER_START) == ARCHIVES


def test_another_spark_keeps_its_archive(tmp_path: Path) -> None:
    """The cluster's own PySpark may be of another version than the one that is installed."""
    archive = tmp_path / "python" / "lib" / "pyspark.zip"
    assert started("import sys; print(sys.path[1])", archive, WORKER_START) == [str(archive)]


@pytest.mark.parametrize("before", [True, False])
def test_a_module_of_the_same_name_is_not_hidden(before: bool, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.found = 'theirs'")
    path = [tmp_path, WORKER_START] if before else [WORKER_START, tmp_path]
    assert started("import sys; print(sys.found)", *path) == ["theirs"]
    (tmp_path / "sitecustomize.py").write_text("import nothing_of_this_name")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    ran = subprocess.run([sys.executable, "-c", ""], env=env, capture_output=True, text=True, check=False)
    assert "nothing_of_this_name" in ran.stderr, "its errors are those of Python"


def test_a_session_starts_its_processes_so(spark: SparkSession) -> None:
    assert spark.sparkContext.getConf().get(WORKER_PATH) == str(WORKER_START)
