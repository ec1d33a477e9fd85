"""The pages: their generated parts are up to date, their links lead somewhere, and the site has all names and pages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

import uncombine as uc

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md")), *sorted((ROOT / "benchmarks").glob("*.md"))]
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]+))?\)")


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    broken = []
    for target, place in LINK.findall(text):
        if "://" in target:
            continue
        file = page if not target else Path(os.path.normpath(page.parent / target))
        if not file.exists() or (place and file.suffix == ".md" and place not in headings(file)):
            broken.append(f"{target}#{place}")
    assert broken == []


def test_the_site_shows_every_page_and_only_pages_that_are_there() -> None:
    listed = re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))


@pytest.mark.full
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    shutil.rmtree(ROOT / "out" / "sources", ignore_errors=True)  # as in a fresh clone
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, [line for line in done.stderr.splitlines() if "WARNING" in line]) == (0, []), done.stderr
    reference = (tmp_path / "reference" / "plot.html").read_text(encoding="utf-8")
    # Parameters that share a text have each its own type, and the text once.
    assert re.search(r"<code>figsize</code></b>.{0,300}?tuple", reference, re.DOTALL)
    spark = (tmp_path / "reference" / "spark.html").read_text(encoding="utf-8")
    assert spark.count("which are retracted key by key") == 1
    assert "As for <code>time</code>" not in reference
    rules = (tmp_path / "semantics.html").read_text(encoding="utf-8")
    text = (DOCS / "semantics.md").read_text(encoding="utf-8")
    begun = [number for number in re.findall(r"^(?:#.*|[^\d ].*|)\n\n(\d+)\. ", text, re.MULTILINE) if number != "1"]
    assert re.findall(r'<ol start="(\d+)">', rules) == begun, "rules are cited by their numbers"
    for file in tmp_path.rglob("*.html"):
        page = file.read_text(encoding="utf-8")
        levels = [int(level) for level in re.findall(r"<h([1-6]) id", page)]
        assert all(b <= a + 1 for a, b in pairwise(levels)), f"{file.name}: a heading skips a level"
        assert not re.search(r"\d<strong>", page), f"{file.name}: a power is bold text"
        assert "<code>|" not in page, f"{file.name}: a table is shown as code"
        assert not re.search(r"<p>[^<]*\n\* |\.\s\* <strong>", page), f"{file.name}: a list is shown as text"
        assert "&#<wbr>" not in page, f"{file.name}: a sign is cut in two"
        assert "<p><img" not in page, f"{file.name}: a picture does not open in full"


def test_the_reference_has_every_public_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    import generate

    listed = {name for names in generate.NAMES.values() for name in names}
    combiners = {cls.__name__ for cls in generate.combiners()}
    rooms = {"changelog", "plot", "UncombineError"}
    public = {*uc.__all__, *uc.ON_SPARK, *(f"plot.{name}" for name in uc.plot.__all__)} - rooms
    assert public - listed - combiners == set()
    for page, names in generate.NAMES.items():
        text = (DOCS / "reference" / f"{page}.md").read_text(encoding="utf-8")
        assert f"<!-- generated: names_{page} -->" in text
        assert len(names) > 1
        assert all(f"| `{name}" in text for name in names), "the repository has each name, not only the site"
        assert all(generate.path_of(name).startswith("uncombine.") for name in names)


def test_a_name_of_an_unknown_module_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    import names_by_job

    monkeypatch.delitem(names_by_job.PAGES, "uncombine.windows")
    with pytest.raises(SystemExit, match=r"no page has uncombine\.windows\.fixed, the module of Fixed: add it"):
        names_by_job.page_of("Fixed")


def test_a_row_of_the_reference_has_arguments_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    import names_by_job

    assert names_by_job.row("Fixed").startswith("| `Fixed(size, ")
    assert "**options" not in names_by_job.row("Flow.window")
    assert ", allowed_lateness, " in names_by_job.row("Flow.window")
    assert names_by_job.row("Flow.explain").startswith("| `Flow.explain()` | A text")


def test_errors_are_listed_by_their_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    import generate

    text = generate.errors()
    assert "## InvalidArgument" in text
    assert "* `AfterCount(n): n must be" in text or "must be a whole number of at least 1, but is ..." in text
