"""The lowest versions that pyproject.toml promises, read from its bounds."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PROJECT = ROOT / "pyproject.toml"

_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[\w, -]+\])?\s*(.*)")


def lowest(text: str) -> dict[str, str]:
    """Each library that users get, with the lower bound of its version; the tools of `dev` and `docs` are left out.

    >>> lowest('[project]\\ndependencies = ["numpy>=2.0,<3"]')
    {'numpy': '2.0'}
    """
    project = tomllib.loads(text)["project"]
    extras = project.get("optional-dependencies", {})
    groups = [group for name, group in extras.items() if name not in ("dev", "docs")]
    needs = [*project["dependencies"], *(need for group in groups for need in group)]
    return dict(map(_bounded, needs))


def lowest_python(text: str) -> tuple[int, int]:
    """The oldest Python that is allowed.

    >>> lowest_python('[project]\\nrequires-python = ">=3.11"')
    (3, 11)
    """
    _, bound = _bounded("python " + tomllib.loads(text)["project"]["requires-python"])
    major, minor = bound.split(".")
    return int(major), int(minor)


def _bounded(need: str) -> tuple[str, str]:
    """The name and the lower bound of a requirement."""
    found = _REQUIREMENT.fullmatch(need)
    bounds = [] if found is None else [part.strip() for part in found[2].split(",")]
    lower = [part.removeprefix(">=").strip() for part in bounds if part.startswith(">=")]
    if found is None or len(lower) != 1:
        raise ValueError(f"{need!r} in pyproject.toml needs one lower bound such as '>=1.2'")
    return found[1], lower[0]
