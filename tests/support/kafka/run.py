"""Run the tests that need a broker of Kafka, and the demo; where there can be none, say why: `make kafka`.

python tests/support/kafka/run.py          # make kafka
python tests/support/kafka/run.py --soak   # a part of make soak: many kills, and many messages
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from kafka_broker import why_not  # noqa: E402


def main(arguments: list[str]) -> int:
    """The exit code of the tests; 0 where there can be no broker."""
    long = "--soak" in arguments
    arguments = [one for one in arguments if one != "--soak"]
    if (reason := why_not()) is not None:
        print(f"make {'soak' if long else 'kafka'} does nothing with Kafka: {reason}.")
        return 0
    marks = "kafka and soak" if long else "kafka and not soak"
    command = [sys.executable, "-m", "pytest", "-m", marks, *arguments]
    if (code := subprocess.run(command, cwd=ROOT).returncode) or long:
        return code
    return subprocess.run([sys.executable, "-m", "uncombine.cli.command_line", "demo", "kafka"], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
