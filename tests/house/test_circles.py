"""No module, no folder imports itself through others: not at its top, not in a function, not under TYPE_CHECKING.

An import in a function, or under TYPE_CHECKING, hides a circle from Python but not from a reader, who cannot
understand either module without the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from library import BELOW, MODULES, ROOT, imported

ROOMS = ["", *BELOW]
"""The rooms, and the modules at the top of the package, which have none."""

Graph = dict[Path, set[Path]]


def graph_of(sources: Mapping[Path, str]) -> Graph:
    """Each module, and the modules among these that it imports in any way, with the faces of their folders."""
    named = {_dotted(module): module for module in sources}
    graph: Graph = {}
    for module, source in sources.items():
        targets = {target for name in imported(module, source) if (target := _target(name, named)) is not None}
        faces = {folder / "__init__.py" for target in targets for folder in target.parents if folder.parts}
        outside = {face for face in faces if face in sources and face.parent not in module.parents}
        graph[module] = targets | outside
    return graph


def _dotted(module: Path) -> tuple[str, ...]:
    return module.parts[:-1] if module.stem == "__init__" else (*module.parts[:-1], module.stem)


def _target(name: str, named: Mapping[tuple[str, ...], Path]) -> Path | None:
    """The module of which a dotted name is imported: the longest part of the name that is one."""
    parts = tuple(name[1:].split(".")) if name.startswith(".") else ()
    return next((named[parts[:n]] for n in range(len(parts), 0, -1) if parts[:n] in named), None)


def circular(graph: Graph) -> list[tuple[Path, Path]]:
    """The imports that are part of a circle, as pairs of importer and imported."""
    reached = {module: _reach(graph, module) for module in graph}
    return sorted((module, target) for module in graph for target in graph[module] if module in reached[target])


def _reach(graph: Graph, start: Path) -> set[Path]:
    """The module and all that it imports, directly or through others."""
    seen, left = {start}, [start]
    while left:
        new = graph[left.pop()] - seen
        seen |= new
        left += new
    return seen


@pytest.fixture(scope="module")
def graph() -> Graph:
    return graph_of({module: (ROOT / module).read_text() for module in MODULES})


def floor_of(graph: Graph, room: Path) -> Graph:
    """The folders in a room, each with all that is in it, and the folders among these that it imports."""
    floor: Graph = {}
    for module, targets in graph.items():
        if (folder := _folder_in(room, module)) is not None:
            others = {_folder_in(room, target) for target in targets} - {None, folder}
            floor.setdefault(folder, set()).update(other for other in others if other is not None)
    return floor


def _folder_in(room: Path, module: Path) -> Path | None:
    """The folder of a room that a module is in, however deep; None if it is in no folder there."""
    depth = len(room.parts)
    inside = module.parts[:depth] == room.parts and len(module.parts) > depth + 1
    return Path(*module.parts[: depth + 1]) if inside else None


def test_no_module_imports_itself_through_others(graph: Graph) -> None:
    assert [f"{importer} imports {target}" for importer, target in circular(graph)] == []


def test_a_folder_imports_only_folders_below_it(graph: Graph) -> None:
    """The modules on the floor of a room lie between its folders: its face, and the parts that they share."""
    rooms = sorted({folder for module in MODULES for folder in module.parents})
    found = [pair for room in rooms for pair in circular(floor_of(graph, room))]
    assert [f"{above} imports {below}" for above, below in found] == []


def test_a_circle_of_folders_is_seen_where_no_modules_form_one() -> None:
    sources = {
        "panes/join/a.py": "from ..state.b import x",
        "panes/state/b.py": "",
        "panes/state/deep/c.py": "from ...join.d import y",
        "panes/join/d.py": "",
    }
    graph = graph_of({Path(name): source for name, source in sources.items()})
    assert circular(graph) == []
    assert len(circular(floor_of(graph, Path("panes")))) == 2
    assert circular(floor_of(graph, Path())) == []


def test_the_graph_is_that_of_the_package(graph: Graph) -> None:
    assert Path("errors.py") in graph[Path("windows/times.py")]
    assert Path("windows/__init__.py") in graph[Path("triggers/properties.py")]
    assert Path("combiners/algebra.py") in graph[Path("panes/grouping/loaded_windows.py")]


def test_a_module_imports_the_face_of_a_folder_that_it_is_not_in() -> None:
    sources = {
        "plot/a.py": "from ..local.b import x",
        "local/b.py": "",
        "local/__init__.py": "from ..plot.a import y",
    }
    assert len(circular(graph_of({Path(name): source for name, source in sources.items()}))) == 2


TWO = {"windows/a.py": "from .b import x", "windows/b.py": ""}


@pytest.mark.parametrize(
    ("sources", "found"),
    [
        ({**TWO, "windows/b.py": "from .a import y"}, ["windows/a.py", "windows/b.py"]),
        ({**TWO, "windows/b.py": "def late():\n    from .a import y"}, ["windows/a.py", "windows/b.py"]),
        (
            {**TWO, "windows/b.py": "if TYPE_CHECKING:\n    from . import a"},
            ["windows/a.py", "windows/b.py"],
        ),
        (
            {**TWO, "windows/b.py": "from ..panes.c import z", "panes/c.py": "from ..windows.a import x"},
            ["panes/c.py", "windows/a.py", "windows/b.py"],
        ),
        (
            {"windows/__init__.py": "from .a import x", "windows/a.py": "from . import y"},
            ["windows/__init__.py", "windows/a.py"],
        ),
        (
            {"windows/a.py": "from .deep.b import x", "windows/deep/b.py": "from ..a import y"},
            ["windows/a.py", "windows/deep/b.py"],
        ),
        ({"windows/a.py": "from .a import x"}, ["windows/a.py"]),
    ],
)
def test_a_circle_is_seen(sources: dict[str, str], found: list[str]) -> None:
    pairs = circular(graph_of({Path(name): source for name, source in sources.items()}))
    assert sorted({importer.as_posix() for importer, _ in pairs}) == found


@pytest.mark.parametrize(
    "sources",
    [
        TWO,
        {**TWO, "windows/c.py": "from .a import x\nfrom .b import x"},
        {"windows/__init__.py": "from .a import x\nfrom .b import x", **TWO},
        {**TWO, "windows/b.py": "import numpy.a\nfrom collections import a"},
        {**TWO, "panes/a.py": "from ..windows.a import x", "panes/__init__.py": "from .a import x"},
    ],
)
def test_what_is_no_circle_is_let_pass(sources: dict[str, str]) -> None:
    assert circular(graph_of({Path(name): source for name, source in sources.items()})) == []
