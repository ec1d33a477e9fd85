"""Every result can be taken to Python, in every time zone: no column holds a time that the data do not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from programs import program

LATEST = 90.0


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "UTC", "America/Los_Angeles"])
def test_results_are_taken_to_python_in_every_zone(zone: str, tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    run = [sys.executable, program("zones"), str(out)]
    ran = subprocess.run(run, env={**os.environ, "TZ": zone}, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-4000:]
    found = {name: [tuple(row) for row in rows] for name, rows in json.loads(out.read_text()).items()}
    for name in ("native", "tasks", "stages"):
        assert found[name] == [(7, 1, LATEST)], name
    assert [total for total, *_ in found["stream"]] == [7]
    for name, rows in found.items():
        assert max(total for total, *_ in rows) == 7, name
        assert all(-60 <= time <= LATEST for *_, time in rows), name
