"""What all tests share: hypothesis profiles and the one Spark session."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]

_SLOW_MACHINE = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile("ci", derandomize=True, deadline=None, max_examples=60, suppress_health_check=_SLOW_MACHINE)
settings.register_profile("dev", deadline=None, max_examples=100)
settings.register_profile(
    "soak", deadline=None, max_examples=5_000, print_blob=True, suppress_health_check=_SLOW_MACHINE
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


class _RootIsADirectory:
    """Keep pytest from importing the repo's root, the library itself, once more as a package of tests."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        return pytest.Dir.from_parent(parent, path=path) if path == ROOT else None


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_RootIsADirectory())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")


@pytest.fixture(scope="session")
def java() -> Path:
    """The Java that Spark will start; without a fitting one the test fails in one sentence."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if found is None:
        pytest.fail("Spark needs Java 17 or newer, and none is on PATH or in JAVA_HOME.", pytrace=False)
    text = subprocess.run([found, "-version"], capture_output=True, text=True, check=True).stderr
    version = text.split('"')[1]
    if int(version.split(".")[0]) < 17:
        pytest.fail(f"Spark needs Java 17 or newer, and {found} is {version}.", pytrace=False)
    return Path(found)


@pytest.fixture(scope="session")
def spark(java: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One Spark session for the whole run: starting one takes longer than most tests."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    home = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("uncombine tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={home}")
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
