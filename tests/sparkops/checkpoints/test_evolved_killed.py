"""A change of a query that is killed at any moment: the former checkpoint is as it was, and no half seed starts."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from evolved_queries import FIRST, THEN, expected, flow, put, run
from programs import program
from pyspark.sql import SparkSession

import uncombine as uc
from uncombine.errors import StateMismatch


def killed(folder: Path, url: str, r: random.Random) -> str:
    """Run the program until some moment of the change; the last word that it said."""
    command = [sys.executable, program("evolving"), str(folder), url]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    said = ["", ""]
    assert process.stdout is not None

    def read() -> None:
        said.extend(line.strip() for line in process.stdout)  # type: ignore[union-attr]

    reader = threading.Thread(target=read)
    reader.start()
    while "ready" not in said and process.poll() is None:
        time.sleep(0.05)
    end = time.monotonic() + r.random() * 14
    while time.monotonic() < end and process.poll() is None:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    reader.join()
    return said[-1]


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(7))
def test_a_change_that_is_killed_is_made_later(seed: int, url: str, spark: SparkSession, tmp_path: Path) -> None:
    r = random.Random(seed)
    put(tmp_path / "in", "a", FIRST)
    before, now = {"n": uc.Count()}, {"n": uc.Count(), "total": uc.Sum("x")}
    old = flow(spark, tmp_path, **before)
    run(old, url, tmp_path, "old")
    put(tmp_path / "in", "b", THEN)
    run(old, url, tmp_path, "old")
    put(tmp_path / "in", "c", [(81, "e", 5)])
    shutil.copytree(tmp_path / "old", tmp_path / "copy")
    for _ in range(3):
        word = killed(tmp_path, url, r)
        changed = flow(spark, tmp_path, **now)
        if not (tmp_path / "new" / "seed" / "seed.json").exists():
            assert word == "ready"
            if (tmp_path / "new").exists():
                with pytest.raises(StateMismatch, match="was begun by evolve"):
                    changed.to_table(url, checkpoint=tmp_path / "new")
            shutil.rmtree(tmp_path / "new", ignore_errors=True)
            assert uc.checkpoint(tmp_path / "old", spark=spark).steps[0].rows == {"windows": 7}
    if not (tmp_path / "new").exists():
        uc.evolve(tmp_path / "old", changed, to=tmp_path / "new", history=str(tmp_path / "in"))
    assert run(changed, url, tmp_path, "new") == expected(tmp_path, **now)
    same = [path.relative_to(tmp_path / "old") for path in (tmp_path / "old").rglob("*") if path.is_file()]
    assert all((tmp_path / "copy" / one).read_bytes() == (tmp_path / "old" / one).read_bytes() for one in same)
