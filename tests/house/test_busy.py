"""The busy loops beside a run of the suite: they are there while it runs, and gone when it has ended or was killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

BUSY = Path(__file__).resolve().parents[1] / "support" / "busy.py"
SHOWN = """
import os, pathlib
def parent(pid):
    try:
        return int((pathlib.Path("/proc") / pid / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None
pids = [entry.name for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit()]
print(*(pid for pid in pids if int(pid) != os.getpid() and parent(pid) == os.getppid()), flush=True)
"""


@pytest.fixture
def children() -> str:
    """A program that prints the ids of its siblings."""
    if not Path("/proc/self/stat").exists():
        pytest.skip("processes are looked up in /proc")
    return SHOWN


def command(*program: str, times: int = 1) -> list[str]:
    return [sys.executable, str(BUSY), "--times", str(times), "--loops", "2", "--", sys.executable, "-c", *program]


def gone(pid: str) -> bool:
    try:
        return (Path("/proc") / pid / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_loops_run_beside_each_run(children: str) -> None:
    ran = subprocess.run(command(children, times=2), capture_output=True, text=True, check=True)
    first, second = (line.split() for line in ran.stdout.splitlines() if not line.startswith("run "))
    assert len(first) == 2
    assert first == second
    assert all(map(gone, first))


def test_a_run_that_fails_is_told() -> None:
    ran = subprocess.run(command("raise SystemExit(3)"), capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "run 1 of 1 beside 2 busy loops: exit status 3" in ran.stdout


def test_loops_end_when_they_are_left_alone(children: str) -> None:
    with subprocess.Popen(
        command(children + "input()"), stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        loops = run.stdout.readline().split()
        assert len(loops) == 2
        run.kill()
    while not all(map(gone, loops)):  # they see it in their next round
        pass
