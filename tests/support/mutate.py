"""Plants faults in a copy of the tree, one at a time, and tells which of them the tests find.

    python tests/support/mutate.py --list                # the mutations, each with its number
    python tests/support/mutate.py                       # all of them, two at a time
    python tests/support/mutate.py --rooms panes/join    # those of a room
    python tests/support/mutate.py --only 3 17           # some
    python tests/support/mutate.py --spark               # with the tests that need Spark, for sparkops/routes

A mutation meets the tests of its module, then those of its room, then the random suites over flows, and stops at the
first that fails. The exit status is the number that no test found; some may be equivalent programs, so read them.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("combiners", "panes/grouping", "panes/join", "panes/state", "sparkops/routes")
COUNT, SEED = 60, 20
WIDE = ("tests/panes", "tests/flows", "tests/local", "tests/testing", "tests/sparkops")
"""The suites that run flows; those of a room that has none of them, too."""
OPPOSITE = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "in": "not in",
    "not in": "in",
    "is": "is not",
    "is not": "is",
    "and": "or",
    "or": "and",
    "+": "-",
    "-": "+",
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "any": "all",
    "all": "any",
}
_TESTS: dict[str, list[Path]] = defaultdict(list)
"""The files of tests by the names of the modules that they test."""
for _test in sorted((ROOT / "tests").rglob("test_*.py")):
    _TESTS[_test.stem.removeprefix("test_")].append(_test)
SECONDS = 1_800
"""A run of tests that takes longer has not come to its end, which is a way to find a mutation."""


@dataclass(frozen=True)
class Mutation:
    """A change of the text of a file between two places."""

    file: str
    line: int
    start: int
    end: int
    old: str
    new: str

    def applied(self, text: str) -> str:
        assert text[self.start : self.end] == self.old
        return text[: self.start] + self.new + text[self.end :]

    def __str__(self) -> str:
        old, new = (re.sub(r"\s+", " ", part)[:60] for part in (self.old, self.new))
        return f"{self.file}:{self.line} `{old}` -> `{new}`"


def mutations(file: str, text: str) -> list[Mutation]:
    """All mutations of a module: operators, numbers, branches, and statements that are left out."""
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line.encode()))
    data = text.encode()

    def place(line: int, column: int) -> int:
        return len(data[: lines[line - 1] + column].decode())

    def span(node: ast.AST) -> tuple[int, int]:
        own = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        return place(*own[0]), place(*own[1])

    def change(node: ast.AST, start: int, end: int, new: str) -> Mutation:
        return Mutation(file, node.lineno, start, end, text[start:end], new)  # type: ignore[attr-defined]

    def between(one: ast.AST, other: ast.AST) -> Iterator[Mutation]:
        """The operator between two operands."""
        start, end = span(one)[1], span(other)[0]
        found = re.search(r"not\s+in|is\s+not|[<>=!]=|[<>+]|-|\b(?:in|is|and|or)\b", text[start:end])
        if found is not None and "#" not in text[start:end]:
            new = OPPOSITE[re.sub(r"\s+", " ", found[0])]
            yield change(one, start + found.start(), start + found.end(), new)

    def of(node: ast.AST) -> Iterator[Mutation]:
        match node:
            case ast.Compare(left, _, [first, *_]):
                yield from between(left, first)
            case ast.BoolOp(_, [first, second, *_]):
                yield from between(first, second)
            case ast.BinOp(left, ast.Add() | ast.Sub(), right):
                yield from between(left, right)
            case ast.Constant(int() as value) if not isinstance(value, bool):
                yield change(node, *span(node), str(value + 1))
            case ast.Call(ast.Name(name) | ast.Attribute(attr=name) as called) if name in OPPOSITE:
                end = span(called)[1]
                yield change(node, end - len(name), end, OPPOSITE[name])
            case ast.UnaryOp(ast.Not(), operand):
                yield change(node, *span(node), f"({text[slice(*span(operand))]})")
            case ast.IfExp(test, body, orelse):
                one, condition, other = (text[slice(*span(part))] for part in (body, test, orelse))
                yield change(node, *span(node), f"{other} if {condition} else {one}")
            case ast.If(test):
                yield change(node, *span(test), f"not ({text[slice(*span(test))]})")
            case ast.Expr(ast.Call()) | ast.AugAssign():
                yield change(node, *span(node), "pass")

    return [found for node in _parts(ast.parse(text)) for found in of(node)]


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """The parts that decide what is computed: no annotations, decorators, messages of errors or texts for people."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_comment"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.Raise | ast.JoinedStr | ast.Assert):
                continue
            if isinstance(child, ast.FunctionDef) and child.name in ("__repr__", "words", "describe", "__str__"):
                continue
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                continue
            yield child
            yield from _parts(child)


