"""The build of the package, with the README as a package index shows it.

An index renders the README alone, so a picture or a link into the repository would lead nowhere there.
The text for it has plain words in their place; it is made from the README whenever the package is built.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import get_requires_for_build_editable as get_requires_for_build_editable
from setuptools.build_meta import get_requires_for_build_sdist as get_requires_for_build_sdist
from setuptools.build_meta import get_requires_for_build_wheel as get_requires_for_build_wheel

ROOT = Path(__file__).resolve().parents[1]
TEXT = ROOT / "out" / "registry.md"
WHERE = "\nThe pages, pictures and notebooks that this text names are in the repository.\n"


def alone(text: str) -> str:
    """A page without its pictures, and with links to addresses only."""
    text = re.sub(r"^!\[[^\]]*\]\((?!\w+:)[^)]*\)\n\n?", "", text, flags=re.MULTILINE)
    return re.sub(r"(?<!!)\[([^\]]+)\]\((?!\w+:)[^)]*\)", r"\1", text) + WHERE


def with_text(hook: Callable[..., str]) -> Callable[..., str]:
    """A hook of setuptools that finds the text where `pyproject.toml` says."""

    def called(*args: Any, **settings: Any) -> str:
        TEXT.parent.mkdir(exist_ok=True)
        TEXT.write_text(alone((ROOT / "README.md").read_text(encoding="utf-8")), encoding="utf-8")
        return hook(*args, **settings)

    return called


build_wheel = with_text(build_meta.build_wheel)
build_sdist = with_text(build_meta.build_sdist)
build_editable = with_text(build_meta.build_editable)
prepare_metadata_for_build_wheel = with_text(build_meta.prepare_metadata_for_build_wheel)
prepare_metadata_for_build_editable = with_text(build_meta.prepare_metadata_for_build_editable)
