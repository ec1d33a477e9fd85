"""A process of Python that the shared session starts has imported the library, and runs as one of its own would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from warm_python import warm_python

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only"),
]

PROGRAM = """
import os, sys
print(__name__, sys.argv[1:], sys.stdin.read(), os.environ["HERE"], os.getcwd(), os.environ.get("LISTENER"))
print("uncombine.sparkops" in sys.modules, len(os.listdir(f"/proc/{{os.getppid()}}/task")))
print("told", file=sys.stderr)
{end}
"""


@pytest.mark.parametrize(
    ("end", "code", "told"),
    [
        ("", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("raise ValueError('of the program')", 1, "ValueError: of the program"),
        ("os._exit(0)", 1, ""),
    ],
)
def test_a_module_runs_with_all_that_it_was_given(python: Path, tmp_path: Path, end: str, code: int, told: str) -> None:
    (tmp_path / "shown.py").write_text(PROGRAM.format(end=end))
    ran = subprocess.run(
        [python, "-m", "shown", "one", "two"],
        cwd=tmp_path,
        env={"HERE": "set"},
        input="given",
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == code
    # A fork leaves other threads behind, so that there must be none.
    assert ran.stdout.splitlines() == [f"__main__ ['one', 'two'] given set {tmp_path} None", "True 1"]
    assert ran.stderr.startswith("told\n")
    assert told in ran.stderr


def test_another_python_is_started_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with warm_python(tmp_path) as program:
        assert program == Path(sys.executable)
