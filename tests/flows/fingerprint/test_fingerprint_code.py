"""The content of functions: equal for the same text in any layout, and other for any other value that they use."""

from __future__ import annotations

import functools
import hashlib
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from uncombine.flows.fingerprint.content import MOST, MOST_PARTS, Content, content_of
from uncombine.flows.fingerprint.function_text import text_of


def module_of(folder: Path, text: str, name: str = "mine") -> ModuleType:
    """A module of the user with a source of its own."""
    path = folder / f"{name}_{hashlib.sha256(text.encode()).hexdigest()[:8]}.py"
    path.write_text(textwrap.dedent(text))
    module = ModuleType(name)
    module.__file__ = str(path)
    exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    return module


BASE = '''
import pyarrow.compute as pc
LIMIT = 3
TABLE = {"a": 1}
def helper(x):
    return x + LIMIT
class Model:
    def __init__(self, weight):
        self.weight = weight
    def run(self, x):
        return helper(x) * self.weight
model = Model(2)
def f(table, most=5, *, least=[1]):
    """Says something."""
    inner = lambda x: x * 2
    return model.run(inner(helper(most))), TABLE, least
'''

SAME = {
    "comments, layout and docstrings": ('"""Says something."""', '"""Other words."""   # and a comment\n'),
    "annotations": ("def f(table, most=5", "def f(table: object, most: int = 5"),
    "lines": ("LIMIT = 3", "\n\n\nLIMIT = 3"),
    "a name that it does not use": ("LIMIT = 3", "LIMIT = 3\nOTHER = 5"),
    "parentheses": ("return x + LIMIT", "return (x + (LIMIT))"),
}

OTHER = {
    "its body": ("x * 2", "x * 3"),
    "a function that it calls": ("x + LIMIT", "x - LIMIT"),
    "a number of its module": ("LIMIT = 3", "LIMIT = 4"),
    "a value of its module": ('{"a": 1}', '{"a": 2}'),
    "a default": ("most=5", "most=6"),
    "a default in a list": ("least=[1]", "least=[2]"),
    "an attribute of an object": ("Model(2)", "Model(2.0)"),
    "a method": ("helper(x) * self.weight", "helper(x) / self.weight"),
}


def contents(folder: Path, text: str) -> Content:
    return content_of(module_of(folder, text).f)


@pytest.mark.parametrize("name", SAME)
def test_the_same_in_other_words_is_equal(name: str, tmp_path: Path) -> None:
    one, other = contents(tmp_path, BASE), contents(tmp_path, BASE.replace(*SAME[name]))
    assert SAME[name][0] in BASE
    assert one.source == other.source
    assert one.unknown == ()


@pytest.mark.parametrize("name", OTHER)
def test_another_function_is_other(name: str, tmp_path: Path) -> None:
    one, other = contents(tmp_path, BASE), contents(tmp_path, BASE.replace(*OTHER[name]))
    assert OTHER[name][0] in BASE
    assert one.source != other.source
    assert one.code != other.code
    assert one.parts != other.parts


@pytest.mark.weekly
def test_a_function_is_equal_in_another_process(tmp_path: Path) -> None:
    """Hashes of texts are random in each process, and so is the order of sets."""
    (tmp_path / "mine.py").write_text(
        BASE + "\nSET = frozenset('abcdefgh')\ndef g(t):\n    return SET, t in {'x', 'y', 'z'}\n"
    )
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import mine\n"
        "from uncombine.flows.fingerprint.content import content_of\n"
        "print(content_of(mine.f), content_of(mine.g))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(told) == 1


def test_lambdas_of_one_line_are_told_apart() -> None:
    some = [lambda x: x + 1, lambda x: x + 2, lambda x: (lambda y: y + 1)(x), lambda x: x + 1]
    hashes = [content_of(one).source for one in some]
    assert hashes[0] == hashes[3]
    assert len(set(hashes)) == 3
    assert all(text_of(one) for one in some)  # type: ignore[arg-type]


def test_without_a_source_the_code_counts() -> None:
    made = [eval(text) for text in ("lambda x: x + 1", "lambda x: x+1", "lambda x: x + 2")]
    one, same, other = map(content_of, made)
    assert text_of(made[0]) is None
    assert one == same
    assert one.source != other.source
    assert f"cpython {sys.version_info.major}.{sys.version_info.minor}" in one.code


def test_a_file_that_was_changed_since_is_not_the_source(tmp_path: Path) -> None:
    """The text of the file is not that of the function that runs, so the code counts."""
    module = module_of(tmp_path, "def f(x):\n    return x + 1\n")
    assert text_of(module.f) is not None
    before = content_of(module.f)
    Path(str(module.__file__)).write_text("def f(x):\n    return x + 22\n")
    assert text_of(module.f) is None
    assert content_of(module.f).code == before.code


