"""Workers sort without the kernels of numpy that are slow on their processor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from uncombine.sparkops.tuning import numpy_kernels
from uncombine.sparkops.tuning.numpy_kernels import VARIABLE, without_slow_sort

SETTING = f"spark.executorEnv.{VARIABLE}"

ZEN_4 = """processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 17
model name\t: AMD EPYC
flags\t\t: fpu avx avx2 avx512f avx512dq

processor\t: 1
vendor_id\t: AuthenticAMD
"""


@pytest.fixture
def chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The settings for a processor of this description."""
    monkeypatch.delenv(VARIABLE, raising=False)

    def of(text: str) -> dict[str, str]:
        (tmp_path / "cpuinfo").write_text(text)
        monkeypatch.setattr(numpy_kernels, "_PROCESSORS", tmp_path / "cpuinfo")
        return dict(without_slow_sort())

    return of


def features(names: str) -> dict[str, bool]:
    """The features that numpy uses in a new process, where a warning is an error."""
    shown = "from numpy._core._multiarray_umath import __cpu_features__ as f; print({k: bool(v) for k, v in f.items()})"
    env = {**os.environ, VARIABLE: names}
    ran = subprocess.run([sys.executable, "-W", "error", "-c", shown], env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return eval(ran.stdout)


def test_zen_4_does_without_avx_512_and_keeps_the_rest(chosen) -> None:
    names = chosen(ZEN_4).get(SETTING)
    assert names is not None
    without, whole = features(names), features("")
    gone = {name for name in whole if whole[name] and not without[name]}
    assert all(name == "X86_V4" or name.startswith("AVX512") for name in gone)
    assert not any(without[name] for name in names.split())
    assert not without.get("X86_V4", False)
    assert without.get("AVX2", False) == whole.get("AVX2", False)


@pytest.mark.parametrize(
    "other",
    [
        ZEN_4.replace("25", "26"),  # Zen 5
        ZEN_4.replace(" avx512f avx512dq", ""),  # Zen 3
        ZEN_4.replace("AuthenticAMD", "GenuineIntel"),
        "processor\t: 0\nBogoMIPS\t: 2100.00\nFeatures\t: fp asimd evtstrm\n",
        "",
    ],
)
def test_other_processors_use_all(chosen, other: str) -> None:
    assert chosen(ZEN_4)
    assert chosen(other) == {}


def test_a_system_without_the_file_uses_all(chosen, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(ZEN_4)
    monkeypatch.setattr(numpy_kernels, "_PROCESSORS", Path("/proc/there-is-no-such-file"))
    assert without_slow_sort() == {}


def test_the_choice_of_the_user_holds(chosen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "")
    assert chosen(ZEN_4) == {}


def test_workers_of_a_session_have_it(spark: SparkSession) -> None:
    def which(batches):
        import os

        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"names": [os.environ.get("NPY_DISABLE_CPU_FEATURES")]})

    names = spark.range(1, numPartitions=1).mapInArrow(which, "names string").first().names
    assert names == os.environ.get(VARIABLE, without_slow_sort().get(SETTING))
