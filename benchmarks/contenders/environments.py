"""An environment for each system under out/world/, since some of them pin what others need newer."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ENVIRONMENTS = ROOT / "out" / "world"
NEEDS = {
    "uncombine": ["-e", f"{ROOT}[spark]"],
    "local": ["-e", f"{ROOT}"],
    "connector": ["-e", f"{ROOT}[spark,kafka]", "pyspark==4.2.0", "fastavro"],
    "duckdb": ["duckdb", "pyarrow"],
    "polars": ["polars", "pyarrow"],
    "pandas": ["pandas", "pyarrow"],
    "pathway": ["pathway"],
    "beam": ["apache-beam", "pyarrow"],
    "flink": ["apache-flink", "setuptools<80"],
}


def environment(system: str) -> Path:
    """The Python of a system's environment, which is made at the first use."""
    home = ENVIRONMENTS / system
    ready = home / ".ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        pip = [home / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *NEEDS[system]], check=True)
        ready.touch()
    return home / "bin" / "python"


@dataclass(frozen=True)
class Answer:
    """The duration of a task, and the facts of its result."""

    seconds: float
    facts: tuple[int, float, float] | None


class Contender:
    """A process that does the tasks of one system."""

    def __init__(self, system: str) -> None:
        self.system = system
        self._process = subprocess.Popen(
            [environment(system), HERE / f"of_{system}.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        said = self._answer()
        self.version: str = said["version"]
        self.tasks: tuple[str, ...] = tuple(said["tasks"])

    def run(self, task: str, folder: str, facts: bool = False, limit: float | None = None) -> Answer:
        """Do a task over the files of a folder, and wait for it; raises TimeoutError after `limit` seconds."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"task": task, "folder": folder, "facts": facts}) + "\n")
        self._process.stdin.flush()
        if limit is not None and not select.select([self._process.stdout], [], [], limit)[0]:
            raise TimeoutError(f"{self.system} was not done after {limit:g} s")
        made = self._answer()
        return Answer(made["seconds"], made["facts"] and tuple(made["facts"]))

    def __enter__(self) -> Contender:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.system} stopped: see what it printed above")
        return json.loads(line)
