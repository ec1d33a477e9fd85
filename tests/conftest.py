"""Shared by all tests: hypothesis profiles and the one Spark session."""

from __future__ import annotations

import gc
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import seeds
from class_archive import ClassArchive, place, quick_jvms
from hypothesis import HealthCheck, Phase, settings
from warm_python import warm_python

ROOT = Path(__file__).resolve().parents[1]

quick_jvms()

_SLOW_MACHINE = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile("ci", derandomize=True, deadline=None, max_examples=60, suppress_health_check=_SLOW_MACHINE)
settings.register_profile("dev", deadline=None, max_examples=100)
settings.register_profile(
    "soak", deadline=None, max_examples=5_000, print_blob=True, suppress_health_check=_SLOW_MACHINE
)
# An example that fails is enough: nobody reads it (tests/support/mutate.py).
settings.register_profile("found", settings.get_profile("ci"), phases=[Phase.explicit, Phase.generate])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


class _RootIsADirectory:
    """Keep pytest from importing the repo's root, the library itself, once more as a package of tests."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        return pytest.Dir.from_parent(parent, path=path) if path == ROOT else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--draw",
        action="store_true",
        help="run one of 28 of the tests that need Spark, and a seventh of those with examples of hypothesis and of "
        "those marked weekly, others each day, and those marked daily",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_RootIsADirectory())
    config.pluginmanager.register(seeds)
    # Programs and Spark's workers import the same helpers as the tests.
    folders = [str(ROOT / folder) for folder in config.getini("pythonpath")]
    os.environ["PYTHONPATH"] = os.pathsep.join([*folders, *filter(None, [os.environ.get("PYTHONPATH")])])
    # Without credentials Arrow would ask the cloud that the tests run in.
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"


_FOLDER = pytest.StashKey[str]()
"""The file in which a process that runs items notes those that need Spark, for the process that shares items out."""


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    if _FOLDER not in node.config.stash:
        node.config.stash[_FOLDER] = tempfile.mkdtemp(prefix="uncombine-items-")
    node.workerinput["items"] = node.config.stash[_FOLDER]


def pytest_unconfigure(config: pytest.Config) -> None:
    if (folder := config.stash.get(_FOLDER, None)) is not None:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Of several processes only one runs what needs the shared session, so that one is started; each of `make full`.

    It begins with these items, because they take longest. Programs with sessions of their own go to the other process,
    file by file: when the class archive is there, else last. Short items at the end leave neither process idle.
    """
    from xdist.scheduler import LoadScopeScheduling

    class OneSpark(LoadScopeScheduling):
        @cached_property
        def _scopes(self) -> dict[str, str]:
            files = (json.loads(file.read_text()) for file in Path(config.stash[_FOLDER]).iterdir())
            return dict(chain.from_iterable(found.items() for found in files))

        def _split_scope(self, nodeid: str) -> str:
            return self._scopes.get(nodeid) or str(super()._split_scope(nodeid))

        def _assign_work_unit(self, node: Any) -> None:
            archive = place()
            late = archive is None or not archive.exists()
            for scope in [scope for scope in self.workqueue if scope.startswith(_PROGRAM)]:
                self.workqueue.move_to_end(scope, last=late)
            for scope in [scope for scope in self.workqueue if scope.startswith(_SHARED)]:
                self.workqueue.move_to_end(scope, last=False)
            super()._assign_work_unit(node)

    return OneSpark(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect millions of objects that live as long as the run, and let no search for garbage go through them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if " at 0x" in item.nodeid:
            raise pytest.UsageError(f"{item.nodeid} has an address, so that processes cannot share it: give ids=")
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
        if "broker" in getattr(item, "fixturenames", ()):
            item.add_marker("kafka")
        marks = {mark.name for mark in item.iter_markers()}
        if config.option.draw and "spark" in marks and not marks & {"daily", "soak", "kafka"}:
            if seeds.has_seed(item):
                item.add_marker("full" if seeds.is_drawn(item.nodeid, seeds.SUITE_DAYS) else "soak")
                continue
            if not seeds.is_drawn(item.nodeid, seeds.FULL_DAYS):
                item.add_marker("soak")
                continue
        days = _days(item, marks) if config.option.draw else 1
        if days > 1 and not seeds.is_drawn(item.nodeid, days):
            item.add_marker("full")
    if "kafka" not in config.option.markexpr:
        left = [item for item in items if item.get_closest_marker("kafka")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("kafka")]
    if (worker := getattr(config, "workerinput", None)) is not None:
        scopes = {item.nodeid: _scope_of(item) for item in items if item.get_closest_marker("spark")}
        Path(worker["items"], worker["workerid"]).write_text(json.dumps(scopes))


def _days(item: pytest.Item, marks: set[str]) -> int:
    """An item is drawn on one of so many days."""
    if marks & {"daily", "soak", "kafka"}:
        return 1
    if "spark" in marks:
        return seeds.SPARK_DAYS
    examples = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return seeds.DAYS if examples or "weekly" in marks else 1


def pytest_collection_finish(session: pytest.Session) -> None:
    config = session.config
    worker = getattr(config, "workerinput", {"workerid": "gw0"})
    wanted = any(item.get_closest_marker("spark") for item in session.items) and not config.option.collectonly
    if wanted and (archive := place()) is not None:
        # A run of a few tests on Spark saves less than the archive costs.
        makes = worker["workerid"] == "gw0" and (_is_full(config) or not config.option.draw)
        config.pluginmanager.register(ClassArchive(archive, makes=makes))


def _is_full(config: pytest.Config) -> bool:
    """True if the run has the tests that are left to `make full`, which are mostly on Spark."""
    return "full" in config.option.markexpr.replace("not full", "")


_SHARED, _PROGRAM = "the shared session", "programs of "
"""The scopes of items that need Spark begin so."""


def _scope_of(item: pytest.Item) -> str:
    """The scope of an item that needs Spark: examples and items with the fixture `spark` share a session.

    Where most items need one, each process has a session, and takes them file by file.
    """
    file = item.nodeid.partition("::")[0]
    if "spark" in getattr(item, "fixturenames", ()) or "test_doctests.py" in file:
        return f"{_SHARED}: {file}" if _is_full(item.config) else _SHARED
    return _PROGRAM + file


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One broker of Kafka for the whole run."""
    from kafka_broker import Broker, why_not

    if (reason := why_not()) is not None:
        pytest.skip(reason)
    broker = Broker(tmp_path_factory.mktemp("kafka"))
    broker.start()
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def python() -> Iterator[Path]:
    """A program for `PYSPARK_PYTHON` that has imported the library already."""
    with tempfile.TemporaryDirectory(prefix="uncombine-python-") as folder, warm_python(Path(folder)) as program:
        yield program


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, python: Path) -> Iterator[Any]:
    """One Spark session for the whole run: starting one takes longer than most tests."""
    import uncombine as uc

    home = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={home}",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.local.dir": str(home / "scratch"),
    }
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYSPARK_PYTHON", str(python))
            session = uc.session("uncombine tests", cores=2, settings=settings)
    except uc.UncombineError as error:
        pytest.fail(str(error), pytrace=False)
    yield session
    session.stop()
