"""The site: it is built without a warning, shows pages as they are meant, and its search finds what people look for."""

from __future__ import annotations

import fcntl
import html
import json
import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built by the first process that asks for it, as from a fresh clone."""
    pytest.importorskip("mkdocs")
    own = tmp_path_factory.getbasetemp()
    place = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "site"
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            shutil.rmtree(ROOT / "out" / "sources", ignore_errors=True)
            done = subprocess.run(
                [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", place],
                cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
            )  # fmt: skip
            warnings = [line for line in done.stderr.splitlines() if "WARNING" in line]
            assert (done.returncode, warnings) == (0, []), done.stderr
    return place


@pytest.mark.parametrize(
    ("word", "page", "written"),
    [
        ("databricks", "how-to/clusters.html", "%pip install uncombine"),
        ("emr", "how-to/clusters.html", "pip install uncombine"),
        ("dataproc", "how-to/clusters.html", "dataproc:pip.packages=uncombine"),
        ("fabric", "how-to/clusters.html", "%pip install uncombine"),
        ("s3", "how-to/object_stores.html", 'uc.flow("s3://'),
        ("rolling", "how-to/rolling.html", "sliding 10 minutes every 5 minutes"),
        ("rolling", "how-to/from_pandas.html", "sliding 3 minutes every 1 minute"),
        ("transform", "how-to/from_pandas.html", 'merge(means, on="user")'),
        ("tumbling", "reference/windows.html", 'uc.Fixed("10 minutes")'),
        ("hopping", "reference/windows.html", 'uc.Sliding("10 minutes", "5 minutes")'),
        ("backfill", "how-to/backfill.html", "uc.Files(folder, max_files_per_batch=3, **options)"),
        ("prometheus", "how-to/metrics.html", "uc.metrics.prometheus(9464)"),
        ("grafana", "how-to/metrics.html", "board.json"),
        ("opentelemetry", "how-to/metrics.html", "uc.metrics.opentelemetry("),
        ("avro", "how-to/file_formats.html", "read_avro("),
        ("orc", "how-to/file_formats.html", 'format="orc"'),
    ],
)
def test_search_finds_what_to_write(site: Path, word: str, page: str, written: str) -> None:
    """The index has a section of the page with the word, and a section of it with the code."""
    docs = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    sections = [
        re.sub(r"<[^>]+>", "", html.unescape(f"{one['title']} {one['text']}"))
        for one in docs
        if one["location"].partition("#")[0] == page
    ]
    assert any(re.search(rf"\b{word}\b", section, re.IGNORECASE) for section in sections)
    assert any(written in section for section in sections)


def test_notebooks_are_pages_with_their_pictures(site: Path) -> None:
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        page = (site / "notebooks" / f"{path.stem}.html").read_text(encoding="utf-8")
        pictures = re.findall(rf'<img [^>]*src="({path.stem}_\d+\.png)"', page)
        assert len(pictures) == path.read_text(encoding="utf-8").count('"image/png"') > 0
        assert all((site / "notebooks" / picture).stat().st_size > 1000 for picture in pictures)
    lesson = (site / "how-to" / "write_a_combiner.html").read_text(encoding="utf-8")
    assert 'href="../notebooks/03_algebra.html"' in lesson


def test_the_reference_has_no_prompts(site: Path) -> None:
    for file in (site / "reference").glob("*.html"):
        assert "&gt;&gt;&gt;" not in file.read_text(encoding="utf-8"), file.name


def test_defaults_are_values(site: Path) -> None:
    """No signature shows a function, or the name of a constant that its reader does not know."""
    count = 0
    for file in (site / "reference").glob("*.html"):
        shown = re.findall(r'<div class="[^"]*doc-signature.*?</div>', file.read_text(encoding="utf-8"), re.DOTALL)
        for signature in (html.unescape(re.sub(r"<[^>]+>", "", one)) for one in shown):
            assert not re.search(r"lambda|<|\b[A-Z_]{4,}\b", signature), signature
        count += len(shown)
    assert count > 100


def test_pages_are_shown_as_they_are_meant(site: Path) -> None:
    reference = (site / "reference" / "plot.html").read_text(encoding="utf-8")
    # Parameters that share a text have each its own type, and the text once.
    assert re.search(r"<code>figsize</code></b>.{0,300}?tuple", reference, re.DOTALL)
    spark = (site / "reference" / "spark.html").read_text(encoding="utf-8")
    assert spark.count("which are retracted key by key") == 1
    assert "As for <code>time</code>" not in reference
    rules = (site / "semantics.html").read_text(encoding="utf-8")
    text = (DOCS / "semantics.md").read_text(encoding="utf-8")
    begun = [number for number in re.findall(r"^(?:#.*|[^\d ].*|)\n\n(\d+)\. ", text, re.MULTILINE) if number != "1"]
    assert re.findall(r'<ol start="(\d+)">', rules) == begun, "rules are cited by their numbers"
    command = (site / "reference" / "command_line.html").read_text(encoding="utf-8")
    assert '<span class="option">--time-format</span>' in command, "an option is not cut at its dashes"
    expressions = (site / "reference" / "expressions.html").read_text(encoding="utf-8")
    assert re.search(r'<h[2-4] id="[^"]*\.year"[^>]*>\s*Expr\.dt\.year\b', expressions), "whose method it is"
    for file in site.rglob("*.html"):
        page = file.read_text(encoding="utf-8")
        levels = [int(level) for level in re.findall(r"<h([1-6]) id", page)]
        assert all(b <= a + 1 for a, b in pairwise(levels)), f"{file.name}: a heading skips a level"
        assert not re.search(r"\d<strong>", page), f"{file.name}: a power is bold text"
        assert "<code>|" not in page, f"{file.name}: a table is shown as code"
        assert not re.search(r"<p>[^<]*\n\* |\.\s\* <strong>", page), f"{file.name}: a list is shown as text"
        assert "&#<wbr>" not in page, f"{file.name}: a sign is cut in two"
        assert "<p><img" not in page, f"{file.name}: a picture does not open in full"


def test_the_page_of_an_unknown_address_says_where_to_go(site: Path) -> None:
    page = (site / "404.html").read_text(encoding="utf-8")
    assert "There is no page at this address" in page
    assert "404 - Not found" not in page
    targets = re.findall(r'href="/([\w./-]+html)"', page.partition("There is no page")[2])
    assert targets[:2] == ["how-to/index.html", "reference/index.html"]
    assert all((site / target).exists() for target in targets)