def planted() -> list[Mutation]:
    """The mutations of a run, as many of each room; the same as long as the code is."""
    r = random.Random(SEED)
    chosen = []
    for room in ROOMS:
        files = sorted((ROOT / room).rglob("*.py"))
        found = [one for file in files for one in mutations(str(file.relative_to(ROOT)), file.read_text())]
        chosen += sorted(r.sample(found, COUNT // len(ROOMS)), key=lambda one: (one.file, one.start))
    return chosen


def stages(mutation: Mutation, spark: bool) -> Iterator[tuple[str, list[str]]]:
    """Expressions of marks, each with the tests to run, from those that are likely to find a mutation to all."""
    module, room = Path(mutation.file), next(room for room in ROOMS if mutation.file.startswith(room + "/"))
    plain = "not spark and not soak and not full"
    own = _tests_of(module)
    if own:
        yield plain, own
    yield "not spark and not soak", [f"tests/{room}"]
    yield plain, [test for test in WIDE if test != f"tests/{room}"]
    if spark and room == "sparkops/routes":
        yield "spark and not soak and not full", ["tests/sparkops"]


def _tests_of(module: Path) -> list[str]:
    """The tests of a module: those of its name, those in the table of the page, and a few that import it."""
    found = [f"tests/{path}" for path in sorted(p.relative_to(ROOT / "tests").as_posix() for p in _TESTS[module.stem])]
    for line in (ROOT / "docs/design/tests.md").read_text().splitlines():
        found += re.findall(r"`(tests/[\w/]+\.py)`", line) if f"`{module}`" in line else []
    room = ".".join(("uncombine", *module.parent.parts))
    imports = re.compile(
        rf"import {room}\.{module.stem}\b|from {room}\.{module.stem} |from {room} import .*\b{module.stem}\b"
    )
    every = [test for tests in _TESTS.values() for test in tests if imports.search(test.read_text())]
    found += [test.relative_to(ROOT).as_posix() for test in sorted(every)[:5]]
    return list(dict.fromkeys(found))


def copied(folder: Path) -> Path:
    """A copy of the files that git knows of, in which `uncombine` is that of the copy."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, names):
        if (ROOT / name).exists() or (ROOT / name).is_symlink():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    told = subprocess.run(
        [sys.executable, "-c", "import uncombine as uc; print(uc.__path__[0])"],
        cwd=folder, env=_environment(folder), capture_output=True, text=True, check=True,
    )  # fmt: skip
    if not Path(told.stdout.strip()).is_relative_to(folder):
        raise SystemExit(f"uncombine is imported from {told.stdout.strip()}, and not from the copy in {folder}.")
    return folder


def _environment(folder: Path) -> dict[str, str]:
    changes = {"PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1", "HYPOTHESIS_PROFILE": "found"}
    return {**os.environ, **changes}


def outcome(mutation: Mutation, folder: Path, spark: bool) -> str | None:
    """The test that finds a mutation, or None."""
    file = folder / mutation.file
    before = file.read_text()
    file.write_text(mutation.applied(before))
    try:
        for marks, tests in stages(mutation, spark):
            command = [sys.executable, "-m", "pytest", "-q", "-x", "--draw", "-p", "no:cacheprovider", "-p", "no:cov"]
            command += ["--no-header", "-m", marks, *tests]
            try:
                done = subprocess.run(
                    command, cwd=folder, env=_environment(folder), capture_output=True, text=True, timeout=SECONDS,
                    check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return f"no end of {' '.join(tests)}"
            if done.returncode not in (0, 5):  # 5: no test has such marks
                found = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
                return found[0] if found else f"exit status {done.returncode}"
    finally:
        file.write_text(before)
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="show the mutations and plant none")
    parser.add_argument("--rooms", nargs="*", default=ROOMS, choices=ROOMS, help="the rooms of the code to change")
    parser.add_argument("--only", nargs="*", type=int, help="numbers of mutations")
    parser.add_argument("--jobs", type=int, default=2, help="how many run at a time")
    parser.add_argument("--spark", action="store_true", help="run the tests that need Spark, too")
    given = parser.parse_args()
    chosen = [
        (number, one)
        for number, one in enumerate(planted())
        if one.file.startswith(tuple(f"{room}/" for room in given.rooms))
        and (given.only is None or number in given.only)
    ]
    if given.list:
        print("\n".join(f"{number:3} {one}" for number, one in chosen))
        return 0
    with tempfile.TemporaryDirectory(prefix="uncombine-mutate-") as place, ThreadPoolExecutor(given.jobs) as pool:
        copies: Queue[Path] = Queue()
        for job in range(given.jobs):
            copies.put(copied(Path(place, str(job))))

        def tried(numbered: tuple[int, Mutation]) -> bool:
            number, mutation = numbered
            folder, began = copies.get(), time.monotonic()
            try:
                found = outcome(mutation, folder, given.spark)
            finally:
                copies.put(folder)
            told = "NOT FOUND" if found is None else f"found by {found}"
            print(f"{number:3} {mutation}\n      {told} ({time.monotonic() - began:.0f} s)", flush=True)
            return found is not None

        results = list(pool.map(tried, chosen))
    print(f"{sum(results)} of {len(results)} found")
    return len(results) - sum(results)


if __name__ == "__main__":
    sys.exit(main())
