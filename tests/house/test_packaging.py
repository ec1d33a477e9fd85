"""The package as users get it: from a wheel, from an editable install, and sent to Spark's workers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from library import BELOW
from markdown_it import MarkdownIt

import uncombine as uc
from uncombine.panes.state import manifest
from uncombine.sparkops.stored import codec

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
ROOMS = set(BELOW)

# A module at the root becomes part of the package by lying there, so each one is named here on purpose.
ROOT_FILES = {
    *("__init__.py", "advice.py", "changelog.py", "comparing.py", "doors.py", "errors.py", "evolution.py", "py.typed"),
    "urls.py",
}

USE = """
import json
import pyarrow as pa
import uncombine as uc

table = pa.table({"k": ["a", "b", "a", "b"], "x": [1, 2, 5, 7], "w": [1, 1, 1, -1]})
answer = uc.aggregate(table, by=["k"], diff="w", total=uc.Sum("x"))
print(json.dumps([uc.__file__, answer.to_pydict()]))
"""

# A program of a user with two mistakes that only the types of the package show.
MISTAKES = """
import uncombine as uc

def totals(flow: uc.Flow) -> None:
    flow.window(uc.Fixed("1 minute"), mode="retract")
    flow.window(uc.Fixed("1 minute"), allowed_latness="1 hour")
"""

# Group b has weight 1 - 1 = 0, and so no row.
ANSWER = {"k": ["a"], "total": [6]}

SEND = """
import json, sys
import pandas as pd
from pyspark.sql import SparkSession

try:
    import uncombine
except ImportError:
    pass
else:
    raise SystemExit("uncombine was there before it was sent")

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "1")
    .getOrCreate()
)
spark.sparkContext.addPyFile(sys.argv[1])

def total(frames):
    import uncombine as uc

    for frame in frames:
        answer = uc.aggregate(frame, by=["k"], total=uc.Sum("x"))
        yield answer.to_pandas().assign(place=uc.__file__)

