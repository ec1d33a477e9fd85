"""Runs a command several times beside busy loops, which end with this process, however it ends.

    python tests/support/busy.py --times 3 --loops 2 -- python -m pytest -n 2

Its exit status is 0 if that of every run was. `make busy` runs the suite so.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

LOOP = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    for _ in range(1_000_000):
        pass
"""
"""A loop that ends when its parent is another process than the one that started it."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=3, help="how often the command is run")
    parser.add_argument("--loops", type=int, default=2, help="how many busy loops run beside it")
    parser.add_argument("command", nargs="+", help="the command and its arguments, after --")
    given = parser.parse_args()
    loops = [subprocess.Popen([sys.executable, "-c", LOOP, str(os.getpid())]) for _ in range(given.loops)]
    failed = 0
    try:
        for run in range(1, given.times + 1):
            began = time.monotonic()
            status = subprocess.run(given.command, check=False).returncode
            failed += status != 0
            minutes = (time.monotonic() - began) / 60
            print(
                f"run {run} of {given.times} beside {given.loops} busy loops: exit status {status}, {minutes:.1f} min"
            )
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
