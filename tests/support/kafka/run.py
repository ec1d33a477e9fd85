"""Run the tests that need a broker of Kafka, and the demo; where there can be none, say why: `make kafka`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from kafka_broker import why_not  # noqa: E402


def main(arguments: list[str]) -> int:
    """The exit code of the tests; 0 where there can be no broker."""
    if (reason := why_not()) is not None:
        print(f"make kafka does nothing: {reason}.")
        return 0
    command = [sys.executable, "-m", "pytest", "-m", "kafka and not soak", *arguments]
    if code := subprocess.run(command, cwd=ROOT).returncode:
        return code
    return subprocess.run([sys.executable, "-m", "uncombine.cli.command_line", "demo", "kafka"], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