df = spark.createDataFrame(pd.DataFrame({"k": ["a", "b", "a"], "x": [1, 2, 5]})).coalesce(1)
rows = df.mapInPandas(total, "k string, total long, place string").collect()
spark.stop()
print(json.dumps([list(row) for row in rows]))
"""


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = {Path(name) for name in zipfile.ZipFile(wheel).namelist()}
    package = {name.relative_to("uncombine") for name in names if name.parts[0] == "uncombine"}
    beside = {name.parts[0] for name in names} - {"uncombine"}

    assert {name.suffix for name in map(Path, beside)} == {".dist-info"}
    assert {str(name) for name in package if len(name.parts) == 1} <= ROOT_FILES
    assert {name.parts[0] for name in package if len(name.parts) > 1} == ROOMS
    assert {name.suffix for name in package} == {".py", ".typed", ".html", ".js"}
    assert any(name.name == "LICENSE" for name in names)


def test_wheel_holds_every_module_of_the_tree(wheel: Path) -> None:
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if Path(name).suffix in (".py", ".html", ".js")}
    files = (file for room in ROOMS for file in (ROOT / room).rglob("*") if file.suffix in (".py", ".html", ".js"))
    tree = {file.relative_to(ROOT) for file in files}
    assert {f"uncombine/{file}" for file in tree} <= inside


def test_wheel_in_an_empty_environment(environment: Any, wheel: Path, tmp_path: Path) -> None:
    environment.install(wheel, cwd=tmp_path)
    environment.lend()
    place, answer = environment.script(USE, cwd=tmp_path)
    assert Path(place) == environment.site / "uncombine" / "__init__.py"
    assert answer == ANSWER


def test_editable_install(environment: Any, editable_wheel: Path, tmp_path: Path) -> None:
    environment.install(editable_wheel, cwd=tmp_path)
    environment.lend()
    place, answer = environment.script(USE, cwd=tmp_path)
    assert Path(place).resolve() == ROOT / "__init__.py"
    assert answer == ANSWER


def test_links_of_src_are_the_package_and_nothing_else() -> None:
    """One link for each room, none to the root: it has `src` inside of it, and mypy walks that without an end."""
    links = [place for place in (ROOT / "src" / "uncombine").iterdir() if place.name != "__pycache__"]
    assert {link.name for link in links} == ROOMS | ROOT_FILES
    assert [link for link in links if os.readlink(link) != f"../../{link.name}"] == []


def test_source_archive_holds_files_for_links(archive: Path, wheel: Path) -> None:
    with tarfile.open(archive) as packed:
        members = [member for member in packed.getmembers() if "/src/uncombine/" in member.name]
    assert [member.name for member in members if not (member.isfile() or member.isdir())] == []
    sources = {member.name.partition("/src/")[2] for member in members if member.isfile()}
    assert sources == {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("uncombine/")}


def test_type_checkers_find_an_editable_install(environment: Any, editable_wheel: Path, tmp_path: Path) -> None:
    environment.install(editable_wheel, cwd=tmp_path)
    (tmp_path / "program.py").write_text(MISTAKES)
    command = [sys.executable, "-m", "mypy", "--config-file=", "--follow-imports=silent", "--ignore-missing-imports"]
    command += ["--cache-dir", str(tmp_path / "cache"), "--python-executable", str(environment.python), "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = re.findall(r"^program.py:(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.MULTILINE)
    assert found == [("5", "arg-type"), ("6", "call-arg")], done.stdout + done.stderr


@pytest.mark.spark
def test_wheel_sent_to_spark_workers(environment: Any, wheel: Path, tmp_path: Path) -> None:
    # addPyFile puts only what is called .zip, .egg or .jar on the workers' path, and a wheel is a zip.
    sent = shutil.copy(wheel, tmp_path / "uncombine.zip")
    environment.lend()
    rows = environment.script(SEND, sent, cwd=tmp_path)
    assert sorted(row[:2] for row in rows) == [["a", 6], ["b", 2]]
    assert all(sent.name in Path(place).parts for _, _, place in rows)


def test_version_is_said_once(wheel: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" not in project
    assert wheel.name.split("-")[1] == uc.__version__
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert changelog.partition("\n## ")[2].startswith(f"{uc.__version__}\n")
    stated = f"Format of stored state: {manifest.VERSION}. Format of stored accumulators: {codec.FORMAT}."
    assert stated in changelog.split("\n## ")[1]


def test_the_wheel_has_a_command_and_words_for_a_registry(wheel: Path) -> None:
    packed = zipfile.ZipFile(wheel)
    texts = {Path(name).name: packed.read(name).decode() for name in packed.namelist() if ".dist-info/" in name}
    assert "uncombine = uncombine.cli.command_line:main" in texts["entry_points.txt"]
    head = texts["METADATA"].partition("\n\n")[0]
    assert "Classifier: Typing :: Typed" in head
    assert "Keywords: " in head


def test_the_text_for_a_package_index_stands_alone(wheel: Path) -> None:
    """An index renders the text without the repository around it, so a link into the repository leads nowhere."""
    packed = zipfile.ZipFile(wheel)
    metadata = next(packed.read(name).decode() for name in packed.namelist() if name.endswith("/METADATA"))
    head, _, text = metadata.partition("\n\n")
    assert "Description-Content-Type: text/markdown" in head
    assert text == (ROOT / "docs" / "package.md").read_text(encoding="utf-8")
    page = MarkdownIt().enable("table").render(text)
    assert re.findall(r"<h1>(.*?)</h1>", page) == ["uncombine"]
    assert page.count("<pre>") * 2 == len(re.findall("^```", text, re.MULTILINE))
    assert page.count("<table>") == 1
    assert local_links(page) == []
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    table = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    assert {name for row in table for name in re.findall(r"`(\w+)`", row)} == extras - {"dev", "docs"}


def local_links(page: str) -> list[str]:
    """The links and pictures of a page of HTML that lead into the repository."""
    return [link for link in re.findall(r' (?:href|src)="([^"]*)"', page) if not link.startswith("https://")]


def test_a_link_into_the_repository_is_seen() -> None:
    page = MarkdownIt().render("[a](docs/a.md) ![b](b.png) [c](https://spark.apache.org)")
    assert local_links(page) == ["docs/a.md", "b.png"]
