"""The class archive of the JVMs that tests start: it is used where it fits, is silent, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import class_archive
import pytest
from apps import members
from class_archive import QUICK_JVM, SPARK, ClassArchive, Maker, unfinished, with_archive

pytestmark = pytest.mark.full

MAPPED, LOADED = "source: shared objects file (top)", "source: file:"
"""Java's log of a class from such an archive, and of one from a jar."""

SESSION = "import uncombine as uc; spark = uc.session(cores=1); print(spark.range(3).count()); spark.stop()"


@pytest.fixture
def as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in SPARK:
        monkeypatch.setenv(variable, QUICK_JVM)


def test_jvms_use_the_archive_once_it_is_there(as_it_was: None, tmp_path: Path) -> None:
    plugin = ClassArchive(tmp_path / "some.jsa", makes=False)
    plugin.pytest_runtest_setup()
    assert os.environ["SPARK_SUBMIT_OPTS"] == QUICK_JVM
    plugin.path.touch()
    plugin.pytest_runtest_setup()
    assert os.environ["SPARK_SUBMIT_OPTS"] == with_archive(plugin.path)


def test_options_of_the_user_stay(as_it_was: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Xss4m")
    class_archive.quick_jvms()
    plugin = ClassArchive(tmp_path / "some.jsa", makes=False)
    plugin.path.touch()
    plugin.pytest_runtest_setup()
    assert os.environ["SPARK_SUBMIT_OPTS"] == "-Xss4m"


@pytest.mark.parametrize("suffix", [".jsa", ".none"])
def test_an_archive_is_made_at_most_once(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / "some.jsa"
    path.with_suffix(suffix).touch()
    assert ClassArchive(path, makes=True).maker is None


def test_without_java_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert class_archive.place.__wrapped__() is None


def java(*options: str) -> subprocess.CompletedProcess[str]:
    home = os.environ.get("JAVA_HOME")
    command = [str(Path(home) / "bin" / "java") if home else "java", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.spark
@pytest.mark.parametrize("content", [None, b"", b"no archive" * 1000])
def test_an_archive_that_does_not_fit_changes_nothing(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "some.jsa"
    if content is not None:
        path.write_bytes(content)
    want, got = java("-version"), java(*with_archive(path).split(), "-version")
    assert (got.returncode, got.stdout) == (0, "")
    assert len(got.stderr.splitlines()) == len(want.stderr.splitlines())


@contextmanager
def making(path: Path) -> Iterator[Maker]:
    """A process that makes an archive and has started its JVM."""
    maker = Maker(path)
    try:
        while len(members(maker.process.pid)) < 2:
            assert maker.process.poll() is None, path.with_suffix(".log").read_text()
        yield maker
    finally:
        maker.end(0)


@pytest.mark.spark
def test_a_run_that_is_interrupted_leaves_no_process(tmp_path: Path) -> None:
    with making(tmp_path / "some.jsa") as maker:
        plugin = ClassArchive(maker.path, makes=False)
        plugin.maker = maker
        plugin.pytest_sessionfinish(pytest.ExitCode.INTERRUPTED)
    assert_gone(maker)


@pytest.mark.spark
def test_a_run_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    with making(tmp_path / "some.jsa") as maker:
        assert maker.process.stdin is not None
        maker.process.stdin.close()
        assert maker.process.wait() == -signal.SIGKILL
        assert_gone(maker)


def assert_gone(maker: Maker) -> None:
    while members(maker.process.pid):  # a JVM that was killed takes a moment to end
        pass
    assert not unfinished(maker.path, maker.process.pid).exists()
    assert not maker.path.exists()


@pytest.mark.spark
@pytest.mark.soak
def test_sessions_load_their_classes_from_it(tmp_path: Path) -> None:
    maker = Maker(tmp_path / "some.jsa")
    maker.end(600)
    assert maker.path.exists(), maker.path.with_suffix(".log").read_text()
    log = tmp_path / "log"
    options = f"{QUICK_JVM} -XX:SharedArchiveFile={maker.path} -Xlog:class+load:file={log}"
    done = subprocess.run(
        [sys.executable, "-c", SESSION],
        env=os.environ | {"SPARK_SUBMIT_OPTS": options},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "3"
    lines = [line for line in log.read_text().splitlines() if "org.apache.spark" in line]
    mapped, loaded = (sum(source in line for line in lines) for source in (MAPPED, LOADED))
    assert mapped > max(1_000, 5 * loaded)
