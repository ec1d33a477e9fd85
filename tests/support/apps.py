"""Applications in sessions of processes of their own, so that a test can kill all of them or one, by their ids."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark
from programs import program

KILLED = program("killed")
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


@dataclass(frozen=True)
class App:
    """A run of an application that writes its checkpoint and its sink into `out`."""

    process: subprocess.Popen[bytes]
    out: Path

    def wait(self, seconds: float) -> bool:
        """True if the application still runs after this time."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return self.process.poll() is None

    def wait_for(self, batch: int, moment: str) -> bool:
        """True if the application still runs when its query has come to this moment of this batch."""
        while not reached(self.out, batch, moment):
            if not self.wait(0.005):
                return False
        return True

    def said(self) -> str:
        """The end of all that it has written."""
        return (self.out / "said").read_text()[-4000:]

    def executors(self) -> list[int]:
        """The ids of its executors."""
        return [pid for pid in members(self.process.pid) if EXECUTOR in _command(pid)]


@contextmanager
def running(out: Path, *arguments: object, script: str = KILLED) -> Iterator[App]:
    """The application with these arguments; nothing of it is left at the end."""
    environment = os.environ | {"SPARK_HOME": str(spark_home(out / "spark"))}
    command = [sys.executable, script, *map(str, arguments)]
    with in_session(command, environment, out / "said") as process:
        yield App(process, out)


@contextmanager
def in_session(command: Sequence[str], environment: Mapping[str, str], said: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a session of its own, what it says in a file; nothing of the session is left at the end."""
    with open(said, "ab") as file:
        process = subprocess.Popen(
            command, env=environment, stdout=file, stderr=file, cwd=said.parent, start_new_session=True
        )
    try:
        yield process
    finally:
        kill_all(process.pid)
        process.wait()


@contextmanager
def two_hosts(folder: Path) -> Iterator[str]:
    """The address of a cluster with a worker on each of two hosts, as far as Spark can tell: both are this machine."""
    home = spark_home(folder / "spark")
    environment = os.environ | {
        "SPARK_HOME": str(home),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_MASTER_HOST": "127.0.0.1",
    }
    launch = [str(home / "bin" / "spark-class"), "org.apache.spark.deploy.master.Master"]
    said = folder / "master"
    with ExitStack() as stack:
        master = stack.enter_context(in_session([*launch, "--port", "0", "--webui-port", "0"], environment, said))
        while (found := re.search(r"Starting Spark master at (\S+)", said.read_text())) is None:
            with suppress(subprocess.TimeoutExpired):
                master.wait(0.1)
            assert master.poll() is None, said.read_text()
        for host in ("127.0.0.1", "127.0.0.2"):
            launch[1] = "org.apache.spark.deploy.worker.Worker"
            options = ["--host", host, "--cores", "1", "--memory", "1200M", "--webui-port", "0"]
            folders = ["--work-dir", str(folder / "work")]
            stack.enter_context(in_session([*launch, *options, *folders, found[1]], environment, folder / host))
        yield found[1]


def spark_home(folder: Path) -> Path:
    """The installed Spark by links: the executors of a cluster write below the folder from which Spark was started."""
    folder.mkdir(exist_ok=True)
    for entry in Path(pyspark.__file__).parent.iterdir():
        with suppress(FileExistsError):
            (folder / entry.name).symlink_to(entry)
    return folder


def finished(out: Path, *arguments: object, script: str = KILLED) -> None:
    """The application, run to its good end."""
    with running(out, *arguments, script=script) as app:
        app.process.wait()
        assert app.process.returncode == 0, app.said()


def members(session: int) -> list[int]:
    """The living processes of a session: the application, its JVMs and all workers."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and os.getsid(int(entry.name)) == session:
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                found += [int(entry.name)] if state not in ("Z", "X") else []
    return found


def kill_all(session: int) -> None:
    """Kill every process of a session."""
    while found := members(session):
        for member in found:
            kill(member)


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _command(pid: int) -> Sequence[str]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return []


def reached(out: Path, batch: int, moment: str) -> bool:
    """True if a query has come to this moment of this batch, by the files that it writes."""
    match moment:
        case "state":
            state = out / "checkpoint" / "state"
            return any(state.glob(f"*/*/{batch + 1}*")) or any(state.glob(f"*/*/.{batch + 1}*"))
        case "sink":
            return any((out / "panes" / "_spark_metadata").glob(f"{batch}*"))
        case "later":
            return (out / "checkpoint" / "commits" / str(batch)).exists()
        case _:
            return (out / "checkpoint" / moment / str(batch)).exists()


def committed(out: Path) -> int:
    """The number of the next batch."""
    folder = out / "checkpoint" / "commits"
    done = [int(path.name) for path in folder.glob("*") if path.name.isdigit()] if folder.exists() else []
    return max(done, default=-1) + 1
