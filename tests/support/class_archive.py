"""An archive of the classes of Spark's JVM, from which a session of a test starts with half the work.

Java stores the classes that a JVM has loaded and checked (`-XX:ArchiveClassesAtExit`) and maps them into later ones.
An archive fits one Java and one set of jars, so it is named after both; a JVM does without one that does not fit.
`python tests/support/class_archive.py FILE` makes it from a short session, with some 50 seconds of a processor.
The JVM of each later session saves about 10, so `make full` from a fresh clone gains already. `make test`, which starts
few of them, uses one that is there and makes none.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "out" / "classes"

QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
"""A session of a test lives for minutes and sees few rows, so what its JVM compiles thoroughly it hardly uses."""

SPARK = ("SPARK_SUBMIT_OPTS", "SPARK_EXECUTOR_OPTS")
"""The variables with the options of the JVMs that load Spark's classes: of a session, and of its executors."""

ENOUGH = 120.0
"""The seconds that a run waits at its end for the archive, so that a run of a single test makes one too."""


def quick_jvms() -> None:
    """Set the options of the JVMs that tests, programs and notebooks start, unless they are set."""
    for variable in (*SPARK, "SPARK_LAUNCHER_OPTS"):
        os.environ.setdefault(variable, QUICK_JVM)


def with_archive(path: Path) -> str:
    """The options of a JVM that maps an archive, and says nothing if it cannot."""
    return f"{QUICK_JVM} -Xlog:disable -XX:SharedArchiveFile={path}"


@cache
def place() -> Path | None:
    """The file of the archive for this Java and these jars; None if there is no Java, or options cannot name it."""
    home, spec = os.environ.get("JAVA_HOME"), importlib.util.find_spec("pyspark")
    java = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if java is None or spec is None or spec.origin is None or re.search(r"\s", str(FOLDER)):
        return None
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    jars = sorted((Path(os.environ.get("SPARK_HOME") or Path(spec.origin).parent) / "jars").glob("*.jar"))
    told = [(str(jar), jar.stat().st_size, jar.stat().st_mtime_ns) for jar in jars]
    return FOLDER / f"{sha256(repr((java, said.stderr, told)).encode()).hexdigest()[:16]}.jsa"


class ClassArchive:
    """The plugin of a run that needs Spark: one process makes the archive if there is none, and all use it."""

    def __init__(self, path: Path, makes: bool) -> None:
        self.path, self.used = path, False
        missing = not path.exists() and not path.with_suffix(".none").exists()
        self.maker = Maker(path) if makes and missing else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        if not self.used and self.path.exists():
            self.used = True
            for variable in SPARK:
                if os.environ.get(variable) == QUICK_JVM:
                    os.environ[variable] = with_archive(self.path)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if self.maker is not None:
            self.maker.end(0 if exitstatus == pytest.ExitCode.INTERRUPTED else ENOUGH)


class Maker:
    """A process in the background that makes an archive; it ends with the one that started it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        with open(path.with_suffix(".log"), "wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(path)],
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def end(self, seconds: float) -> None:
        """Wait so long, and then kill the process and its JVM."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        assert self.process.stdin is not None
        self.process.stdin.close()
        unfinished(self.path, self.process.pid).unlink(missing_ok=True)


def unfinished(path: Path, pid: int) -> Path:
    """The file into which a process writes the archive."""
    return path.with_suffix(f".{pid}")


def make(path: Path) -> None:
    """Make an archive, or leave a note that this Java makes none."""
    new = unfinished(path, os.getpid())
    os.environ["SPARK_SUBMIT_OPTS"] = f"{QUICK_JVM} -XX:ArchiveClassesAtExit={new}"
    with tempfile.TemporaryDirectory() as folder, gateway(folder) as spark:
        use(spark, folder)
    if new.exists():
        new.replace(path)
    else:
        path.with_suffix(".none").touch()


@contextmanager
def gateway(folder: str) -> Iterator[Any]:
    """A session whose JVM has ended at the end: it writes the archive at its exit."""
    from pyspark import SparkContext

    import uncombine as uc

    folders = {"spark.local.dir": f"{folder}/scratch", "spark.sql.warehouse.dir": f"{folder}/warehouse"}
    spark = uc.session("class archive", cores=2, settings={"spark.driver.memory": "1g", **folders})
    jvm = SparkContext._gateway.proc
    yield spark
    spark.stop()
    jvm.stdin.close()
    jvm.wait()


def use(spark: Any, folder: str) -> None:
    """Rows through files, a shuffle and Python: with classes of streams too, making takes longer than it saves."""
    import pyarrow as pa

    spark.createDataFrame(pa.table({"k": [1, 2]})).write.parquet(f"{folder}/rows")
    counts = spark.read.parquet(f"{folder}/rows").groupBy("k").count()
    counts.mapInArrow(lambda batches: batches, counts.schema).toArrow()


def end_with_the_parent(path: Path) -> None:
    """Kill this process and its JVM when the process that started it is gone: its end of the pipe is closed then."""
    sys.stdin.buffer.read()
    unfinished(path, os.getpid()).unlink(missing_ok=True)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    wanted = Path(sys.argv[1])
    threading.Thread(target=end_with_the_parent, args=[wanted], daemon=True).start()
    make(wanted)
