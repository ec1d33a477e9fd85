"""Columns of known types as columns of JSON texts, all rows of a column at once.

Guarded by tests/changelogs/test_changelogs_json.py.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..combiners.rows.columns import flat

_NULL = pa.scalar("null")


def texts_of(rows: pa.Table) -> pa.Array:
    r"""One JSON object a row.

    >>> import pyarrow as pa
    >>> texts_of(pa.table({"k": ['a"b', None], "n": [1, 2]})).to_pylist()
    ['{"k":"a\\"b","n":1}', '{"k":null,"n":2}']
    """
    return _object(rows.column_names, [flat(column) for column in rows.columns], rows.num_rows)


def key_texts(rows: pa.Table, keys: Sequence[str]) -> pa.Array:
    """The JSON objects of the key columns."""
    return texts_of(rows.select(list(keys)))


def text_of(column: pa.Array) -> pa.Array:
    """The values of a column as JSON, `null` where they are null."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return text_of(column.dictionary_decode())
    if pa.types.is_null(kind):
        return pa.array(["null"] * len(column), pa.string())
    return pc.fill_null(_text(column, kind), _NULL)


def _text(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_struct(kind):
        fields = [pc.struct_field(column, f.name) for f in kind]
        return pc.if_else(column.is_valid(), _object([f.name for f in kind], fields, len(column)), None)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return column.cast(pa.string())
    if pa.types.is_floating(kind):
        text = column.cast(pa.float64()).cast(pa.string())
        text = pc.if_else(pc.equal(text, "-0"), "-0.0", text)  # a reader takes -0 for a whole number
        return pc.if_else(pc.is_finite(column), text, _quoted(_named(text)))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _quoted(escaped(column.cast(pa.string())))
    if pa.types.is_timestamp(kind):
        plain = column.cast(pa.timestamp(kind.unit)) if kind.tz else column
        text = pc.replace_substring(plain.cast(pa.string()), " ", "T")
        return _quoted(pc.binary_join_element_wise(text, "Z", "") if kind.tz else text)
    if pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
        return _quoted(column.cast(pa.string()))
    # Lists, maps and bytes have no text in Arrow, so Python writes their values one by one.
    texts = (
        None if value is None else json.dumps(_plain(value, kind), ensure_ascii=False) for value in column.to_pylist()
    )
    return pa.array(texts, pa.string())


def _named(text: pa.Array) -> pa.Array:
    for short, name in (("nan", "NaN"), ("inf", "Infinity")):
        text = pc.replace_substring(text, short, name)
    return pc.replace_substring(text, "-NaN", "NaN")


def escaped(text: pa.Array) -> pa.Array:
    """Texts as they stand between the quotes of JSON."""
    for plain, written in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = pc.replace_substring(text, plain, written)
    if pc.any(pc.match_substring_regex(text, r"[\x00-\x1f]")).as_py():
        for code in range(32):
            text = pc.replace_substring(text, chr(code), f"\\u{code:04x}")
    return text


def _quoted(text: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', text, '"', "")


def _object(names: Sequence[str], columns: Sequence[pa.Array], count: int) -> pa.Array:
    """Objects with these fields."""
    parts: list[Any] = []
    for name, column in zip(names, columns, strict=True):
        parts += [f"{',' if parts else '{'}{json.dumps(name, ensure_ascii=False)}:", text_of(column)]
    if not parts:
        return pa.array(["{}"] * count, pa.string())
    return pc.binary_join_element_wise(*parts, "}", "")


def _plain(value: Any, kind: pa.DataType) -> Any:
    """A value inside another as one that Python's json writes."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {f.name: _plain(value[f.name], f.type) for f in kind}
    if pa.types.is_map(kind):
        return {str(key): _plain(one, kind.item_type) for key, one in value}
    if pa.types.is_nested(kind):
        return [_plain(one, kind.value_type) for one in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value if isinstance(value, str | int | float) else json.loads(text_of(pa.array([value], kind))[0].as_py())


__all__ = ["escaped", "key_texts", "text_of", "texts_of"]
