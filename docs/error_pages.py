"""The page of errors: the classes, and on the site each message, by what its reader was doing.

Guarded by tests/house/test_docs.py.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path

import uncombine as uc

ROOT = Path(__file__).resolve().parents[1]
TASKS: Mapping[str, tuple[str, ...]] = {
    "Begin a flow": ("doors", "errors", "advice", "changelog", "__init__", "flows", "local"),
    "Steps over rows, and joins": ("panes",),
    "Windows, triggers and groupings": ("windows", "triggers", "panes/grouping"),
    "Watermarks": ("panes/watermarks",),
    "Combiners and expressions": ("combiners",),
    "Look back from each row": ("lookbacks", "panes/rolled"),
    "Combiners of your own, and tests": (
        "combiners/laws",
        "combiners/from_columns",
        "combiners/from_scalar",
        "testing",
    ),
    "Read files": ("files", "urls", "sparkops/planners", "sparkops/scans"),
    "Read messages": ("messages",),
    "Read topics of Kafka": ("kafka", "local/topics", "sparkops/topics", "sparkops/planners/topic_planner"),
    "Write topics of Kafka": (
        "kafka/sending",
        "kafka/markers",
        "local/topic_output",
        "sparkops/tables/live_topic",
        "changelogs/records",
    ),
    "Read tables of a lakehouse": (
        "lakehouse",
        "local/table_versions",
        "sparkops/lakehouse",
        "sparkops/planners/version_planner",
        "sparkops/planners/version_offset",
    ),
    "Changelogs": ("changelogs",),
    "Run on Spark": ("sparkops", "metrics"),
    "Accumulators on Spark": ("sparkops/stored",),
    "End a job early": ("flows/early_end", "local/files_until"),
    "Restart a query": ("panes/state", "panes/shard", "flows/fingerprint"),
    "Keep a table": ("tables", "sparkops/tables"),
    "Change a running flow": (
        "evolution",
        "flows/evolution",
        "local/evolved_seeds",
        "sparkops/checkpoints/evolved",
        "sparkops/checkpoints/deleted",
        "sparkops/checkpoints/new_checkpoint",
    ),
    "Compare": ("comparing", "tables/comparison", "sparkops/comparison", "local/compared_sides"),
    "Draw": ("plot",),
    "The command": ("cli",),
}
"""The tasks of a reader, and the modules whose errors come then, by the longest beginning of their paths."""


def classes_of_errors() -> str:
    """Each class of errors in one line."""
    kinds = [value for value in vars(uc.errors).values() if inspect.isclass(value)]
    ours = [kind for kind in kinds if issubclass(kind, uc.UncombineError) and kind.__module__ == uc.errors.__name__]
    lines = [f"| `{kind.__name__}` | {said(kind)} |" for kind in ours]
    return "\n".join(["| class | raised if |", "|---|---|", *lines]) + "\n"


def said(kind: type) -> str:
    """The docstring of a class in one line, without its example."""
    return " ".join((inspect.getdoc(kind) or "").partition(">>>")[0].split())


def errors() -> str:
    """The classes of errors, and the messages by task; a part that differs is written as three dots."""
    lines = [classes_of_errors()]
    for task, messages in by_task().items():
        lines += [f"## {task}", "", *(f"* `{text}` ({name})" for text, name in messages), ""]
    return "\n".join(lines)


def by_task() -> dict[str, list[tuple[str, str]]]:
    """The messages of each task, each with the class of the error."""
    found: dict[str, set[tuple[str, str]]] = {task: set() for task in TASKS}
    rooms = [face.parent for face in ROOT.glob("*/__init__.py")]
    for file in (*ROOT.glob("*.py"), *(file for room in rooms for file in room.rglob("*.py"))):
        found[task_of(file.relative_to(ROOT).with_suffix("").as_posix())] |= set(messages(file))
    return {task: sorted(texts, key=lambda one: one[0].casefold()) for task, texts in found.items()}


def task_of(module: str) -> str:
    """The task in which the errors of a module come."""
    fits = [
        (len(start), task) for task, starts in TASKS.items() for start in starts if f"{module}/".startswith(f"{start}/")
    ]
    if not fits:
        raise SystemExit(f"docs/generate.py: in which task do the errors of {module} come? Add it to TASKS.")
    return max(fits)[1]


def messages(file: Path) -> Iterator[tuple[str, str]]:
    """The messages of errors that a module raises, and their classes."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            called, text = ast.unparse(node.exc.func), message(node.exc.args[0])
            if hasattr(uc.errors, called) and len(text.replace("...", "")) > 20:
                yield text, called


def message(node: ast.expr) -> str:
    """The text of a message."""
    if isinstance(node, ast.Constant):
        return str(node.value).replace("`", "'").replace("\n", " ")
    if isinstance(node, ast.JoinedStr):
        return "".join(message(part) for part in node.values)
    return "..."
