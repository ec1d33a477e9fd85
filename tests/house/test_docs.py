"""The pages: their generated parts are up to date, and their links lead somewhere. The site is in test_site.py."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

import pages
import pytest

import uncombine as uc

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md")), *sorted((ROOT / "benchmarks").glob("*.md"))]
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]+))?\)")
Tool: TypeAlias = Callable[[str], ModuleType]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Tool:
    """A module of those that make the pages, by its name."""
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module


def test_generated_parts_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, DOCS / "generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_page_has_generated_parts() -> None:
    page = (DOCS / "reference" / "combiners.md").read_text(encoding="utf-8")
    assert "### Sum" in page
    assert "| [Sum](#sum) |" in page


@cache
def headings(page: Path) -> set[str]:
    """The places of a page that a link may name."""
    found: set[str] = set()
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        plain = re.sub(r"\]\([^)]*\)", "", title).lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-"))
    return found


def broken_links(page: Path) -> list[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    broken = []
    for target, place in LINK.findall(text):
        if "://" in target:
            continue
        file = page if not target else Path(os.path.normpath(page.parent / target))
        if not file.exists() or (place and file.suffix == ".md" and place not in headings(file)):
            broken.append(f"{target}#{place}")
    return broken


def test_links_lead_somewhere() -> None:
    assert {str(page): broken for page in PAGES if (broken := broken_links(page))} == {}


def test_the_site_shows_every_page_and_only_pages_that_are_there() -> None:
    listed = re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    notebooks = [f"notebooks/{path.stem}.md" for path in (ROOT / "notebooks").glob("*.ipynb")]
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    assert sorted(listed) == sorted(pages + notebooks)


def test_the_page_of_notebooks_has_each_of_them() -> None:
    page = (DOCS / "notebooks" / "index.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\w+\.ipynb", page)) == sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_cells_of_notebooks_fit_into_a_page(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    lines = [line.rstrip("\n") for cell in cells if cell["cell_type"] == "code" for line in cell["source"]]
    assert [line for line in lines if len(line) > pages.WIDTH] == []
    assert any(lines)


def test_the_reference_has_every_public_name(tool: Tool) -> None:
    generate = tool("generate")
    listed = {name for names in generate.NAMES.values() for name in names}
    combiners = {cls.__name__ for cls in generate.combiners()}
    rooms = {"changelog", "messages", "metrics", "plot", "UncombineError"}
    public = {*uc.__all__, *uc.ON_SPARK, *(f"plot.{name}" for name in uc.plot.__all__)} - rooms
    assert public - listed - combiners == set()
    for page, names in generate.NAMES.items():
        text = (DOCS / "reference" / f"{page}.md").read_text(encoding="utf-8")
        assert f"<!-- generated: names_{page} -->" in text
        assert len(names) > 1
        assert all(f"| `{name}" in text for name in names), "the repository has each name, not only the site"
        assert all(generate.path_of(name).startswith("uncombine.") for name in names)


def test_a_name_of_an_unknown_module_is_refused(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    names_by_job = tool("names_by_job")
    monkeypatch.delitem(names_by_job.PAGES, "uncombine.windows")
    with pytest.raises(SystemExit, match=r"no page has uncombine\.windows\.fixed, the module of Fixed: add it"):
        names_by_job.page_of("Fixed")


def test_a_row_of_the_reference_has_arguments_and_options(tool: Tool) -> None:
    names_by_job = tool("names_by_job")
    assert names_by_job.row("Fixed").startswith("| `Fixed(size, ")
    assert "**options" not in names_by_job.row("Flow.window")
    assert ", allowed_lateness, " in names_by_job.row("Flow.window")
    assert names_by_job.row("Flow.explain").startswith("| `Flow.explain(*, until=None)` | A text")


def test_defaults_in_the_reference_are_values(tool: Tool) -> None:
    for page in tool("generate").NAMES:
        text = (DOCS / "reference" / f"{page}.md").read_text(encoding="utf-8")
        signatures = re.findall(r"^\| `(\w[\w.]*\(.*?\))` \|", text, re.MULTILINE)
        assert [one for one in signatures if re.search(r"lambda|<|\b[A-Z_]{4,}\b", one)] == []
    assert "allowed_lateness='0 seconds'" in tool("names_by_job").row("panes.grouping.grouping.Grouping")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("def f(x: str = DIFF, *, y: int = 1): ...", "def f(x: str = 'diff', *, y: int = 1): ..."),
        ("class C:\n    é: int = field(default_factory=list)", "class C:\n    é: int = field(default=[])"),
        ("class C:\n    a: Span = field(repr=False, default_factory=lambda: span('1 day'))",
         "class C:\n    a: Span = field(repr=False, default='1 day')"),
        ("def f(x=annotations): ...", "def f(x=annotations): ..."),
        ("def f(x=DIFF, y=DIFF): ...", "def f(x='diff', y='diff'): ..."),
    ],
)  # fmt: skip
def test_defaults_of_the_site_are_values(tool: Tool, written: str, shown: str) -> None:
    assert tool("defaults").plain_defaults(written, "uncombine.testing.check") == f"{shown}\n"


def test_errors_are_listed_by_task(tool: Tool) -> None:
    error_pages = tool("error_pages")
    tasks = error_pages.by_task()
    texts = dict(tasks["Windows, triggers and groupings"])
    assert texts["...: n must be a whole number of at least 1, but is ..."] == "InvalidArgument"
    assert all(tasks.values()), "a task has no errors"
    assert error_pages.task_of("panes/grouping/grouping") != error_pages.task_of("panes/join/compiled")
    with pytest.raises(SystemExit, match="in which task do the errors of cellar/door come"):
        error_pages.task_of("cellar/door")


def test_the_messages_of_the_page_of_errors_are_in_the_code() -> None:
    page = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]*\| `([^`]+)` \|", page.partition("## Classes")[0], re.MULTILINE)
    rooms = {face.parent for face in ROOT.glob("*/__init__.py")}
    files = [*ROOT.glob("*.py"), *(file for room in rooms for file in room.rglob("*.py"))]
    code = "\n".join(file.read_text(encoding="utf-8") for file in files)
    assert len(rows) > 10
    assert [text for text in rows if text not in code] == []


def test_facts_of_combiners(tool: Tool) -> None:
    facts = tool("combiner_facts")
    assert facts.memory(uc.Count) == "8 bytes"
    assert facts.memory(uc.Max) == "8 bytes; if rows can be retracted, 16 bytes for each different value"
    assert facts.memory(uc.CountDistinct).endswith("for each different value; if rows can be retracted, 16 bytes each")
    assert facts.memory(uc.ArgMax).endswith(" bytes for each different pair")
    assert facts.memory(uc.BottomK).startswith("52 bytes with `k=3`; ")
    assert "kB for 1,000" in facts.memory(uc.HeavyHitters)
    assert facts.retracts(uc.Count) == facts.retracts(uc.CountIf) == "exactly"
    assert facts.retracts(uc.Sum) == "exactly; floats within a tolerance, or exactly with `exact=True`"
    assert facts.retracts(uc.Product) == "within a tolerance"
    assert facts.retracts(uc.Variance) == "within a tolerance; exactly with `exact=True`"


def test_a_state_that_grows_with_rows_is_said_to(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = tool("combiner_facts")
    monkeypatch.setattr(facts, "size", lambda combiner, rows, values: 8 * rows)
    assert facts.growth(uc.Count()) == "grows with its rows"


def test_each_combiner_says_what_it_is_for(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    generate = tool("generate")
    names = [cls.__name__ for cls in generate.combiners()]
    assert sorted(generate.USES) == sorted(names)
    assert "* **For:** Averages." in generate.reference()
    monkeypatch.setattr(generate, "USES", {})
    with pytest.raises(SystemExit, match=r"what is Count taken for\? Add a line to docs/combiner_choices.py"):
        generate.use(uc.Count)


def test_the_combiners_named_in_a_use_are_there(tool: Tool) -> None:
    uses = tool("combiner_choices").USES
    names = {name for text in uses.values() for name in re.findall(r"`([A-Z]\w+)", text)}
    assert names - set(uses) == set()


@pytest.mark.parametrize(
    ("example", "block"),
    [
        (">>> x = 1\n>>> x + 1\n2", "x = 1\nprint(x + 1)\n|2"),
        (">>> 'a' + 'b'\n'ab'", "print('a' + 'b')\n|ab"),
        (">>> 1, 2\n(1, 2)", "print((1, 2))\n|(1, 2)"),
        (">>> len('a')  # why\n1", "print(len('a'))  # why\n|1"),
        (">>> print('a')\na", "print('a')\n|a"),
        (
            ">>> import numpy as np\n>>> np.array([1])\narray([1])",
            "import numpy as np\nprint(repr(np.array([1])))\n|array([1])",
        ),
        (">>> for x in 'ab':\n...     print(x)\na\nb", "for x in 'ab':\n    print(x)\n|a\nb"),
        (">>> int('x')\nTraceback (most recent call last):\n  ...\nValueError: ...", "int('x')\n|ValueError: ..."),
        (f">>> sum([{'1, ' * 27}1])\n28", f"print(\n    sum([{'1, ' * 27}1])\n)\n|28"),
    ],
)
def test_an_example_becomes_a_block(tool: Tool, example: str, block: str) -> None:
    text = tool("plain_examples").plain(example)
    code, output = block.split("|")
    assert text == f"```python\n{code}```\n\n```text\n{output}\n```"
    assert pages.failures(text, "page.md") == []


def docstrings(generate: ModuleType) -> Iterator[tuple[str, str]]:
    """The public names, and their docstrings as the reference shows them."""
    for name in (*(name for names in generate.NAMES.values() for name in names), *generate.USES):
        value = generate.value_of(name)
        value = value.fget if isinstance(value, property) else value
        yield name, generate.plain(inspect.getdoc(value) or "")


def test_blocks_of_the_reference_can_be_read(tool: Tool) -> None:
    assert {name: lines for name, text in docstrings(tool("generate")) if (lines := pages.unfit(text))} == {}


@pytest.mark.full
def test_blocks_of_the_reference_run_when_they_are_copied(tool: Tool) -> None:
    here = [(name, text) for name, text in docstrings(tool("generate")) if "session(" not in text]
    assert len(here) > 100
    assert [problem for name, text in here for problem in pages.failures(text, name)] == []
