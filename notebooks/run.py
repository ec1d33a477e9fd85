"""Runs the notebooks and stores their outputs: `python notebooks/run.py [name ...]`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent


def executed(path: Path) -> Any:
    """The notebook with new outputs, without Spark's stderr and the times of cells."""
    book = nbformat.read(path, as_version=4)
    NotebookClient(
        book,
        timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": str(FOLDER)}},
    ).execute()
    for cell in book.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [out for out in cell.outputs if out.get("name") != "stderr"]
    book.metadata = {
        "kernelspec": {
            "display_name": "Python 3",
            "language": "python",
            "name": "python3",
        }
    }
    return book


def texts(book: Any) -> list[str]:
    """The text that each code cell printed or showed; "(picture)" for a picture."""
    out = []
    for cell in book.cells:
        if cell.cell_type == "code":
            parts = []
            for output in cell.outputs:
                data = output.get("data", {})
                parts.append(
                    "(picture)"
                    if "image/png" in data
                    else output.get("text") or data.get("text/plain", "")
                )
            out.append("".join(parts))
    return out


def main() -> None:
    paths = [FOLDER / name for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb"))
    for path in paths:
        print(path.name)
        nbformat.write(executed(path), path)


if __name__ == "__main__":
    main()
