"""Applications in sessions of processes of their own, so that a test can kill all of them or one, by their ids."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

KILLED_APP = Path(__file__).with_name("killed_app.py")
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


@dataclass(frozen=True)
class App:
    """A run of an application that writes its checkpoint and its sink into `out`."""

    process: subprocess.Popen[bytes]
    out: Path

    def wait(self, seconds: float) -> bool:
        """Whether the application still runs after so long a time."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return self.process.poll() is None

    def wait_for(self, batch: int, moment: str) -> bool:
        """Whether the application still runs when its query has come to this moment of this batch."""
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
def running(out: Path, *arguments: object) -> Iterator[App]:
    """The application with these arguments; nothing of it is left at the end."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(KILLED_APP.parent), os.environ.get("PYTHONPATH", "")]),
        "SPARK_WORKER_DIR": str(out / "workers"),
    }
    command = [sys.executable, str(KILLED_APP), *map(str, arguments)]
    with open(out / "said", "ab") as said:
        process = subprocess.Popen(command, env=environment, stdout=said, stderr=said, cwd=out, start_new_session=True)
    try:
        yield App(process, out)
    finally:
        kill_all(process.pid)
        process.wait()


def finished(out: Path, *arguments: object) -> None:
    """The application, run to its good end."""
    with running(out, *arguments) as app:
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
    """Whether a query has come to this moment of this batch, by the files that it writes."""
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
