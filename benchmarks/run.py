"""Measures suites and prints their tables: `python benchmarks/run.py [combiners] [panes] [--write]`.

Every row is a ratio of two things measured in turn in the same run. With --write the tables go into README.md.
"""

from __future__ import annotations

import importlib
import platform
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SUITES = ("combiners", "panes")
sys.path.insert(0, str(HERE))

from harness import one_thread, table  # noqa: E402


def main(arguments: list[str]) -> None:
    """Run the suites named, or all of them."""
    chosen = [name for name in arguments if not name.startswith("-")] or list(SUITES)
    unknown = [name for name in chosen if name not in SUITES]
    if unknown:
        raise SystemExit(f"there is no suite {unknown[0]!r}: choose among {', '.join(SUITES)}")
    one_thread()
    for name in chosen:
        if not (HERE / f"{name}.py").exists():
            continue
        lines = []
        print(f"\n{name} (one thread of {platform.machine()}, Python {platform.python_version()})\n", flush=True)
        for line in table(importlib.import_module(name).rows()):
            lines.append(line)
            print(line, flush=True)
        if "--write" in arguments:
            _write(name, lines)


def _write(name: str, lines: list[str]) -> None:
    path = HERE / "README.md"
    text = path.read_text()
    part = re.compile(rf"(<!-- measured: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not part.search(text):
        raise SystemExit(
            f"benchmarks/README.md has no place for {name}: add <!-- measured: {name} --> and <!-- end -->"
        )
    path.write_text(part.sub(lambda found: found[1] + "\n".join(lines) + "\n" + found[2], text))


if __name__ == "__main__":
    main(sys.argv[1:])
