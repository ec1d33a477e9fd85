"""A room has few enough modules for a reader to take in at a glance."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from library import MODULES

MOST = 32


def test_no_folder_has_too_many_modules() -> None:
    folders: Counter[Path] = Counter(module.parent for module in MODULES)
    assert {str(folder): count for folder, count in folders.items() if count > MOST} == {}
