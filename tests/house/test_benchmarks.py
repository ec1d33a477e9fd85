"""The page of the benchmarks says what was measured."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[2] / "benchmarks"


def loaded(name: str) -> ModuleType:
    """A module of the benchmarks, which are no package."""
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_rows_that_were_measured() -> None:
    text = (FOLDER / "README.md").read_text()
    assert loaded("report").fill(text) == text, "run python benchmarks/report.py"


def test_every_measured_row_stands_in_a_table_that_the_page_links() -> None:
    text = (FOLDER / "README.md").read_text()
    unlinked = [p.name for p in (FOLDER / "measured").glob("*.md") if f"(measured/{p.name})" not in text]
    assert not unlinked


def test_a_question_takes_the_rows_that_begin_as_it_says() -> None:
    report = loaded("report")
    report.measured = lambda suite: iter(
        [report.Measured("a: files", ("2.0 ms", "1.0 ms", "2.00", "", "", "b")), report.Measured("c", ("1 s",))]
    )
    asked = "<!-- rows of any: a -->\nold\n<!-- end -->"
    assert "| a: files | 2.0 ms | 1.0 ms | 0.50 | b |\n<!-- end -->" in report.fill(asked)
    assert "old" not in report.fill(asked)
