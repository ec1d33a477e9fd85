"""Combiners and keys from text, as the command line takes them: `total=sum:score`, or as they print themselves.

Windows and triggers have words of their own, in `windows/words.py` and `triggers/words.py`. No text is run as code: an
expression may only call public combiners with plain values.

Guarded by tests/cli/test_words.py.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from .. import combiners
from ..combiners import Combiner
from ..combiners.read_repr import EXPRESSIONS, Unreadable, read_value
from ..combiners.rows.type_names import type_named
from ..errors import InvalidArgument, UncombineError, nearest
from ..windows.texts import quoted, reading, require_short
from .conditions import expression_of, is_expression
from .parser import Parser

_COMBINERS: Mapping[str, Any] = {
    **{
        name: value
        for name in combiners.__all__
        if isinstance(value := getattr(combiners, name), type) and issubclass(value, Combiner)
    },
    **EXPRESSIONS,
}

_OF_COLUMNS = [name for name in _COMBINERS if name not in ("Combiner", "PerKey", "Struct", *EXPRESSIONS)]
"""The combiners that `function:column` can make."""

_SHORT = {
    "avg": "Mean",
    "average": "Mean",
    "std": "StdDev",
    "stddev": "StdDev",
    "var": "Variance",
    "distinct": "CountDistinct",
    "nunique": "CountDistinct",
    "percentile": "Quantile",
    "size": "Count",
}
_PERCENTILE = re.compile(r"p([1-9]\d?|99\d+)", re.IGNORECASE)


def combiner_of(text: str) -> tuple[str, Combiner]:
    """The name of a result and its combiner, from `name=function:column:argument` or `name=expression`.

    >>> combiner_of("total=sum:score"), combiner_of("n=count"), combiner_of("p=quantile:x:0.9")
    (('total', Sum('score')), ('n', Count()), ('p', Quantile('x', 0.9)))
    >>> combiner_of("p95=p95:x"), combiner_of("p=p5:x"), combiner_of("n=distinct:user")
    (('p95', Quantile('x', 0.95)), ('p', Quantile('x', 0.05)), ('n', CountDistinct('user')))
    >>> combiner_of("total=Sum('score', exact=True)")
    ('total', Sum('score', exact=True))
    """
    require_short(text, "a combiner")
    name, equals, made = text.partition("=")
    name, made = name.strip(), made.strip()
    what = "name=function:column such as total=sum:score, or total=Sum('score')"
    if not equals and ":" in text and "(" not in text:
        named = re.sub(r"\W+", "_", text)
        raise InvalidArgument(f"--combine {quoted(text)} has no name for its result: write {named}={text}")
    if not equals or not name or not made:
        raise InvalidArgument(f"--combine takes {what}, but was given {quoted(text)}")
    if "(" in made:
        return name, _value(made, what)
    function, *arguments = made.split(":")
    if (percent := _PERCENTILE.fullmatch(function)) and len(arguments) == 1:
        function, arguments = "quantile", [*arguments, f"0.{percent[1]:0>2}"]
    plain = {word.casefold(): word for word in _OF_COLUMNS} | {k: v.casefold() for k, v in _SHORT.items()}
    called = plain.get(function.casefold().replace("_", ""), "")
    called = plain.get(called, called)
    if called not in _COMBINERS:
        near = nearest(function.casefold(), plain)
        raise InvalidArgument(f"--combine {quoted(text)}: there is no {quoted(function)}, {near}")
    if called == "Count" and arguments == ["*"]:
        arguments = []
    with reading(text, what):
        try:
            return name, _COMBINERS[called](*(_plain(part, first=i == 0) for i, part in enumerate(arguments)))
        except InvalidArgument as error:
            said = re.sub(rf"write {called}\(([^()]*)\)", lambda m: f"write {name}={_words(made, m[1])}", str(error))
            raise InvalidArgument(said) from None


def _words(made: str, arguments: str) -> str:
    """A combiner in words, with the names of the arguments that it lacks, of those that it takes in Python.

    >>> _words("first:page", "'x', by")
    'first:page:COLUMN'
    """
    given = made.split(":")
    lacking = [part.strip(" '") for part in arguments.split(",")[len(given) - 1 :]]
    return ":".join([*given, *("COLUMN" if part == "by" else part for part in lacking)])


def _plain(text: str, first: bool) -> Any:
    """A column's name, or another argument as a number if it is one."""
    if first:
        return text
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return text


