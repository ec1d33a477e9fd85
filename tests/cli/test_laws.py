"""`uncombine laws`: combiners of a user's module, over values that are drawn or given."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from uncombine.cli.command_line import main
from uncombine.cli.law_values import law_values

MINE = """
import numpy as np
import pyarrow as pa
import uncombine as uc

good = uc.CountIf("x")

class CountFn(uc.CombineFn):
    capability = uc.Capability.GROUP
    fields = (pa.field("n", pa.int64()),)

    def add(self, groups, *columns, weights=None):
        return self.merge(groups, (pa.array(np.ones(len(columns[0].array), int) if weights is None else weights),))

    def merge(self, groups, accumulators):
        out = np.zeros(groups.count, np.int64)
        np.add.at(out, groups.codes, np.asarray(accumulators[0]))
        return (pa.array(out),)

    def uncombine(self, accumulators, others):
        return (pa.array(np.asarray(accumulators[0]) - np.asarray(others[0])),)

    def extract(self, accumulators):
        return accumulators[0]

columns = uc.from_columns("Columns", CountFn(), output=pa.int64())

def needs(x):
    return uc.Sum(x)

def made():
    return uc.BoolAnd("x")

bad = uc.from_scalar(
    "Bad", create=lambda: 0, add=lambda s, x: s + 1, merge=lambda a, b: a, extract=lambda s: s,
    accumulator=pa.int64(), output=pa.int64(),
)
number = 5

def add(state, x):
    return state + x.bit_length()

lengths = uc.from_scalar(
    "lengths", create=lambda: 0, add=add, merge=lambda a, b: a + b, extract=lambda s: s,
    accumulator=pa.int64(), output=pa.int64(),
)

def tidy(state, x):
    return state + len(x.strip().nothing)

untidy = uc.from_scalar(
    "untidy", create=lambda: 0, add=tidy, merge=lambda a, b: a + b, extract=lambda s: s,
    accumulator=pa.int64(), output=pa.int64(),
)

def wide(state, x):
    return float(np.float64(state) * np.float64(x))

products = uc.from_scalar(
    "products", create=lambda: 1.0, add=wide, merge=lambda a, b: float(np.float64(a) * np.float64(b)),
    extract=lambda s: s, accumulator=pa.float64(), output=pa.float64(), tolerance=1e-9,
)
largest = uc.ArgMax("x", by="t")

def scored(state, x, y):
    return max(state, int(x * y))

scores = uc.from_scalar(
    "scores", create=lambda: 0, add=scored, merge=max, extract=lambda s: s, accumulator=pa.int64(), output=pa.int64(),
)("price", "quantity")
spread = uc.CollectList("x").map(
    lambda lists: pa.array([None if not one else float(one[-1] - one[0]) for one in lists.to_pylist()]), pa.float64()
)
cents = uc.from_scalar(
    "cents", create=lambda: 0, add=lambda state, x: max(state, x.adjusted()), merge=max, extract=int,
    accumulator=pa.int64(), output=pa.int64(),
)
pairs = uc.from_scalar(
    "pairs", create=lambda: 0, add=lambda state, *values: max(state, *values[:2], values[1]), merge=max, extract=int,
    accumulator=pa.int64(), output=pa.int64(),
)

def multiplied(state, x, y):
    return (state + x * y) % 2**31

