"""The generated parts of the documents are those that the code gives now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_generated_parts_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, DOCS / "generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_page_has_generated_parts() -> None:
    assert "### Sum" in (DOCS / "combiners.md").read_text(encoding="utf-8")
