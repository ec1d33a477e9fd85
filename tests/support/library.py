"""The modules of the library, and what each of them imports."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# What each room may import besides itself and the modules that all share.
BELOW = {
    "metrics": set[str](),
    "combiners": set[str](),
    "windows": set[str](),
    "files": {"combiners", "windows"},
    "messages": {"combiners", "files", "windows"},
    "kafka": {"combiners", "files", "messages", "windows"},
    "triggers": {"combiners", "windows"},
    "lookbacks": {"combiners", "windows"},
    "panes": {"combiners", "windows", "files", "triggers", "lookbacks"},
    "flows": {"combiners", "windows", "triggers", "panes", "lookbacks"},
    "changelogs": {"combiners", "messages", "panes", "flows"},
    "tables": {"combiners", "windows", "panes", "flows", "metrics"},
    "lakehouse": {"combiners", "files", "panes", "tables", "windows"},
    "local": {
        *("combiners", "files", "messages", "kafka", "windows", "triggers", "panes", "flows", "changelogs", "tables"),
        "lakehouse",
    },
    "sparkops": {
        *("combiners", "files", "messages", "kafka", "windows", "triggers", "panes", "flows", "changelogs", "tables"),
        *("lakehouse", "local", "metrics"),
    },
    "plot": {"combiners", "windows", "panes", "flows", "local"},
    "testing": {"combiners", "windows", "panes", "flows", "local", "sparkops", "plot"},
    "cli": {
        *("combiners", "files", "windows", "triggers", "panes", "flows", "tables", "local", "sparkops", "plot"),
        "testing",
    },
}

MODULES = sorted(
    path.relative_to(ROOT)
    for path in [*ROOT.glob("*.py"), *(file for room in BELOW for file in (ROOT / room).rglob("*.py"))]
)


@cache
def source_of(module: Path) -> str:
    """The text of a module of the tree."""
    return (ROOT / module).read_text(encoding="utf-8")


@cache
def imports_of(module: Path) -> frozenset[str]:
    """Dotted names that a module of the tree imports: several rules ask for them, and parsing is what they cost."""
    return frozenset(imported(module, source_of(module)))


def imported(module: Path, source: str) -> set[str]:
    """Dotted names that a module imports; those inside the library begin with a dot, from its root."""
    names = set()
    package = module.parent.parts
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module or "")
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1]
            within = (*base, *(node.module.split(".") if node.module else ()))
            names |= {"." + ".".join((*within, alias.name)) for alias in node.names}
    return names
