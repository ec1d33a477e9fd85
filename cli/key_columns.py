"""Key columns from text, as `--by` takes them: the name of a column, or a new one, `hour=col('ts').dt.hour()`.

Guarded by tests/cli/test_key_columns.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ..errors import InvalidArgument
from ..windows.texts import quoted
from .conditions import expression_of, is_expression


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


__all__ = ["key_name", "with_keys"]


def __dir__() -> list[str]:
    return __all__
