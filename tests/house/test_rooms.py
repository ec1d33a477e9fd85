"""A folder has one idea, which its docstring says, and few enough modules to take in at a glance."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
from library import MODULES, ROOT

import uncombine as uc

MOST = 24

MORE = {"combiners": 32, "panes/grouping": 30}
"""Folders whose parts are alike, so that a reader looks for one of them by its name."""


def test_no_folder_has_too_many_modules() -> None:
    folders: Counter[Path] = Counter(module.parent for module in MODULES)
    many = {str(folder): count for folder, count in folders.items() if count > MORE.get(folder.as_posix(), MOST)}
    assert many == {}


def test_a_folder_may_have_more_only_as_long_as_it_needs_to() -> None:
    folders: Counter[str] = Counter(module.parent.as_posix() for module in MODULES)
    assert [folder for folder in MORE if folders[folder] <= MOST] == []


def test_a_folder_says_its_one_idea_in_one_sentence() -> None:
    faces = [module for module in MODULES if module.stem == "__init__"]
    said = {face: (ast.get_docstring(ast.parse((ROOT / face).read_text())) or "").split("\n\n")[0] for face in faces}
    assert {str(face): found for face, sentence in said.items() if (found := faults(sentence))} == {}


def faults(said: str) -> list[str]:
    """The faults of the first paragraph of a folder's docstring."""
    words = said.split()
    none, two = not words, said.rstrip(".").count(". ") > 0 or not said.endswith(".")
    return ["says nothing"] * none + ["is not one sentence"] * two + ["has two ideas"] * ("and" in words)


@pytest.mark.parametrize("said", ["", "Rows and keys.", "Rows. Keys.", "Rows"])
def test_a_folder_of_two_ideas_is_seen(said: str) -> None:
    assert faults(said) != []


def test_no_module_has_the_name_of_a_public_function() -> None:
    """Importing it would put the module in the place of the function."""
    tops = {module.parts[0].removesuffix(".py") for module in MODULES}
    assert {
        name for name in tops & {*uc.__all__, *uc.ON_SPARK} if not isinstance(getattr(uc, name), ModuleType)
    } == set()
