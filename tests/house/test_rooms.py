"""A folder has few enough modules on its floor for a reader to take in at a glance."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from library import MODULES

MOST = 24

MORE = {"combiners": 32, "panes/grouping": 29}
"""Folders whose parts are alike, so that a reader looks for one of them by its name."""


def test_no_folder_has_too_many_modules() -> None:
    folders: Counter[Path] = Counter(module.parent for module in MODULES)
    many = {str(folder): count for folder, count in folders.items() if count > MORE.get(folder.as_posix(), MOST)}
    assert many == {}


def test_a_folder_may_have_more_only_as_long_as_it_needs_to() -> None:
    folders: Counter[str] = Counter(module.parent.as_posix() for module in MODULES)
    assert [folder for folder in MORE if folders[folder] <= MOST] == []
