"""Flows and other objects of a user's modules, by their names on the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from uncombine.cli.failures import Failed
from uncombine.cli.module_names import flow_at, object_at
from uncombine.errors import InvalidArgument

MINE = """
import uncombine as uc

rows = uc.flow([{"ts": 0, "x": 5}])

class Flows:
    total = rows.combine(total=uc.Sum("x"))

def made(least=0):
    return rows.where(uc.col("x") > least)

def of_two(spark, path):
    return rows

windows = rows.window("1 minute")
number = 5

def failing():
    return 1 / 0

def refused():
    return rows.select("y")
"""


def test_a_flow_has_a_name(user_module: Callable[[str, str], None]) -> None:
    user_module("mine_by_name", MINE)
    assert flow_at("mine_by_name:rows", "run").collect()[0]["x"] == 5
    assert flow_at("mine_by_name:Flows.total", "run").collect()[0]["total"] == 5
    assert len(flow_at("mine_by_name:made", "run").run()) == 1
    assert object_at("mine_by_name:number", "laws", "") == 5
    assert sys.path.count("") == 1


@pytest.mark.parametrize(
    ("name", "kind", "says"),
    [
        ("windows", InvalidArgument, "ends with window(...), which is no flow yet: add .combine(...)"),
        ("number", InvalidArgument, "mine_by_name:number is a int, and run takes a flow or a function of one"),
        (
            "of_two",
            InvalidArgument,
            "of_two needs spark, path, and run calls a function without arguments",
        ),
        ("mdae", InvalidArgument, "the module 'mine_by_name' has no 'mdae': did you mean 'made'?"),
        ("failing", Failed, "failing failed at mine_by_name.py:19 (return 1 / 0): ZeroDivisionError: division by zero"),
        ("refused", Failed, "'y'"),
    ],
)
def test_what_is_no_flow_is_refused(
    name: str, kind: type[Exception], says: str, user_module: Callable[[str, str], None]
) -> None:
    user_module("mine_by_name", MINE)
    with pytest.raises(kind) as refused:
        flow_at(f"mine_by_name:{name}", "run")
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("source", "kind", "says"),
    [
        ("import uncombine\nx = uncombine.flw", Failed, "has no name 'flw'"),
        ("x = y", Failed, "the import of 'mine_broken' failed at mine_broken.py:1 (x = y): NameError: name 'y'"),
        ("x = (", Failed, "the import of 'mine_broken' failed at mine_broken.py:1: SyntaxError: '(' was never closed"),
        ("import no_such_module", ImportError, "No module named 'no_such_module'"),
    ],
)
def test_a_module_that_cannot_be_imported(
    source: str, kind: type[Exception], says: str, user_module: Callable[[str, str], None]
) -> None:
    user_module("mine_broken", source)
    with pytest.raises(kind) as refused:
        object_at("mine_broken:x", "run", "mine:totals")
    assert says in str(refused.value)
