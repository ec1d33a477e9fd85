"""Every public name has an example, and every example in code and documents says what really comes out."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import types
from collections.abc import Iterator
from pathlib import Path

import pages
import pytest
from library import BELOW

import uncombine as uc

ROOT = Path(__file__).resolve().parents[2]
ROOMS = list(BELOW)
INSIDE = {"changelogs", "tables", "cli"}
"""Rooms of which users know only what other rooms export."""
FLAGS = pages.FLAGS
LIMITED = Path("docs/how-to/backfill.md")
"""The page whose examples need the limits of batches that Spark has since 4.2."""
EXPRESSIVE = {"docs/reference/batch.md", "uncombine.sparkops.stored.accumulator"}
"""The page and the module whose examples need the expressions of accumulators that Spark has since 4.1."""

# The package's root is the repo's root, where tests and benchmarks lie too, so the rooms are named.
ROOT_MODULES = ["uncombine"] + [
    f"uncombine.{file.stem}" for file in sorted(ROOT.glob("*.py")) if file.stem != "__init__"
]


BROKER = Path("docs/how-to/write_to_kafka.md")
"""A page whose examples need a broker of Kafka."""

LONG = Path("docs/how-to/check_laws.md")
"""A page whose examples take as long as many tests."""


def modules() -> Iterator[str]:
    yield from ROOT_MODULES
    for room in ROOMS:
        package = importlib.import_module(f"uncombine.{room}")
        yield package.__name__
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            yield found.name


def public() -> Iterator[tuple[str, object]]:
    """The classes and functions that the package and its rooms export."""
    seen = set()
    for name in ["uncombine", *(f"uncombine.{room}" for room in ROOMS if room not in INSIDE)]:
        module = importlib.import_module(name)
        for export in getattr(module, "__all__", ()):
            value = getattr(module, export)
            if (inspect.isclass(value) or inspect.isfunction(value)) and id(value) not in seen:
                seen.add(id(value))
                yield f"{value.__module__}.{value.__qualname__}", value


MODULES = list(modules())
PUBLIC = dict(public())
DOCUMENTS = [path.relative_to(ROOT) for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]]


def sessions(text: str) -> list[pytest.MarkDecorator]:
    """The mark of examples that start a session of Spark."""
    if "uc.session(" not in text:
        return []
    examples = [example.source for example in doctest.DocTestParser().get_examples(text)]
    examples += [example.code for example in pages.examples(text)]
    return [pytest.mark.spark] if "uc.session(" in "\n".join(examples) else []


def marks_of(path: Path) -> list[pytest.MarkDecorator]:
    """The README is run on each day, and a long page by `make full`."""
    needs = sessions((ROOT / path).read_text())
    if path == Path("README.md"):
        needs.append(pytest.mark.daily)
    if path == BROKER:
        needs.append(pytest.mark.skip("tests/kafka/test_write_page.py runs it, with a broker"))
    return [*needs, pytest.mark.full] if path == LONG else needs


def failures(tests: list[doctest.DocTest]) -> str:
    """Run examples; the report on those that fail."""
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    for test in tests:
        runner.run(test, out=report.append)
    return "".join(report)


def source_of(module: str) -> str:
    """The source of a module of the package, which is not imported for it."""
    place = ROOT.joinpath(*module.split(".")[1:])
    return (place / "__init__.py" if place.is_dir() else place.with_suffix(".py")).read_text(encoding="utf-8")


WITH_EXAMPLES = [name for name in MODULES if ">>>" in source_of(name)]
EXECUTED = [path for path in DOCUMENTS if "```python" in (ROOT / path).read_text(encoding="utf-8")]


def has_example(value: object) -> bool:
    return bool(doctest.DocTestParser().get_examples(inspect.getdoc(value) or ""))


def test_public_names_are_found() -> None:
    assert {uc.aggregate, uc.Sum, uc.Count} <= set(PUBLIC.values())


def test_every_module_can_be_imported() -> None:
    for name in MODULES:
        importlib.import_module(name)


def test_public_names_have_an_example() -> None:
    assert [name for name, value in PUBLIC.items() if not has_example(value)] == []


@pytest.fixture(autouse=True)
def session(request: pytest.FixtureRequest) -> None:
    """Examples on Spark run in the session of the other tests, whose Python workers start quickly."""
    if request.node.get_closest_marker("spark"):
        request.getfixturevalue("spark")


def _need_expressions(name: str) -> None:
    if name in EXPRESSIVE:
        from uncombine.sparkops.stored.column_expressions import EXPRESSIONS

        if not EXPRESSIONS:
            pytest.skip("needs Spark 4.1")


@pytest.mark.parametrize("name", [pytest.param(n, marks=sessions(source_of(n))) for n in WITH_EXAMPLES])
def test_examples_in_code(name: str) -> None:
    _need_expressions(name)
    module = importlib.import_module(name)
    if report := failures(doctest.DocTestFinder().find(module)):
        pytest.fail(report, pytrace=False)


@pytest.mark.parametrize("path", [pytest.param(path, marks=marks_of(path), id=str(path)) for path in EXECUTED])
def test_examples_in_documents(path: Path) -> None:
    """The examples of one page, in one namespace, read from top to bottom."""
    if path == LIMITED:
        from uncombine.sparkops.planners.data_source import LIMITS

        if not LIMITS:
            pytest.skip("needs Spark 4.2")
    _need_expressions(str(path))
    if found := pages.failures((ROOT / path).read_text(encoding="utf-8"), str(path)):
        pytest.fail("\n\n".join(found), pytrace=False)


def test_blocks_of_documents_can_be_copied_and_read() -> None:
    """They have no prompts, and lines that fit on a page."""
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in DOCUMENTS}
    assert {str(path): found for path, text in texts.items() if (found := pages.unfit(text))} == {}


def test_a_wrong_page_is_seen() -> None:
    page = "```python\nx = 1\nprint(x)\n```\n\n```text\n{}\n```\n\n```python\n{}\n```\n"
    assert pages.failures(page.format("1", "x + 1"), "page.md") == []
    [problem] = pages.failures(page.format("2", "x + 1"), "page.md")
    assert problem.startswith("page.md:2\n")
    [problem] = pages.failures(page.format("1", "y"), "page.md")
    assert "NameError: name 'y' is not defined" in problem


def test_a_wrong_example_is_seen() -> None:
    wrong = types.ModuleType("wrong")
    wrong.__doc__ = ">>> 1 + 1\n3\n"
    assert "Expected:\n    3\nGot:\n    2" in failures(doctest.DocTestFinder().find(wrong))


def test_a_missing_example_is_seen() -> None:
    def bare() -> None:
        """Say nothing."""

    assert not has_example(bare)
