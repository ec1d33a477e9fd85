"""The pages name modules, classes and pages that are there, and no text of the picture lies on another."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
DESIGN = sorted((ROOT / "docs" / "design").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

MODULE = re.compile(r"(?<![\w/.*-])((?:\w+/)+[\w.]*\w|\w+\.py)(?=`)")
"""A file, written between backticks with its folders."""

IN_MODULE = re.compile(r"`([\w.]+)`(?: and `([\w.]+)`)? (?:in|\() ?`((?:\w+/)+\w+\.py)`")
"""A name and its file: `Shard` in `panes/shard/shard.py`, or `Shard` (`panes/shard/shard.py`)."""

LINK = re.compile(r"\]\(([^)\s]+)\)")


def missing_files(text: str) -> list[str]:
    """The files that a text names between backticks and that are not there."""
    return [name for name in MODULE.findall(text) if not (ROOT / name).exists()]


def missing_names(text: str) -> list[str]:
    """The names that a text says to be in a module, and that are not defined there."""
    out = []
    for first, second, module in IN_MODULE.findall(text):
        defined = names_of((ROOT / module).read_text())
        out += [f"{name} in {module}" for name in (first, second) if name and name.rpartition(".")[2] not in defined]
    return out


def names_of(source: str) -> set[str]:
    """The names of a module and of its classes: classes, functions, methods, and values; no variables of functions."""
    found = set()
    level: list[ast.AST] = [ast.parse(source)]
    while level:
        node = level.pop()
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.comprehension):
            level += ast.iter_child_nodes(node)
    return found


def heading_anchors(text: str) -> set[str]:
    """The anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """The links of a page to files that are not there, or to headings that they do not have."""
    out = []
    for link in LINK.findall(re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in heading_anchors(target.read_text())):
            out.append(link)
    return out


@pytest.mark.parametrize("page", [*DESIGN, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_a_page_names_what_is_there(page: Path) -> None:
    text = page.read_text()
    assert missing_files(text) == []
    assert missing_names(text) == []


def test_links_lead_somewhere() -> None:
    assert {page: broken for page in PAGES if (broken := broken_links(page))} == {}


def test_what_is_not_there_is_seen(tmp_path: Path) -> None:
    assert missing_files("see `flows/flow.py`, `panes/none.py`, `docs/design`, `a/b` and `errors.py`") == [
        "panes/none.py",
        "a/b",
    ]
    there = "`Flow` in `flows/flow.py`, `Flow.explain` and `WindowedRows` in `flows/flow.py`"
    assert missing_names(f"{there}, `Flaw` (`flows/flow.py`)") == ["Flaw in flows/flow.py"]
    assert missing_names("`arrivals` in `panes/shard/shard.py`, `Shard.start` in `panes/shard/shard.py`") == [
        "arrivals in panes/shard/shard.py"  # a variable of its functions
    ]
    page = tmp_path / "page.md"
    page.write_text("# A page\n[it](page.md#a-page) [no](page.md#another) [none](none.md) [far](https://example.org/x)")
    assert broken_links(page) == ["page.md#another", "none.md"]


def test_the_glossary_is_in_order() -> None:
    words = re.findall(r"^\* \*\*(.+?)\*\*: ", (ROOT / "docs/design/glossary.md").read_text(), re.MULTILINE)
    assert len(words) > 80
    assert words == sorted(set(words), key=str.lower)


def test_records_have_numbers_that_stay() -> None:
    """The model of the rules names its notes by their numbers."""
    text = (ROOT / "docs/design/rule_notes.md").read_text()
    assert re.findall(r"^## D(\d+)\. ", text, re.MULTILINE) == [str(n) for n in range(1, 26)]
    named = [path.read_text() for path in (ROOT / "tests/support/reference").rglob("*.py")]
    assert {int(n) for source in named for n in re.findall(r"\bD(\d+)\b", source)} <= set(range(1, 26))


def wrong_records(text: str) -> list[str]:
    """The records of decisions without a date, a status, a way that was not taken or a consequence, or out of order."""
    rows = re.findall(r"^\| \[(.+)\]\(#.+\) \| (\d{4}-\d\d-\d\d) \| (.+) \|$", text, re.MULTILINE)
    records = re.findall(r"^## ([^\n]+)\n\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    wrong = [] if [row[0] for row in rows] == [title for title, _ in records] else ["the table has other records"]
    for n, (title, body) in enumerate(records):
        dated = re.match(r"\*(\d{4}-\d\d-\d\d), ([^\n]+)\*\n\n\S", body)
        whole = dated and all(f"\n* {part}: " in body for part in ("Not taken", "Consequence"))
        if not whole or not title.startswith(f"{n + 1}. ") or (title, dated[1], dated[2].split(";")[0]) not in rows:
            wrong.append(title)
    return wrong


def test_decisions_have_dates_alternatives_and_consequences() -> None:
    assert wrong_records((ROOT / "docs/design/decisions.md").read_text()) == []


def test_a_record_that_lacks_a_part_is_seen() -> None:
    table = "| [1. A](#1-a) | 2026-11-21 | holds |\n"
    whole = "\n## 1. A\n\n*2026-11-21, holds; more*\n\nText.\n\n* Not taken: b.\n* Consequence: c.\n"
    assert wrong_records(table + whole) == []
    assert wrong_records(table + whole.replace("* Consequence: c.", "")) == ["1. A"]
    assert wrong_records(table + whole.replace("11-21", "11-22")) == ["1. A"]
    assert wrong_records(table + whole + whole.replace("1. A", "2. B")) == ["the table has other records", "2. B"]


def drawing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("design_picture", ROOT / "docs" / "design_picture.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where a dataclass looks for its module
    spec.loader.exec_module(module)
    return module


def test_no_text_of_the_picture_lies_on_another() -> None:
    figure = drawing().figure()
    figure.canvas.draw()
    texts = [text for text in figure.axes[0].texts if text.get_text()]
    boxes = [text.get_window_extent() for text in texts]
    assert len(boxes) > 25
    for i, one in enumerate(boxes):
        assert 0 <= one.x0 < one.x1 <= figure.bbox.width, texts[i]
        assert 0 <= one.y0 < one.y1 <= figure.bbox.height, texts[i]
        for j in range(i):
            assert not one.overlaps(boxes[j]), (texts[i].get_text(), texts[j].get_text())
