"""The notebooks as pages of the site: their text, their code, and what it gave when it ran.

Guarded by tests/house/test_docs.py.
"""

from __future__ import annotations

import base64
import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
LINK = re.compile(r"(\]\()([^)#\s]+)")
FRAME = re.compile(r'<style.*?</style>\s*| border="1"| class="dataframe"| style="[^"]*"', re.DOTALL)


@dataclass(frozen=True)
class NotebookPage:
    """A page made of a notebook, and its pictures by their names beside it."""

    text: str
    pictures: Mapping[str, bytes]


def notebooks() -> list[Path]:
    """The notebooks in their order."""
    return sorted(NOTEBOOKS.glob("*.ipynb"))


def place(notebook: Path) -> str:
    """The place of the page of a notebook, from the folder of the pages."""
    return f"notebooks/{notebook.stem}.md"


def page_of(notebook: Path) -> NotebookPage:
    """The page of a notebook."""
    pictures: dict[str, bytes] = {}
    parts: list[str] = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(LINK.sub(from_page, source))
        elif cell["cell_type"] == "code":
            parts.append(f"```python\n{source}\n```")
            parts += shown(cell["outputs"], notebook.stem, pictures)
    parts.insert(1, f"*The notebook `notebooks/{notebook.name}`, with its outputs.*")
    return NotebookPage(text="\n\n".join(parts) + "\n", pictures=pictures)


def shown(outputs: Sequence[Mapping[str, Any]], name: str, pictures: dict[str, bytes]) -> Iterator[str]:
    """The outputs of a cell as text of a page; a picture is put to those of the page."""
    for printed, group in groupby(outputs, key=lambda output: "text" in output):
        if printed:
            yield block("".join("".join(output["text"]) for output in group))
            continue
        for data in (output["data"] for output in group):
            if "image/png" in data:
                file = f"{name}_{len(pictures) + 1}.png"
                pictures[file] = base64.b64decode("".join(data["image/png"]))
                yield f"![Picture {len(pictures)} of the notebook]({file})"
            elif "text/html" in data:
                yield FRAME.sub("", "".join(data["text/html"])).strip()
            else:
                yield block("".join(data.get("text/plain", "")))


def block(text: str) -> str:
    """A text that a cell printed, as a block."""
    return f"```text\n{text.rstrip()}\n```"


def from_page(link: re.Match[str]) -> str:
    """A link of a notebook as its page has it."""
    target = link[2]
    if "://" in target:
        return link[0]
    there = posixpath.normpath(posixpath.join("notebooks", target))
    return link[1] + posixpath.relpath(there, "docs/notebooks")
