from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    """Run a command; its output, or a failed test that shows what it said."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=clean | env, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.fail(f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}", pytrace=False)
    return done.stdout


class Environment:
    """An environment with uncombine's dependencies in it, and without uncombine until it is installed.

    The dependencies are the running environment's own, reached by a path entry. The `.pth` files of
    that place are not read then, so that its editable install of uncombine stays out of sight.
    """

    def __init__(self, place: Path) -> None:
        venv.create(place, with_pip=False, symlinks=True)
        self.python = place / "bin" / "python"
        self.site = Path(sysconfig.get_path("purelib", "venv", {"base": str(place), "platbase": str(place)}))

    def install(self, wheel: Path, cwd: Path) -> None:
        """Install before `lend`: pip must not see the other environment's uncombine."""
        run(
            sys.executable, "-m", "pip", "--python", self.python, "install", "--quiet",
            "--disable-pip-version-check", "--no-deps", "--no-index", wheel, cwd=cwd,
        )  # fmt: skip

    def lend(self) -> None:
        (self.site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def script(self, text: str, *arguments: str | Path, cwd: Path) -> Any:
        """Run a program in this environment; the value of the JSON on its last line."""
        source = cwd / "program.py"
        source.write_text(text)
        said = run(
            self.python, source, *arguments, cwd=cwd,
            PYSPARK_PYTHON=str(self.python), PYSPARK_DRIVER_PYTHON=str(self.python),
        )  # fmt: skip
        return json.loads(said.splitlines()[-1])


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "environment")


def build_config(place: Path) -> dict[str, str]:
    """The variable that keeps a build out of the source tree, where an older build's files may lie."""
    config = place / "setup.cfg"
    config.write_text(f"[build]\nbuild_base = {place / 'build'}\n[egg_info]\negg_base = {place}\n")
    return {"DIST_EXTRA_CONFIG": str(config)}


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, built once, offline."""
    place = tmp_path_factory.mktemp("wheel")
    run(
        sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps",
        "--no-build-isolation", "--wheel-dir", place, ROOT, cwd=place, **build_config(place),
    )  # fmt: skip
    (built,) = place.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def editable_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The result of `pip install -e`: a wheel that points back to this tree."""
    place = tmp_path_factory.mktemp("editable")
    script = f"from setuptools.build_meta import build_editable; build_editable({str(place)!r})"
    run(sys.executable, "-c", script, cwd=ROOT, **build_config(place))
    (built,) = place.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive of this tree."""
    place = tmp_path_factory.mktemp("archive")
    script = f"from setuptools.build_meta import build_sdist; build_sdist({str(place)!r})"
    run(sys.executable, "-c", script, cwd=ROOT, **build_config(place))
    (built,) = place.glob("*.tar.gz")
    return built