dots = uc.from_scalar(
    "dots", create=lambda: 0, add=multiplied, merge=lambda a, b: (a + b) % 2**31, extract=lambda s: s,
    accumulator=pa.int64(), output=pa.int64(),
)
dotted = dots("a", "b")
"""


@pytest.mark.weekly
def test_laws_are_checked(user_module: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]) -> None:
    user_module("mine_for_laws", MINE)
    assert main(["laws", "mine_for_laws:good", "--examples", "4"]) == 0
    assert capsys.readouterr().out == "mine_for_laws:good keeps the laws of GROUP\n"
    assert main(["laws", "mine_for_laws:made", "--examples", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"combiner": "mine_for_laws:made", "passed": True}
    assert main(["laws", "mine_for_laws:columns", "--examples", "4"]) == 0
    assert "mine_for_laws:columns keeps the laws of GROUP over x: int64; others: " in capsys.readouterr().out
    assert main(["laws", "mine_for_laws:bad", "--examples", "20"]) == 1
    assert "law" in capsys.readouterr().err
    for name, says in (
        ("number", "is a int, and laws are those of combiners"),
        ("none", "has no 'none'"),
        ("needs", "mine_for_laws:needs needs x, and laws calls a function without arguments"),
    ):
        assert main(["laws", f"mine_for_laws:{name}"]) == 2
        assert says in capsys.readouterr().err


def test_the_types_that_functions_of_ones_own_were_tried_on_are_told(
    user_module: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    user_module("mine_for_laws", MINE)
    check = ["laws", "mine_for_laws:scores", "--examples", "3", "--seed", "1"]
    kept = "mine_for_laws:scores keeps the laws of MONOID"
    assert main(check) == 0
    told = f"{kept} over price: int64, quantity: int64; others: --values float64,float64\n"
    assert capsys.readouterr().out == told
    assert main([*check, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["types"] == {"price": "int64", "quantity": "int64"}
    assert main([*check, "--values", "int64,int64"]) == 0
    assert capsys.readouterr().out == f"{kept}\n"
    assert main(["laws", "mine_for_laws:lengths", "--examples", "3"]) == 0
    assert capsys.readouterr().out.endswith(" MONOID over x: int64; others: --values bool\n")
    assert main(["laws", "mine_for_laws:cents", "--examples", "3"]) == 0
    assert capsys.readouterr().out.endswith(" MONOID over x: decimal128(10, 2)\n")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "pairs",
            r"it was tried as pairs\('x'\), with one column, and its add needs 2 \(.*--values once for each",
        ),
        (
            "spread",
            r"over x: string <lambda> raised TypeError .*breaks no law.*\(on the command line --values float64",
        ),
    ],
)
def test_columns_that_were_guessed_wrong_are_no_broken_law(
    name: str, says: str, user_module: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    user_module("mine_for_laws", MINE)
    assert main(["laws", f"mine_for_laws:{name}"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert re.search(says, line)


@pytest.mark.weekly
def test_values_are_those_of_the_user(
    user_module: Callable[[str, str], None], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """`add` of these lengths fails for 3 alone, so the laws hold over values without it."""
    user_module("mine_for_laws", MINE.replace("state + x.bit_length()", "state + 1 // (x - 3)"))
    check = ["laws", "mine_for_laws:lengths", "--examples", "3", "--seed", "1", "--values"]
    assert main([*check, "4,5"]) == 0
    assert main([*check, "3"]) == 1
    assert "add raised ZeroDivisionError" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir() if path.name != "__pycache__"] == ["mine_for_laws.py"]


@pytest.mark.weekly
@pytest.mark.parametrize("name", ["dots", "dotted", "largest"])
def test_each_column_has_values_of_the_user(
    name: str, user_module: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """The sum of products fails for a text and for a number that is not whole, so no other values are drawn."""
    user_module("mine_for_laws", MINE)
    check = ["laws", f"mine_for_laws:{name}", "--examples", "3", "--seed", "1"]
    assert main([*check, "--values", "1,2"]) == 2
    told = capsys.readouterr().err
    assert re.search(
        r"reads the columns \w, \w, and --values has those of \w alone: give --values once for each, such as --values "
        r"1,2 --values 1,2, or their types, such as --values int64,int64",
        told,
    )
    assert main([*check, "--values", "1,2", "--values", "3,4"]) == 0
    assert main([*check, "--values", "int64,bool"]) == 0
    assert main([*check, "--values", "int64", "--values", "true,false"]) == 0
    assert main([*check, "--values", "int64,int16"]) == 2
    assert "--values names the type int16, and only int64, double" in capsys.readouterr().err


def values(*texts: str, column: list[str] | None = None) -> list[Any]:
    """The values of each column, and its type; or its type alone, if it is named."""
    arguments = argparse.Namespace(
        values=list(texts), column=column, format=None, delimiter=None, encoding=None, decimal_point=None, type=[]
    )
    taken = law_values(arguments) or ()
    return [one if isinstance(one, pa.DataType) else (one.to_pylist(), str(one.type)) for one in taken]


def test_values_are_read_from_text_and_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = pa.table({"name": ["a", "b"], "n": pa.array([1, None], pa.int8())})
    pq.write_table(table, "values.parquet")
    pq.write_table(table.select(["n"]), "one.parquet")
    assert values("1, 2,-3") == [([1, 2, -3], "int64")]
    assert values("1,2.5", 'ada,"b,c"') == [([1.0, 2.5], "double"), (["ada", "b,c"], "string")]
    assert values("2024-05-01T12:00:00Z")[0][1] == "timestamp[s, tz=UTC]"
    assert values("int64, float64", "1") == [pa.int64(), pa.float64(), ([1], "int64")]
    assert values('["int64"]') == [(["int64"], "string")]
    assert values("int64,1") == [(["int64", "1"], "string")]
    assert values("true,false") == [([True, False], "bool")]
    assert values("[1, null, 2]", '["1"]') == [([1, None, 2], "int64"), (["1"], "string")]
    assert values("one.parquet") == [([1, None], "int8")]
    assert values("values.parquet", column=["n", "name"]) == [([1, None], "int8"), (["a", "b"], "string")]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["values.csv"], "'values.csv' has the columns name, n: name those that the combiner reads"),
        (["values.csv", "--column", "nam"], "--column needs column 'nam', which the input does not have: did you mean"),
        (["none.csv"], "there is no file 'none.csv'"),
        (["[1, 2"], "--values '[1, 2' is no JSON"),
        (['{"x": [1]}'], "--values takes a JSON list, such as '[1, 2.5, 3]'"),
        (['[1, "a"]'], "has no values of one type"),
        (["[null]"], "--values has no value"),
        ([""], "--values has no value"),
        (["1,2", "--values", "1,2", "--values", "1,2"], "values= has 3 entries, but ArgMax('x', 't') reads 2"),
        (None, "give --values FILE"),
    ],
)
def test_values_that_are_none_are_refused(
    options: list[str] | None,
    says: str,
    user_module: Callable[[str, str], None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    user_module("mine_for_laws", MINE)
    (tmp_path / "values.csv").write_text("name,n\nada,1\n")
    words = ["--column", "x"] if options is None else ["--values", *options]
    assert main(["laws", "mine_for_laws:largest", *words]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert says in line


def test_the_reason_of_a_refused_value_is_shown(
    user_module: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    user_module("mine_for_laws", MINE)
    assert main(["laws", "mine_for_laws:untidy"]) == 2
    told = capsys.readouterr().err
    line = 1 + MINE[: MINE.index("return state + len(x.strip()")].count("\n")
    assert "untidy('x') takes none of the ready-made values, since over string add raised AttributeError at" in told
    assert f"mine_for_laws.py:{line} (return state + len(x.strip().nothing)): 'str' object has no" in told
    assert main(["laws", "mine_for_laws:lengths", "--values", "a,b"]) == 1
    assert "add raised AttributeError at mine_for_laws.py" in capsys.readouterr().err


@pytest.mark.weekly
def test_numpy_warns_of_no_number_that_was_drawn(
    user_module: Callable[[str, str], None], capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    """The products overflow, of which NumPy warns, and round otherwise in another order."""
    user_module("mine_for_laws", MINE)
    assert main(["laws", "mine_for_laws:products", "--values", "1e200,3.3,0.1,1e-9", "--examples", "40"]) == 0
    assert capsys.readouterr().err == ""
    assert list(recwarn) == []


@pytest.mark.parametrize(
    ("options", "told"),
    [(["--examples", "0"], "--examples must be at least 1"), (["--values", "1\n2"], "is no line of CSV")],
)
def test_options_of_no_use_are_told(
    options: list[str], told: str, user_module: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    user_module("mine_for_options", MINE)
    assert main(["laws", "mine_for_options:good", *options]) == 2
    assert told in capsys.readouterr().err