def test_a_wrapped_function_counts_with_its_wrapper(tmp_path: Path) -> None:
    text = """
    import functools
    def twice(function):
        @functools.wraps(function)
        def call(x):
            return function(function(x))
        return call
    @twice
    def f(x):
        return x + 1
    """
    one = contents(tmp_path, text)
    assert one.source != contents(tmp_path, text.replace("x + 1", "x + 2")).source
    assert one.source != contents(tmp_path, text.replace("function(function(x))", "function(x)")).source


def test_partial_functions_methods_and_classes() -> None:
    class Scale:
        unit = 1

        def __init__(self, factor: int) -> None:
            self.factor = factor

        def __call__(self, x: Any) -> Any:
            return x * self.factor

        def method(self, x: Any) -> Any:
            return x + self.factor

    @dataclass(frozen=True)
    class Point:
        x: int
        y: tuple[int, ...] = ()

    def add(x: Any, y: Any) -> Any:
        return x + y

    pairs = [
        (Scale(1), Scale(1), Scale(2)),
        (Scale(1).method, Scale(1).method, Scale(2).method),
        (functools.partial(add, 1), functools.partial(add, 1), functools.partial(add, 2)),
        (Point(1, (2,)), Point(1, (2,)), Point(1, (3,))),
        (Scale(1).method, Scale(1).method, Scale(1)),
    ]
    for one, same, other in pairs:
        assert content_of(one) == content_of(same)
        assert content_of(one).source != content_of(other).source
    before = content_of(Scale)
    Scale.unit = 2
    assert content_of(Scale).source != before.source


VALUES: list[tuple[Any, Any, Any]] = [
    (pa.table({"a": [1, 2]}), pa.table({"a": pa.chunked_array([[1], [2]])}), pa.table({"a": [2, 1]})),
    (pa.table({"a": [1]}), pa.table({"a": [1]}), pa.table({"b": [1]})),
    (pa.array(["x", None]), pa.array(["x", None]), pa.array(["x", ""])),
    (np.arange(3), np.arange(3), np.arange(3.0)),
    (np.array(["a", None], object), np.array(["a", None], object), np.array(["a", 0], object)),
    (pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1, 3]})),
    (pd.Series([1, 2]), pd.Series([1, 2]), pd.Series([1, 3])),
    ({"a", "b", "c"}, {"c", "b", "a"}, {"a", "b"}),
    ({"a": [1, (2,)]}, {"a": [1, (2,)]}, {"a": [1, [2]]}),
    (list(range(MOST + 1)), list(range(MOST + 1)), [*range(MOST), -1]),
    (dict.fromkeys(range(MOST + 1), "x"), dict.fromkeys(range(MOST + 1), "x"), dict.fromkeys(range(MOST + 1), "y")),
    (True, True, 1),
    (1, 1, 1.0),
    ("1", "1", b"1"),
]


@pytest.mark.parametrize("place", range(len(VALUES)))
def test_values_that_a_function_has_closed_over(place: int) -> None:
    def over(value: Any) -> Any:
        return lambda table: (table, value)

    one, same, other = (content_of(over(value)) for value in VALUES[place])
    assert one == same
    assert one.source != other.source
    assert one.unknown == ()


def test_a_circle_ends() -> None:
    ring: list[Any] = [1]
    ring.append(ring)

    def even(n: int) -> Any:
        return n == 0 or odd(n - 1), ring

    def odd(n: int) -> Any:
        return n != 0 and even(n - 1)

    assert content_of(even) == content_of(even)
    assert content_of(even).source != content_of(odd).source


def test_what_cannot_be_looked_into_counts_by_its_type() -> None:
    import threading

    locks = [threading.Lock(), threading.Lock()]
    one, other = (content_of(lambda table, lock=lock: (table, lock)) for lock in locks)
    assert one == other
    assert one.unknown == ("_thread.lock",)


def test_the_parts_are_bounded(tmp_path: Path) -> None:
    names = [f"N{i}" for i in range(100)]
    text = "\n".join(f"{name} = {i}" for i, name in enumerate(names)) + f"\ndef f(t):\n    return {', '.join(names)}\n"
    one, other = contents(tmp_path, text), contents(tmp_path, text.replace("N99 = 99", "N99 = 98"))
    assert len(one.parts) == MOST_PARTS + 1
    assert one.parts["others"] != other.parts["others"]
