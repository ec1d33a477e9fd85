"""The content of what functions use: other modules, values of any type, and objects that are not to be called."""

from __future__ import annotations

import collections
import functools
import operator
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pytest
from seeds import share

import uncombine as uc
from uncombine.flows.fingerprint.content import content_of

HELPERS = "K = 1\ndef g(x):\n    return x + K\n"

JOB = """
import {0} as tools
from {0} import g
def by_module(t): return tools.g(t)
def by_name(t): return g(t)
def by_constant(t): return tools.K
def by_import(t):
    from {0} import g
    return g(t)
def by_module_import(t):
    import {0}
    return {0}.g(t)
def by_others(t): return by_name(t)
class Base:
    def method(self, t): return g(t)
def flow(): return by_module, by_name, by_constant, by_import, by_module_import, by_others, Base().method
if __name__ == "__main__":
    from uncombine.flows.fingerprint.content import content_of
    print(*(content_of(one).source for one in flow()))
"""

SHOW = """
import importlib, sys
from uncombine.flows.fingerprint.content import content_of
print(*(content_of(one).source for one in importlib.import_module(sys.argv[1]).flow()))
"""


def told(folder: Path, *arguments: str) -> list[str]:
    """The hashes that a program prints, in another process."""
    run = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return run.stdout.split()


@pytest.mark.weekly
@pytest.mark.parametrize("package", share(["", "mine."]))
def test_a_function_of_the_file_beside_counts(package: str, tmp_path: Path) -> None:
    """Under any name of the running module: as a script, by `python -m`, and imported, as `uncombine check` does."""
    folder = tmp_path / package.rstrip(".")
    folder.mkdir(exist_ok=True)
    (folder / "helpers.py").write_text(HELPERS)
    (folder / "job.py").write_text(JOB.format(f"{package}helpers"))
    before = told(tmp_path, "-m", f"{package}job")
    assert told(tmp_path, "-c", SHOW, f"{package}job") == before
    assert told(tmp_path, "-O", "-m", f"{package}job") == before
    assert package or told(tmp_path, "job.py") == before
    (folder / "helpers.py").write_text(HELPERS.replace("K = 1", "K = 22"))
    after = told(tmp_path, "-m", f"{package}job")
    assert [one for one, other in zip(before, after, strict=True) if one == other] == []


def over(value: Any) -> Callable[[Any], Any]:
    return lambda t: (t, value)


def scaled(factor: int) -> Callable[[Any], Any]:
    return lambda x: x * factor


def with_property(factor: int) -> Any:
    class Model:
        @functools.cached_property
        def weight(self) -> int:
            return factor

    return Model()


def with_slot(factor: int) -> Any:
    class Model:
        __slots__ = ("__weight",)

        def __init__(self) -> None:
            self.__weight = factor

    return Model()


def with_default(factor: int) -> Any:
    class Weights(dict[str, int]):
        def __missing__(self, key: str) -> int:
            return factor

    return Weights(a=1)


def with_zone(factor: int) -> Any:
    import datetime

    class Zone(datetime.tzinfo):
        hours = factor

    return Zone()


def with_fields(factor: int) -> Any:
    return collections.namedtuple("Point", ["x", "y"][::factor])(1, 2)


MADE: dict[str, Callable[[int], Any]] = {
    "the index of a series": lambda n: pd.Series([1, 2], index=["a", "b"][::n]),
    "an index": lambda n: pd.Index([n]),
    "the index of a data frame": lambda n: pd.DataFrame({"a": [1, 2]}, index=["a", "b"][::n]),
    "itemgetter": lambda n: operator.itemgetter(n),
    "methodcaller": lambda n: operator.methodcaller("slice", n),
    "a cached function": lambda n: functools.lru_cache(scaled(n)),
    "a default of a dict": lambda n: collections.defaultdict(scaled(n)),
    "a mapping proxy": lambda n: types.MappingProxyType({"a": n}),
    "a namespace": lambda n: types.SimpleNamespace(a=n),
    "a deque": lambda n: collections.deque([n]),
    "an expression of Arrow": lambda n: pc.field("a") > n,
    "an expression": lambda n: uc.col("a") > n,
    "the mask of an array": lambda n: np.ma.array([1, 2], mask=[n == 1, n != 1]),
    "objects in fields": lambda n: np.array([("a", n)], dtype=[("x", object), ("y", int)]),
    "a cached property": with_property,
    "a hidden slot": with_slot,
    "a class of dicts": with_default,
    "a class of time zones": with_zone,
    "the names of fields": with_fields,
    "a function in an object of NumPy": lambda n: np.vectorize(scaled(n)),
}


@pytest.mark.parametrize("name", MADE)
def test_a_value_of_any_type_counts(name: str) -> None:
    one, same, other = (content_of(over(MADE[name](n))) for n in (1, 1, -1))
    assert one == same
    assert one.source != other.source
    assert one.unknown == (("numpy.vectorize",) if name.endswith("NumPy") else ())
    assert content_of(MADE[name](1)).source != content_of(MADE[name](-1)).source


def test_a_value_that_the_function_sets_is_state() -> None:
    """A number of calls is another at each start, so it is not compared, and that is said."""

    def counting(step: int) -> Any:
        calls = 0

        def count(table: Any) -> Any:
            nonlocal calls
            calls += step
            return table

        return count

    one, other = counting(1), counting(1)
    other(None)
    assert content_of(one) == content_of(other)
    assert content_of(one).source != content_of(counting(2)).source
    assert content_of(one).unknown == (f"calls, which {one.__qualname__} sets",)


def test_a_cached_result_is_no_part_of_an_object() -> None:
    one, other = with_property(2), with_property(2)
    assert other.weight == 2
    assert content_of(one) == content_of(other)


class Refusing:
    """An object whose every method raises, and counts."""

    calls = 0

    def _refuse(self, *_: Any) -> Any:
        Refusing.calls += 1
        raise RuntimeError("called")

    __getattr__ = __eq__ = __hash__ = __bool__ = __len__ = __iter__ = __repr__ = _refuse
    __arrow_c_stream__ = _refuse
    x = property(_refuse)


class Posing(Refusing):
    @property
    def __class__(self) -> Any:  # type: ignore[override]
        return self._refuse()


class Named(type):
    def __getattr__(cls, name: str) -> Any:
        Refusing.calls += 1
        raise RuntimeError(name)


class Number(int):
    def __repr__(self) -> str:
        raise RuntimeError("called")


@pytest.mark.parametrize("module", [__name__, "torch.nn", "pandas.core"])
def test_no_code_of_the_user_is_called(module: str) -> None:
    for kind in (Refusing, Posing, Named("Own", (), {})):
        alien = type(kind)(kind.__name__, (kind,), {"__module__": module})()
        vars(alien)["x"] = 1
        Refusing.calls = 0
        assert content_of(over(alien)) == content_of(over(alien))
        assert Refusing.calls == 0
    assert content_of(Number(3)).source != content_of(Number(4)).source
    assert content_of(over(mock.MagicMock())).unknown == ("unittest.MagicMock",)


def test_a_function_of_another_package_counts_by_its_name() -> None:
    """Its text is not read, which takes seconds for pandas."""
    assert content_of(pd.DataFrame.dropna).parts.keys() == {"pandas.DataFrame.dropna"}
    assert content_of(functools.partial(pd.concat, axis=0)).parts.keys() == {"pandas.concat", "arguments"}
