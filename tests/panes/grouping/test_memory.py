"""Memory that is kept between steps: its pages are not got from the system again."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

STEPS = """
import resource, sys
import numpy as np
from uncombine.sparkops.tuning.malloc import keep_memory
if sys.argv[1] == "keep":
    keep_memory()
    keep_memory()
def step():
    held = [np.ones(250_000) for _ in range(40)]
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
step(), step()
before = faults()
for _ in range(5):
    step()
print(faults() - before)
"""


def faults(how: str) -> int:
    ran = subprocess.run([sys.executable, "-c", STEPS, how], capture_output=True, text=True, check=True)
    return int(ran.stdout)


@pytest.mark.full
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has the setting")
def test_steps_find_the_pages_of_the_one_before() -> None:
    pages_of_a_step = 40 * 250_000 * 8 // 4096
    assert faults("keep") < pages_of_a_step < faults("give back")
