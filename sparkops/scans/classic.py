"""The scan of a DataFrame of a session beside its JVM, by its logical plan.

The names are those of Spark's Catalyst classes, which no other module may know.

Guarded by tests/sparkops/scans/test_scans.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote

from pyspark.sql.types import StructType

from ...combiners.expressions.expr import Expr, col
from ...files.paths import hidden
from .scan import COMPARISONS, FLIPPED, STREAM_OPTIONS, NoScan, Scan, all_of, condition

_PARQUET = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
_OPERATORS = {
    "EqualTo": "==", "LessThan": "<", "LessThanOrEqual": "<=", "GreaterThan": ">", "GreaterThanOrEqual": ">=",
}  # fmt: skip
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def scan_of(execution: Any, streaming: bool) -> Scan:
    """The scan that a DataFrame of this execution is; raises `NoScan`."""
    # Rows that are cached are not read from files. Streams have no cache.
    plan = execution.analyzed() if streaming else execution.withCachedData()
    shown = [(attribute.name(), _id(attribute)) for attribute in _each(plan.output())]
    origins: dict[int, int] = {}
    conditions: list[Any] = []
    computed = False
    while (kind := _class(plan)) in ("Project", "Filter", "SubqueryAlias"):
        if kind == "Project":
            for one in _each(plan.projectList()):
                if _class(one) == "Alias" and _class(one.child()) == "AttributeReference":
                    origins[_id(one)] = _id(one.child())
                else:
                    computed |= _class(one) != "AttributeReference"
        elif kind == "Filter":
            conditions.append(plan.condition())
        plan = plan.child()
    names = {_id(attribute): attribute.name() for attribute in _each(plan.output())}

    def name_of(number: int) -> str:
        while number in origins:
            number = origins[number]
        return names[number]

    if kind == "StreamingRelation":
        paths, schema, folders, options = _stream(plan)
    elif kind == "LogicalRelation":
        paths, schema, folders, options = _bounded(plan)
    else:
        raise NoScan
    if computed:
        raise NoScan("it computes columns")
    if list(names.values()) != schema.names:
        raise NoScan("it has columns that are in no file")
    columns = {name: name_of(number) for name, number in shown}
    if len(columns) < len(shown):
        raise NoScan("two of its columns have one name")
    filter = all_of([one for whole in conditions for one in _conditions(whole, name_of)])
    return Scan(paths=paths, schema=schema, columns=columns, filter=filter, folders=folders, options=options)


def _stream(plan: Any) -> tuple[tuple[str, ...], StructType, tuple[str, ...], dict[str, str]]:
    source = plan.dataSource()
    if source.className() != "parquet" or source.catalogTable().isDefined():
        raise NoScan
    all_options = _options(source.options())
    options = {name: value for name, value in all_options.items() if name.lower() != "path"}
    paths = [value for name, value in all_options.items() if name.lower() == "path"]
    _require_options(options, STREAM_OPTIONS)
    if len(paths) != 1:
        raise NoScan("it has several paths")
    return tuple(paths), _struct(plan.schema()), (), options


def _bounded(plan: Any) -> tuple[tuple[str, ...], StructType, tuple[str, ...], dict[str, str]]:
    relation = plan.relation()
    if _class(relation) != "HadoopFsRelation" or relation.fileFormat().getClass().getName() != _PARQUET:
        raise NoScan
    if plan.catalogTable().isDefined() or _class(relation.location()) != "InMemoryFileIndex":
        raise NoScan("it is a table")
    _require_options(_options(relation.options()), {"path"})
    files = [unquote(path) for path in relation.location().inputFiles()]
    paths = tuple(path for path in files if not hidden(path.rpartition("/")[2]))
    return paths, _struct(relation.schema()), tuple(_struct(relation.partitionSchema()).names), {}


def _require_options(options: dict[str, str], names: set[str]) -> None:
    if more := [name for name in options if name.lower() not in names]:
        raise NoScan(f"it has the option {more[0]}")


def _conditions(expression: Any, name_of: Any) -> Iterator[Expr]:
    """The conditions that must all be true, each of a column and a value."""
    kind = _class(expression)
    if kind == "And":
        yield from _conditions(expression.left(), name_of)
        yield from _conditions(expression.right(), name_of)
    elif kind == "IsNotNull" and _class(expression.child()) == "AttributeReference":
        yield ~col(name_of(_id(expression.child()))).is_null()
    elif kind in _OPERATORS:
        left, right, comparison = expression.left(), expression.right(), _OPERATORS[kind]
        if _class(left) != "AttributeReference":
            left, right, comparison = right, left, FLIPPED[comparison]
        assert comparison in COMPARISONS
        if _class(left) != "AttributeReference":
            raise NoScan("it has a condition of more than a column and a value")
        yield condition(name_of(_id(left)), comparison, _value(right, left.dataType().sql().lower()))
    else:
        raise NoScan("it has a condition of more than a column and a value")


def _value(expression: Any, kind: str) -> Any:
    """A literal that has the type of its column, and compares there as it does in Arrow."""
    if _class(expression) == "Cast" and kind in _WHOLE:
        expression = expression.child()
        if expression.dataType().sql().lower() not in _WHOLE[: _WHOLE.index(kind) + 1]:
            raise NoScan("it compares values of two types")
    elif expression.dataType().sql().lower() != kind:
        raise NoScan("it compares values of two types")
    if _class(expression) != "Literal" or expression.value() is None:
        raise NoScan("it has a condition of more than a column and a value")
    value = expression.value()
    if kind in _WHOLE:
        return int(value)
    if kind == "string" and expression.dataType().toString() == "StringType":
        return value.toString()
    if kind == "timestamp":
        try:
            return _EPOCH + timedelta(microseconds=int(value))
        except OverflowError:
            raise NoScan("it compares times outside the years 1 to 9999") from None
    raise NoScan(f"it compares values of type {kind}")


def _options(options: Any) -> dict[str, str]:
    names = options.keySet().mkString("\n")
    return {name: options.apply(name) for name in names.split("\n") if name}


def _struct(schema: Any) -> StructType:
    return StructType.fromJson(json.loads(schema.json()))


def _each(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(i) for i in range(sequence.size()))


def _class(value: Any) -> str:
    name: str = value.getClass().getSimpleName()
    return name


def _id(expression: Any) -> int:
    number: int = expression.exprId().id()
    return number