def _value(text: str, what: str) -> Combiner:
    with reading(text, what):
        try:
            made = read_value(text, _COMBINERS)
        except Unreadable as unreadable:
            raise InvalidArgument(_refusal(unreadable.part)) from None
    if not isinstance(made, Combiner):
        raise InvalidArgument(f"{quoted(text)} is not {what}")
    return made


def _refusal(part: ast.AST) -> str:
    """The sentence about a part of an expression that is not read."""
    if isinstance(part, ast.Name):
        return f"there is no {part.id}: {nearest(part.id, _COMBINERS)}"
    return f"{quoted(ast.unparse(part))} is neither a call of a public name nor a plain value"


def column_type(text: str) -> tuple[str, pa.DataType]:
    """The column and the type that `--type` names.

    >>> column_type("seconds=float64")
    ('seconds', DataType(double))
    """
    name, sign, word = text.partition("=")
    kind = type_named(word)
    if not sign or not name or kind is None:
        raise InvalidArgument(
            "--type takes COLUMN=TYPE with a type of Arrow, such as seconds=float64 or price=decimal(10,2), not "
            f"{text!r}"
        )
    return name, kind


def add_by(parser: Parser) -> None:
    """The option of the key."""
    parser.add_argument(
        "--by",
        action="append",
        default=[],
        metavar="COLUMN",
        help="a key column, or a new one, such as \"hour=col('ts').dt.hour()\"; may be repeated",
    )


def key_name(text: str) -> str:
    """The name of the column of a key.

    >>> key_name("user"), key_name("hour=col('ts').dt.hour()")
    ('user', 'hour')
    """
    name, sign, made = text.partition("=")
    if is_expression(text):
        raise InvalidArgument(f"--by {quoted(text)} has no name for its column: write --by name={text}")
    return name.strip() if sign and is_expression(made) else text


def with_keys(table: pa.Table, by: Sequence[str]) -> tuple[pa.Table, list[str]]:
    """The rows with the columns that `--by` computes, and the names of all key columns.

    >>> table, names = with_keys(pa.table({"n": [1, 2]}), ["n", "double=col('n') * 2"])
    >>> names, table["double"].to_pylist()
    (['n', 'double'], [2, 4])
    """
    names = [key_name(text) for text in by]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise InvalidArgument(f"--by names {twice[0]!r} twice: give it once")
    for name, text in zip(names, by, strict=True):
        if name == text:
            continue
        if name in table.column_names:
            raise InvalidArgument(
                f"--by {quoted(text)} makes a column {name!r}, and the file has one: name it otherwise"
            )
        made = expression_of(text.partition("=")[2], "--by")
        table = table.append_column(name, made.evaluate(table))
    return table, names


def add_combine(parser: Parser) -> None:
    """The option of the results."""
    parser.add_argument(
        "--combine",
        action="append",
        required=True,
        metavar="NAME=FUNCTION:COLUMN",
        help="a result, such as total=sum:score or n=count; may be repeated",
    )


def combiners_of(texts: Sequence[str]) -> dict[str, Combiner]:
    """The combiners of the results by their names."""
    results: dict[str, Combiner] = {}
    for name, combiner in map(combiner_of, texts):
        if name in results:
            raise InvalidArgument(f"--combine names two results {name!r}: give one of them another name")
        results[name] = combiner
    return results


def needed_columns(by: Sequence[str], results: Mapping[str, Combiner], schema: pa.Schema) -> frozenset[str] | None:
    """The columns of files that keys and results read; None where that is not known before the rows are.

    >>> schema = pa.schema({"user": pa.string(), "n": pa.int64(), "note": pa.string()})
    >>> sorted(needed_columns(["user"], {"total": combiners.Sum("n")}, schema))
    ['n', 'user']
    """
    names = {text for text in by if key_name(text) == text}
    for text in by:
        if text not in names:
            names |= {*expression_of(text.partition("=")[2], "--by").columns}
    try:
        return frozenset(names).union(*(combiner.bind(schema).columns for combiner in results.values()))
    except UncombineError:  # such as a result over a column that --by computes
        return None


__all__ = [
    "add_by",
    "add_combine",
    "column_type",
    "combiner_of",
    "combiners_of",
    "key_name",
    "needed_columns",
    "with_keys",
]


def __dir__() -> list[str]:
    return __all__
