"""Every exported combiner in each of its forms, over columns of several types, all of which one table has."""

from __future__ import annotations

import datetime as dt
import importlib.util
import random
from collections.abc import Iterable
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from chunks import in_chunks
from public_names import PUBLIC

import uncombine as uc
from uncombine.combiners.laws import subjects
from uncombine.combiners.laws.compare import near
from uncombine.sparkops.spark_private import spark_of
from uncombine.sparkops.sql_types import dataframe_of

KINDS: dict[str, pa.DataType] = {
    "long": pa.int64(),
    "double": pa.float64(),
    "text": pa.string(),
    "money": pa.decimal128(10, 2),
    "time": pa.timestamp("us", "UTC"),
    "flag": pa.bool_(),
    "date": pa.date32(),
    "tiny": pa.int8(),
    "bytes": pa.binary(),
    "float": pa.float32(),
    "local": pa.timestamp("us"),
    "span": pa.duration("us"),
}
"""The types that both Spark and the combiners have, each with the ending of the names of its columns."""

NAMED = {kind: name for name, kind in KINDS.items()}

_VALUES: dict[str, list[Any]] = {
    "long": [0, 1, 2, -3, 2**53 + 1, -(2**50)],
    "double": [0.0, -0.0, 0.1, 3.5, -7.25, 1e15, float("nan"), float("inf")],
    "text": ["", "a", "b", "é", "a long text, longer than a word"],
    "money": [Decimal(text) for text in ("0.00", "0.10", "-12345678.90", "99999999.99")],
    "time": [dt.datetime(2024, 2, 29, 12, 0, 0, us, dt.UTC) for us in (0, 1, 999_999)],
    "flag": [False, True],
    "date": [dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(1969, 12, 31)],
    "tiny": [0, 1, -1, 127, -128],
    "bytes": [b"", b"\0", b"a", b"\xff"],
    "float": [0.0, 0.5, 16777216.0, float("nan")],
    "local": [dt.datetime(2024, 3, 31, 2, 30), dt.datetime(1999, 12, 31, 23, 59, 59, 999_999)],
    "span": [dt.timedelta(0), dt.timedelta(seconds=1), dt.timedelta(days=-1)],
}


def frame(spark: Any, table: pa.Table) -> Any:
    """The rows, in chunks of which some are empty, as a DataFrame in two partitions."""
    return dataframe_of(spark, in_chunks(table), spark_of(pa.struct(list(table.schema)))).repartition(2)


def _forms() -> list[uc.Combiner]:
    path = Path(__file__).resolve().parents[1] / "combiners" / "test_laws_all.py"
    spec = importlib.util.spec_from_file_location("the_table_of_the_laws", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    forms: list[uc.Combiner] = module.FORMS
    return forms


def _over(combiner: uc.Combiner, columns: dict[str, pa.DataType]) -> uc.Combiner:
    """The combiner with its columns replaced by those of the types that it is to have."""
    text = repr(combiner)
    for role, kind in columns.items():
        text = text.replace(f"'{role}'", f"'{role}_{NAMED[kind]}'")
    made = eval(text, PUBLIC.copy())  # a repr evaluates back
    assert isinstance(made, uc.Combiner)
    return made


def _typed(place: int, form: uc.Combiner) -> list[uc.Combiner]:
    """Up to three typings of a form, chosen so that all types come."""
    typings = [s.columns for s, _ in subjects(form) if all(kind in NAMED for kind in s.columns.values())]
    assert typings, form
    turn = place % len(typings)
    # Doubles have the most ways to go wrong, so they come before those that take turns.
    ordered = sorted(typings[turn:] + typings[:turn], key=lambda columns: pa.float64() not in columns.values())
    return [_over(form, columns) for columns in ordered[:3]]


def _numbered(combiners: Iterable[uc.Combiner]) -> dict[str, uc.Combiner]:
    return {f"c{i}": combiner for i, combiner in enumerate(combiners)}


_TYPED = [_typed(place, form) for place, form in enumerate(_forms())]

EVERY = _numbered(chain.from_iterable(_TYPED))
"""A name for each, as that of a result column."""

ONE_OF_EACH = _numbered(typings[0] for typings in _TYPED)
"""The same with one typing of each form."""

A_CLASS_EACH = {name: ONE_OF_EACH[name] for name in {type(c): name for name, c in ONE_OF_EACH.items()}.values()}
"""The same with the last form of each class, which is one that can take rows back."""


def rows(count: int, seed: int, nulls: float = 0.2) -> pa.Table:
    """Rows with a key `g` that one value has most often, a part, a weight, and all columns that `EVERY` reads."""
    draw = random.Random(seed)
    keys = [draw.choice(["hot"] * 8 + ["b", "c", None]) for _ in range(count)]
    if count > 1:
        keys[0] = "alone"
    columns: dict[str, pa.Array] = {
        "g": pa.array(keys, pa.string()),
        "part": pa.array([draw.randrange(3) for _ in range(count)], pa.int32()),
        "diff": pa.array([draw.choice([1, 1, 2, -1]) for _ in range(count)], pa.int64()),
    }
    for role in "xyk":
        for name, kind in KINDS.items():
            values = [None if draw.random() < nulls else draw.choice(_VALUES[name]) for _ in range(count)]
            columns[f"{role}_{name}"] = pa.array(values, kind, from_pandas=False)
    return pa.table(columns)


def differing(
    combiners: dict[str, uc.Combiner], found: pa.Table, expected: pa.Table, source: pa.Table, key: str = "g"
) -> list[str]:
    """The differences from the expected results, in words; floats may differ by the tolerance of their combiner."""
    assert sorted(map(str, found[key].to_pylist())) == sorted(map(str, expected[key].to_pylist()))
    order = [found[key].to_pylist().index(value) for value in expected[key].to_pylist()]
    found = found.take(pa.array(order, pa.int64()))
    out = []
    for name, combiner in combiners.items():
        got, wanted = plain(found[name]), plain(expected[name])
        magnitudes = _magnitudes(combiner, source)
        slack = sum(form.tolerance(magnitudes, 2 * source.num_rows) for form in (combiner, combiner.append_only()))
        if not near(got, wanted, slack) and repr(got) != repr(wanted):
            out.append(f"{combiner!r}: {got} is not {wanted}")
    return out


def plain(column: pa.ChunkedArray) -> list[Any]:
    """Python values; maps in the order of their keys."""
    values = column.to_pylist()
    if pa.types.is_map(column.type):
        return [None if value is None else sorted(value, key=repr) for value in values]
    return values


def _magnitudes(combiner: uc.Combiner, source: pa.Table) -> list[float]:
    columns = combiner.bind(source.schema).columns
    out: list[float] = []
    for name in columns:
        kind = source[name].type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            values = np.abs(np.asarray(source[name].drop_null(), dtype=np.float64))
            out += [float(value) for value in values[np.isfinite(values)]] * 4
    return out
