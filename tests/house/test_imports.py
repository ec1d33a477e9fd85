"""Rules for modules: the imports that are allowed, the libraries that a bare import loads, and the length."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from functools import cache
from itertools import chain
from pathlib import Path

import pytest
from library import BELOW, MODULES, ROOT, imported, imports_of, source_of

SHARED = {"advice", "errors", "urls"}

FACE = "uncombine"

# Modules of one class that users read from top to bottom, which may be longer than others.
READ_BY_USERS = {"flows/flow.py"}

# Rooms that are written as programs of users are: they may import the face of the package.
USERS = {"cli"}

# Folders beside the package for maintainers; the package works without them.
BESIDE = {"benchmarks", "docs", "notebooks", "tests"}

# Folders that keep away from more than their room does.
AWAY = {"files/*": {"pyspark"}}

# Constants with one home, so that nobody writes their values out again.
ONCE = {"MIN_TIME", "MAX_TIME", "NEVER", "RESERVED"}

# The only places that may import these heavy or optional libraries.
ONLY_IN = {
    "pyspark": ("sparkops/*", "doors.py"),
    "hypothesis": ("combiners/laws*", "testing/*"),
    "matplotlib": ("plot*",),
}


def assigned(source: str) -> Iterator[str]:
    """Names, less their underscores in front, that a module gives values at its top."""
    for node in ast.parse(source).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            yield from (part.id.lstrip("_") for part in ast.walk(target or ast.Pass()) if isinstance(part, ast.Name))


@cache
def homes() -> Counter[str]:
    """The number of modules that give each name a value at their top."""
    return Counter(name for module in MODULES for name in set(assigned(source_of(module))))


def faults(module: Path, names: Iterable[str]) -> list[str]:
    """The faults of the imports of a module."""
    found = []
    room = module.parts[0] if len(module.parts) > 1 else None
    for name in sorted(names):
        top = "." * name.startswith(".") + name.lstrip(".").split(".")[0]
        if top.lstrip(".") in BESIDE:
            found.append(f"{module} imports {name}, which stands beside the package")
        elif any(fnmatch(module.as_posix(), folder) and _in(far, name, module) for folder, far in AWAY.items()):
            found.append(f"{module} imports {name}, which its folder keeps away from")
        elif name.startswith("."):
            target = top[1:] if top[1:] in {*BELOW, *SHARED} else FACE
            allowed = {room, *BELOW[room], *SHARED} if room else {target}
            if module.stem in SHARED and room is None:
                allowed = SHARED
            if target not in allowed and not (target == FACE and room in USERS):
                found.append(f"{module} imports {name}, which stands above it or beside it")
        else:
            library = name.split(".")[0]
            if library == "uncombine":
                found.append(f"{module} imports {name} by its full name, not relatively")
            places = ONLY_IN.get(library, ("*",))
            if not any(fnmatch(module.as_posix(), place) for place in places):
                found.append(f"{module} imports {name}, which only {' and '.join(places)} may")
    return found


def _in(far: set[str], name: str, module: Path) -> bool:
    """True if a name is of a room that a folder keeps away from, and not of the folder itself."""
    own = "." + ".".join(module.parent.parts)
    top = "." * name.startswith(".") + name.lstrip(".").split(".")[0]
    return top in far and not f"{name}.".startswith(f"{own}.")


def test_imports_go_one_way() -> None:
    assert [fault for module in MODULES for fault in faults(module, imports_of(module))] == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("combiners/sums.py", "from ..windows import fixed"),
        ("combiners/sums.py", "from .. import panes"),
        ("combiners/deep/sums.py", "from ...windows import fixed"),
        ("windows/fixed.py", "from ..combiners.sums import Sum"),
        ("triggers/leaves.py", "def late():\n    from ..panes import local"),
        ("panes/local.py", "import pyspark.sql"),
        ("panes/local.py", "from hypothesis import given"),
        ("testing.py", "from hypothesis import given"),
        ("panes/grouping/operator.py", "import matplotlib.pyplot as plt"),
        ("combiners/sums.py", "from uncombine.combiners import base"),
        ("errors.py", "from .combiners import base"),
        ("demo.py", "from pyspark.sql import SparkSession"),
        ("demo.py", "from .benchmarks import harness"),
        ("panes/local.py", "from ..docs import generate"),
        ("sparkops/opening.py", "import benchmarks.harness"),
        ("files/csv.py", "from pyspark.sql import types"),
        ("files/csv.py", "from ..panes.grouping import Grouping"),
    ],
)
def test_a_wrong_import_is_seen(module: str, source: str) -> None:
    assert len(faults(Path(module), imported(Path(module), source))) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("combiners/sums.py", "from ..errors import TypeMismatch\nfrom .base import CombineFn"),
        ("combiners/deep/sums.py", "from ..base import CombineFn"),
        ("combiners/laws_kit.py", "from hypothesis import given"),
        ("testing/kit.py", "from hypothesis import given"),
        ("plot/plotting.py", "import matplotlib"),
        (
            "sparkops/opening.py",
            "import pyspark\nfrom ..panes import operator\nfrom ..windows.spans import span",
        ),
        ("__init__.py", "from .combiners import Sum"),
        ("files/csv.py", "import pyarrow.csv\nfrom ..windows import timestamp"),
    ],
)
def test_a_right_import_is_let_pass(module: str, source: str) -> None:
    assert faults(Path(module), imported(Path(module), source)) == []


@pytest.mark.parametrize("name", sorted(ONCE))
def test_a_constant_has_one_home(name: str) -> None:
    assert homes()[name] == 1


def test_every_library_that_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = (needs for name, needs in project["optional-dependencies"].items() if name != "dev")
    needs = [*chain(project["dependencies"], *extras)]
    declared = {re.split(pattern, need)[0].replace("-", "_") for need in needs for pattern in (r"\W", r"[^\w-]")}
    used = {name.split(".")[0] for module in MODULES for name in imports_of(module) if not name.startswith(".")}
    assert used - {*sys.stdlib_module_names, "uncombine"} <= declared


def test_a_bare_import_stays_light(tmp_path: Path) -> None:
    script = "import json, sys, uncombine; print(json.dumps(sorted(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    roots = {name.split(".")[0] for name in json.loads(loaded.stdout)}
    assert "uncombine" in roots
    assert roots & {"pyspark", "hypothesis", "matplotlib", "pandas", "scipy"} == set()


def test_the_tests_load_the_library_once() -> None:
    importlib.import_module("uncombine")
    faces = {str(place / "__init__.py") for place in (ROOT, ROOT / "src" / "uncombine")}
    assert [name for name, module in sys.modules.items() if getattr(module, "__file__", None) in faces] == ["uncombine"]


def test_no_module_is_long() -> None:
    lines = {module.as_posix(): len(source_of(module).splitlines()) for module in MODULES}
    assert {module: n for module, n in lines.items() if n > (800 if module in READ_BY_USERS else 400)} == {}
