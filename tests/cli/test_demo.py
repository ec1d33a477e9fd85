"""The demo without Java: what needs none, and then a line that says what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.weekly
def test_without_java_the_demo_ends_with_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "uncombine.cli.demo"],
        cwd=tmp_path,
        env=os.environ | {"JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout.count("equal state: True") == 3
    (line,) = done.stderr.splitlines()
    assert line.startswith("Spark needs Java")
