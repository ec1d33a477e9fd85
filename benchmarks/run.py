"""Measures suites and prints their tables: `python benchmarks/run.py [combiners] [panes] [joins] ... [--write]`.

A suite is a module beside this one whose function `rows` yields what it measured, each row a ratio of two things
done in turn in the same run. With --write the tables go into measured/, and what README.md asks for into it.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
SUITES = {
    "combiners": True,
    "panes": True,
    "joins": True,
    "rollings": False,
    "rolling_spark": False,
    "spark": False,
    "udfs": False,
    "streams": False,
    "stream_steps": False,
    "tables": False,
    "topics": False,
    "seeds": False,
    "nexmark_queries": False,
    "scaling": False,
    "world": False,
}
"""True for a suite that runs on one pinned thread; Spark takes two cores."""
sys.path.insert(0, str(HERE))

import report  # noqa: E402
from harness import one_thread, table  # noqa: E402

from uncombine.sparkops.tuning.numpy_kernels import VARIABLE, without_slow_sort  # noqa: E402


def main() -> None:
    """Run the named suites, or those without Spark."""
    parser = argparse.ArgumentParser(description="Measure, in ratios.")
    parser.add_argument(
        "suites", nargs="*", metavar="suite", help=f"one of {', '.join(SUITES)}; without a name, those without Spark"
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="put the tables into benchmarks/measured, and into README.md what it asks for",
    )
    chosen = parser.parse_args()
    unknown = [name for name in chosen.suites if name not in SUITES]
    if unknown:
        parser.error(f"there is no suite {unknown[0]!r}: choose among {', '.join(SUITES)}")
    suites = chosen.suites or [name for name, pinned in SUITES.items() if pinned]
    if any(SUITES[name] for name in suites):
        _as_workers()
    for name in suites:
        if SUITES[name]:
            one_thread()
        place = "one thread" if SUITES[name] else "two cores"
        lines = [f"Measured with {_versions()}, {place} of {platform.machine()}.", ""]
        print(f"\n# {name}\n\n{lines[0]}\n", flush=True)
        for line in table(importlib.import_module(name).rows()):
            lines.append(line)
            print(line, flush=True)
        if chosen.write:
            _write(name, lines)


def _as_workers() -> None:
    """Start again with the kernels of numpy that workers have: numpy chooses them when it is imported."""
    if given := {name.removeprefix("spark.executorEnv."): value for name, value in without_slow_sort().items()}:
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **given})


def _versions() -> str:
    libraries = [f"{name} {version(name)}" for name in ("numpy", "pandas", "pyarrow", "pyspark")]
    kernels = [f"numpy without {without}"] if (without := os.environ.get(VARIABLE)) else []
    return ", ".join([f"Python {platform.python_version()}", *libraries, *kernels])


def _write(name: str, lines: list[str]) -> None:
    title = importlib.import_module(name).TITLE
    (report.MEASURED / f"{name}.md").write_text("\n".join([f"# {title}", "", *lines, ""]))
    report.main()


if __name__ == "__main__":
    main()
