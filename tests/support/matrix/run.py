"""Builds an environment of the lowest and one of the newest versions allowed, and runs the suite's quick part in both.

    python tests/support/matrix/run.py                     # lowest and newest
    python tests/support/matrix/run.py lowest              # one of them
    python tests/support/matrix/run.py pyspark==4.2.1      # the newest of all else
    python tests/support/matrix/run.py "pyspark==4.0.*" --topics   # what needs a broker of Kafka, and that alone

The last lines are a table for docs/versions.md. Logs and environments are under out/matrix/.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[1]))

from matrix.pins import PROJECT, ROOT, lowest, lowest_python

OUT = ROOT / "out" / "matrix"
LIBRARIES = (
    *("pyspark", "pandas", "pyarrow", "numpy", "protobuf", "hypothesis", "matplotlib"),
    *("rich", "polars", "shtab", "duckdb", "adbc-driver-postgresql", "deltalake", "pyiceberg"),
    *("prometheus_client", "opentelemetry-api", "confluent-kafka"),
)
QUICK = [
    *("tests/combiners", "tests/windows", "tests/triggers", "tests/panes", "tests/sparkops"),
    *("tests/house/test_doctests.py", "tests/cli/test_demo.py"),
]
"""Everything that the versions can change; what looks at the source alone is left out."""
TOPICS = ["tests/kafka", "tests/sparkops/topics", "tests/sparkops/tables/test_to_kafka.py"]

PIP = ("-m", "pip", "--disable-pip-version-check")

ASK = (
    "import json, platform, sys; from importlib.metadata import version; "
    "print(json.dumps([platform.python_version(), *map(version, sys.argv[1:])]))"
)


@dataclass(frozen=True)
class Result:
    """The report of the suite in one environment."""

    name: str
    versions: tuple[str, ...]
    """Of Python, and of each of `LIBRARIES`."""
    passed: int
    failed: int
    skipped: int


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environments", nargs="*", help="lowest, newest, or a requirement such as pyspark==4.2.1")
    parser.add_argument("--tests", nargs="*", default=QUICK, help="which tests; the quick part unless given")
    parser.add_argument("--topics", action="store_true", help="run what needs a broker of Kafka, and nothing else")
    given = parser.parse_args()
    tests, marks = (TOPICS, "kafka and not soak") if given.topics else (given.tests, "not soak")
    results = []
    for name in given.environments or ["lowest", "newest"]:
        home = OUT / name
        build(home, python(name), constraints(name, PROJECT.read_text()))
        results.append(run(name, home, tests, marks))
    print(table(results))
    return int(any(result.failed or not result.passed for result in results))


def constraints(name: str, project: str) -> list[str]:
    """The versions that pip is held to in an environment."""
    if name == "newest":
        return []
    if name == "lowest":
        return [f"{library}=={version}" for library, version in lowest(project).items()]
    return [name]


def python(name: str) -> str:
    """The interpreter of an environment: the oldest allowed for the lowest versions, else the newest on PATH."""
    major, oldest = lowest_python(PROJECT.read_text())
    minors = [oldest] if name == "lowest" else range(oldest + 20, oldest - 1, -1)
    for command in (f"python{major}.{minor}" for minor in minors):
        # What is on PATH may only stand for an interpreter that is not installed.
        if shutil.which(command) and subprocess.run([command, "--version"], capture_output=True).returncode == 0:
            return command
    raise SystemExit(f"There is no python{major}.{minors[-1]} on PATH: install it.")


def build(home: Path, interpreter: str, held: list[str]) -> None:
    """The environment, with the library, its extras and the tools, each as new as it may be at this moment."""
    print(f"{home.relative_to(ROOT)}: {interpreter}, {', '.join(held) or 'the newest of all'}", flush=True)
    own = home / "bin" / "python"
    if not own.exists():
        subprocess.run([interpreter, "-m", "venv", "--clear", "--without-pip", home], check=True)
        subprocess.run([sys.executable, *PIP, "--python", own, "install", "--quiet", "pip"], check=True)
    (home / "constraints.txt").write_text("".join(f"{line}\n" for line in held))
    newest = ["--upgrade", "--upgrade-strategy", "eager", "--constraint", home / "constraints.txt"]
    subprocess.run([own, *PIP, "install", "--quiet", *newest, "--editable", f"{ROOT}[dev]"], check=True)


def run(name: str, home: Path, tests: list[str], marks: str) -> Result:
    """The tests in an environment."""
    told = subprocess.run([home / "bin" / "python", "-c", ASK, *LIBRARIES], capture_output=True, check=True)
    report = home / "report.xml"
    command = [home / "bin" / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2"]
    command += ["-m", marks, f"--junit-xml={report}", *tests]
    with open(home / "log", "w") as log:
        ended = subprocess.run(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, check=False)
    if ended.returncode not in (0, 1):
        raise SystemExit(f"pytest did not come to its end in {name}: see {log.name}.")
    return counted(name, tuple(json.loads(told.stdout)), report.read_text())


def counted(name: str, versions: tuple[str, ...], report: str) -> Result:
    """The figures of a JUnit report."""
    suites = list(ET.fromstring(report).iter("testsuite"))

    def total(*keys: str) -> int:
        return sum(int(suite.get(key, 0)) for suite in suites for key in keys)

    failed, skipped = total("failures", "errors"), total("skipped")
    return Result(name, versions, total("tests") - failed - skipped, failed, skipped)


def table(results: list[Result]) -> str:
    """The figures as a table for the docs."""
    head = ["versions", "Python", *LIBRARIES, "passed", "failed", "skipped"]
    rows = [[r.name, *r.versions, f"{r.passed:,}", f"{r.failed:,}", f"{r.skipped:,}"] for r in results]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


if __name__ == "__main__":
    sys.exit(main())
