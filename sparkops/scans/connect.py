"""The scan of a DataFrame of a Spark Connect session, by the message that the client would send.

Guarded by tests/sparkops/test_connect.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ...combiners.expressions.expr import Expr, col
from ...files.paths import hidden
from ..spark_private import messages
from .scan import COMPARISONS, FLIPPED, STREAM_OPTIONS, NoScan, Scan, all_of, condition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_WHOLE = ("byte", "short", "integer", "long")
_WHOLE_TYPES = ("tinyint", "smallint", "int", "bigint")


def scan_of(df: DataFrame) -> Scan:
    """The scan that a DataFrame is; raises `NoScan`."""
    frames: list[DataFrame] = []
    steps: list[Any] = []
    for message, frame in messages(df):
        frames.append(frame)
        kind = message.WhichOneof("rel_type")
        if kind not in ("project", "filter", "subquery_alias"):
            break
        steps.append(message)
    if kind != "read" or message.read.WhichOneof("read_type") != "data_source":
        raise NoScan
    source, streaming = message.read.data_source, message.read.is_streaming
    if source.format != "parquet" or source.predicates:
        raise NoScan
    names = STREAM_OPTIONS if streaming else set()
    if more := [name for name in source.options if name.lower() not in names]:
        raise NoScan(f"it has the option {more[0]}")
    if len(source.paths) != 1:
        raise NoScan("it has several paths")
    if not streaming and any(frame.storageLevel.useMemory or frame.storageLevel.useDisk for frame in frames):
        raise NoScan("it is cached")
    schema = frames[-1].schema
    columns, filter = _followed(df.sparkSession, steps, schema, message.common.plan_id)
    if streaming:
        return Scan(
            paths=tuple(source.paths),
            schema=schema,
            columns=columns,
            filter=filter,
            folders=(),
            options=dict(source.options),
        )
    files = [unquote(path) for path in df.inputFiles()]
    paths = tuple(path for path in files if not hidden(path.rpartition("/")[2]))
    if any("=" in path for path in paths):  # only the server knows the columns of folders
        raise NoScan("its files may be in folders that are columns")
    return Scan(paths=paths, schema=schema, columns=columns, filter=filter, listed_late=True)


@dataclass
class _Columns:
    """The columns after each step so far, by the number of its plan, and those after the last one."""

    spark: SparkSession
    of_plans: dict[int, dict[str, str]]
    last: dict[str, str]

    def of(self, named: Any) -> dict[str, str]:
        """The columns that a name is one of: those of the DataFrame that it was taken from, or of the last step."""
        if not named.HasField("plan_id"):
            return self.last
        if named.plan_id not in self.of_plans:
            raise NoScan("it names a column of another DataFrame")
        columns = self.of_plans[named.plan_id]
        if columns != self.last and self.spark.version.startswith("4.0."):
            raise NoScan("it names a column as it was before, which Spark 4.0 takes by its name now")
        return columns


def _followed(
    spark: SparkSession, steps: list[Any], schema: StructType, plan: int
) -> tuple[dict[str, str], Expr | None]:
    """The columns and the condition after the steps, which are given from the last to the first."""
    columns = {name: name for name in schema.names}
    scope = _Columns(spark, {plan: columns}, columns)
    conditions: list[Expr] = []
    for step in reversed(steps):
        match step.WhichOneof("rel_type"):
            case "project":
                chosen: dict[str, str] = {}
                for one in step.project.expressions:
                    for name, own in _projected(one, scope):
                        if name in chosen:
                            raise NoScan("two of its columns have one name")
                        chosen[name] = own
                scope.last = chosen
            case "filter":
                conditions += _conditions(step.filter.condition, scope, schema)
        scope.of_plans[step.common.plan_id] = scope.last
    return scope.last, all_of(conditions)


def _projected(expression: Any, scope: _Columns) -> Iterator[tuple[str, str]]:
    """The names that an expression gives to columns of the files."""
    kind = expression.WhichOneof("expr_type")
    if kind == "unresolved_star" and not expression.unresolved_star.unparsed_target:
        yield from scope.of(expression.unresolved_star).items()
    elif kind == "alias" and len(expression.alias.name) == 1 and not expression.alias.metadata:
        yield expression.alias.name[0], _column(expression.alias.expr, scope)
    else:
        column = _column(expression, scope)
        yield expression.unresolved_attribute.unparsed_identifier, column


def _column(expression: Any, scope: _Columns) -> str:
    """The column of the files for the name of a column, which must be that of the DataFrame to the letter."""
    if (
        expression.WhichOneof("expr_type") != "unresolved_attribute"
        or expression.unresolved_attribute.is_metadata_column
    ):
        raise NoScan("it computes columns")
    name: str = expression.unresolved_attribute.unparsed_identifier
    columns = scope.of(expression.unresolved_attribute)
    if name not in columns or "." in name or "`" in name:
        raise NoScan("it names a column in another way than the files")
    return columns[name]


def _conditions(expression: Any, scope: _Columns, schema: StructType) -> Iterator[Expr]:
    function = expression.unresolved_function
    if expression.WhichOneof("expr_type") != "unresolved_function" or function.is_user_defined_function:
        raise NoScan("it has a condition of more than a column and a value")
    name, arguments = function.function_name, list(function.arguments)
    if name == "and":
        for one in arguments:
            yield from _conditions(one, scope, schema)
    elif name == "isNotNull":
        yield ~col(_column(arguments[0], scope)).is_null()
    elif name in COMPARISONS and len(arguments) == 2:
        if arguments[0].WhichOneof("expr_type") == "literal":
            arguments, name = arguments[::-1], FLIPPED[name]
        column = _column(arguments[0], scope)
        yield condition(column, name, _value(arguments[1], schema[column].dataType.simpleString()))
    else:
        raise NoScan("it has a condition of more than a column and a value")


def _value(expression: Any, kind: str) -> Any:
    """A literal that compares with a column of this type as it does in Arrow."""
    if expression.WhichOneof("expr_type") != "literal":
        raise NoScan("it has a condition of more than a column and a value")
    kind_of_literal = expression.literal.WhichOneof("literal_type")
    fits = (kind_of_literal in _WHOLE and kind in _WHOLE_TYPES) or (kind_of_literal == "string" and kind == "string")
    if not fits:
        raise NoScan(f"it compares values of type {kind}")
    return getattr(expression.literal, kind_of_literal)
