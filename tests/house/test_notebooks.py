"""The notebooks run, say what their stored outputs say, and give the published results."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
GOLDEN = {case["name"]: case for case in json.loads((ROOT / "tests/data/streaming102.json").read_text())}

sys.path.insert(0, str(ROOT / "notebooks"))
from run import executed, texts  # noqa: E402

pytestmark = pytest.mark.full

PANE = re.compile(r"^ *([+-])(\d+) +(all of time|\S+ - \S+) +(early|on time|late|retracted)$", re.MULTILINE)


def golden_cells(book: Any) -> list[tuple[str, str]]:
    """The golden cases that cells say they show, with what they printed."""
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    return [
        (cell.metadata["golden"], text)
        for cell, text in zip(code, texts(book), strict=True)
        if "golden" in cell.metadata
    ]


def published(case: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The panes of a golden case as the notebooks print them, without what the case leaves open."""
    out = []
    for pane in case["panes"]:
        window = pane["window"]
        bounds = "all of time" if window is None else f"{window[0][11:19]} - {window[1][11:19]}"
        out.append(("+" if pane["diff"] > 0 else "-", str(pane["sum"]), bounds))
    return out


def starts_spark(path: Path) -> bool:
    """True if a cell of the notebook starts a session of Spark."""
    cells = nbformat.read(path, as_version=4).cells
    return any(cell.cell_type == "code" and "uc.session(" in cell.source for cell in cells)


ON_SPARK = [path for path in NOTEBOOKS if starts_spark(path)]
LOCAL = [path for path in NOTEBOOKS if path not in ON_SPARK]


@pytest.mark.spark
@pytest.mark.parametrize("path", ON_SPARK, ids=lambda path: path.stem)
def test_stored_outputs_are_those_of_a_run(path: Path, python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    stored = nbformat.read(path, as_version=4)
    assert texts(executed(path)) == texts(stored)


@pytest.mark.parametrize("path", LOCAL, ids=lambda path: path.stem)
def test_stored_outputs_are_those_of_a_run_without_spark(path: Path) -> None:
    stored = nbformat.read(path, as_version=4)
    assert texts(executed(path)) == texts(stored)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_stored_notebook_has_pictures_and_no_errors(path: Path) -> None:
    stored = nbformat.read(path, as_version=4)
    outputs = [output for cell in stored.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert all(output.output_type != "error" and output.get("name") != "stderr" for output in outputs)


def test_the_listings_give_what_was_published() -> None:
    shown = golden_cells(nbformat.read(ROOT / "notebooks/01_streaming_102.ipynb", as_version=4))
    assert {name for name, _ in shown} == set(GOLDEN)
    for name, text in shown:
        panes = PANE.findall(text)
        assert [pane[:3] for pane in panes] == published(GOLDEN[name]), name
        for pane, golden in zip(panes, GOLDEN[name]["panes"], strict=True):
            if "timing" in golden:
                assert pane[3].replace(" ", "_").upper() == golden["timing"], name
