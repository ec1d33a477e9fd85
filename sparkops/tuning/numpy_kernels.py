"""The kernels of numpy that workers do without, on a processor where numpy sorts slowly with them.

Guarded by tests/sparkops/tuning/test_numpy_kernels.py.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "NPY_DISABLE_CPU_FEATURES"
"""The environment variable that numpy reads when it is imported."""

_PROCESSORS = Path("/proc/cpuinfo")


def without_slow_sort() -> Mapping[str, str]:
    """The Spark setting with which workers sort fast: none if they do so by themselves, or if the user has chosen.

    numpy sorts with a store of AVX-512 that takes a hundred cycles on AMD's Zen 4: two million numbers take 110 ms, and
    20 ms with AVX2. Logarithms and powers are three times as slow without AVX-512, which is far less time.
    """
    if VARIABLE in os.environ or not _is_zen_4(_first_processor()):
        return {}
    return {f"spark.executorEnv.{VARIABLE}": " ".join(_avx_512())}


def _avx_512() -> list[str]:
    """The sets of instructions of AVX-512 for which this numpy has kernels, by its own names."""
    sets = getattr(importlib.import_module("numpy._core._multiarray_umath"), "__cpu_dispatch__", [])
    return [name for name in sets if name == "X86_V4" or name.startswith("AVX512")]


def _first_processor() -> dict[str, str]:
    """Linux's description of the first processor; empty elsewhere."""
    if not _PROCESSORS.is_file():
        return {}
    first = _PROCESSORS.read_text().partition("\n\n")[0]
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in first.splitlines())}


def _is_zen_4(processor: Mapping[str, str]) -> bool:
    """True for Zen 4, the only processors of AMD's family 25 that have AVX-512.

    >>> _is_zen_4({"vendor_id": "AuthenticAMD", "cpu family": "25", "flags": "avx2 avx512f"})
    True
    >>> _is_zen_4({"vendor_id": "AuthenticAMD", "cpu family": "26", "flags": "avx2 avx512f"})
    False
    """
    made = processor.get("vendor_id"), processor.get("cpu family")
    return made == ("AuthenticAMD", "25") and "avx512f" in processor.get("flags", "").split()
