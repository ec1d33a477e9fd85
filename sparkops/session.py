"""A local Spark session with suitable settings."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import SparkUnavailable
from .tuning.checkpoint_files import REPLACING
from .tuning.numpy_kernels import without_slow_sort
from .tuning.quiet_start import quiet_start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEAST_JAVA = 17

PROVIDER = "spark.sql.streaming.stateStore.providerClass"

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"

NO_LIMIT = str(2**31 - 1)
"""With another limit of bytes Spark measures a batch after each row, which takes longer than writing the row."""

UNCHECKED = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""Options of Java without which Arrow compares each place of a value with the size of its buffer.

Spark asks for places of rows that it knows. Columns from Python take a fifth less time without the comparison.
"""

WORKER_PATH, WORKER_START = "spark.executorEnv.PYTHONPATH", Path(__file__).parent / "worker_start"
"""A part of the path of the Python processes of a session, and the folder there that they start with."""

SETTINGS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    BATCH_BYTES: NO_LIMIT,
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
    "spark.driver.defaultJavaOptions": UNCHECKED,
    "spark.executor.defaultJavaOptions": UNCHECKED,
    PROVIDER: ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.hadoop.fs.file.impl": REPLACING,
    # Spark waits 15 s for a Python worker's socket and 10 s for a heartbeat: too short on a busy machine.
    "spark.python.authenticate.socketTimeout": "120s",
    "spark.executor.heartbeatInterval": "60s",
    "spark.network.timeout": "600s",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
}
"""The settings of `session()`; each can be given another value."""


def setting(spark: SparkSession, name: str, default: str | None = None) -> str | None:
    """The value of a setting of Spark; the default where it is not set, and where a service does not show it.

    >>> import uncombine as uc
    >>> from uncombine.sparkops.session import setting
    >>> setting(uc.session(), "spark.sql.session.timeZone"), setting(uc.session(), "spark.sql.unknown", "none")
    ('UTC', 'none')
    """
    from pyspark.errors import PySparkException

    try:
        value: str | None = spark.conf.get(name)
    except PySparkException:
        return default
    return default if value is None else value


def shuffle_partitions(spark: SparkSession) -> int:
    """The number of shuffle partitions of a session."""
    return int(setting(spark, "spark.sql.shuffle.partitions", "200") or 200)


def session(
    name: str = "uncombine", cores: int | str = "*", settings: Mapping[str, object] | None = None
) -> SparkSession:
    """Start a local Spark session: RocksDB state, Arrow, UTC, few shuffle partitions, workers on this Python.

    Spark's timeouts for Python workers and heartbeats (15 and 10 seconds) are raised to minutes. One timeout cannot be
    changed: a streaming query starts a Python process on the driver, which must answer within 10 seconds. So the Python
    processes of the session import PySpark in compiled form (`sparkops/worker_start`). The lines that every start of
    Spark prints are left out of stderr.

    Parameters
    ----------
    name
        The name of the application.
    cores
        The number of cores; "*" means all.
    settings
        Spark settings that override those of `uncombine.sparkops.session.SETTINGS`.

    Returns
    -------
    pyspark.sql.SparkSession
        A new session, or the running one with the settings that can change while it runs.

    Raises
    ------
    SparkUnavailable
        If there is no Java that Spark can use, or if a worker of Spark calls it.

    Examples
    --------
    >>> import uncombine as uc
    >>> spark = uc.session()
    >>> spark.conf.get("spark.sql.session.timeZone")
    'UTC'
    """
    from pyspark import TaskContext

    if TaskContext.get() is not None:
        raise SparkUnavailable(_in_worker())
    require_java()
    # Otherwise Spark starts the first python3 on PATH, which may lack pyarrow.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
    for key, value in {**SETTINGS, **without_slow_sort(), WORKER_PATH: str(WORKER_START), **(settings or {})}.items():
        builder = builder.config(key, str(value))
    with quiet_start():
        return builder.getOrCreate()


def _in_worker() -> str:
    """The sentence for a call in a worker, which names the module that is being imported there."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    module = "__main__" if frame is None else frame.f_globals["__name__"]
    if module == "__main__":  # that of the worker itself, which is imported nowhere
        return "a worker of Spark calls uc.session(), which only the driver can: leave it out of functions of a flow"
    return (
        f"a worker of Spark imports the module {module!r} for a function of a flow, and the module calls uc.session(), "
        "which only the driver can: call it in a function of the module, or below if __name__ == '__main__':"
    )


def require_java() -> None:
    """Raise `SparkUnavailable`, with a remedy, unless there is a Java that Spark can use."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    where = f"JAVA_HOME={home}" if home else "PATH"
    remedy = f"install Java {LEAST_JAVA} or newer and set JAVA_HOME or PATH to it"
    if java is None:
        raise SparkUnavailable(f"Spark needs Java {LEAST_JAVA} or newer, but there is no java in {where}: {remedy}")
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)', shown.stderr + shown.stdout)
    if version is None:
        raise SparkUnavailable(
            f"Spark needs Java {LEAST_JAVA} or newer, but the version of {java} is unknown: {remedy}"
        )
    if int(version.group(1)) < LEAST_JAVA:
        raise SparkUnavailable(f"Spark needs Java {LEAST_JAVA} or newer, but {java} is {version.group(1)}: {remedy}")
