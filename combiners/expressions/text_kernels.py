"""The operations of texts, computed on Arrow arrays and scalars.

Guarded by tests/combiners/expressions/test_text_methods.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from .operands import text_operand


def concat(*values: Any, separator: str = "") -> Any:
    """The texts of each row one after the other; null if one of them is."""
    texts = [text_operand(value) for value in values]
    kind = pa.large_string() if any(pt.is_large_string(text.type) for text in texts) else pa.string()
    return pc.binary_join_element_wise(*(text.cast(kind) for text in texts), pa.scalar(separator, kind))


def _of_texts(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel over texts; of a dictionary it is computed once for each of its values."""

    def run(value: Any, *args: Any, **options: Any) -> Any:
        if not pt.is_dictionary(value.type) or isinstance(value, pa.Scalar):
            return kernel(text_operand(value), *args, **options)
        chunks = [value] if isinstance(value, pa.Array) else value.chunks or [pa.nulls(0, value.type)]
        done = [kernel(text_operand(chunk.dictionary), *args, **options).take(chunk.indices) for chunk in chunks]
        return done[0] if isinstance(value, pa.Array) else pa.chunked_array(done)

    return run


def _strip(white: Callable[..., Any], some: Callable[..., Any]) -> Callable[..., Any]:
    return lambda text, characters=None: white(text) if characters is None else some(text, characters=characters)


def _contains(text: Any, pattern: str, literal: bool = False) -> Any:
    return (pc.match_substring if literal else pc.match_substring_regex)(text, pattern=pattern)


def _replace(most: int | None) -> Callable[..., Any]:
    def replace(text: Any, pattern: str, value: str, literal: bool = False) -> Any:
        kernel = pc.replace_substring if literal else pc.replace_substring_regex
        return kernel(text, pattern=pattern, replacement=value, max_replacements=most)

    return replace


def _slice(text: Any, offset: int, length: int | None = None) -> Any:
    if length is None or offset >= 0:
        return pc.utf8_slice_codeunits(text, start=offset, stop=None if length is None else offset + length)
    return pc.utf8_slice_codeunits(pc.utf8_slice_codeunits(text, start=offset), start=0, stop=length)


def _split_part(text: Any, by: str, index: int) -> Any:
    if isinstance(text, pa.Scalar):
        return _split_part(pa.array([text.as_py()], text.type), by, index)[0]
    if isinstance(text, pa.ChunkedArray):
        return pa.chunked_array([_split_part(chunk, by, index) for chunk in text.chunks], text.type)
    parts = pc.split_pattern(text, pattern=by)
    begin, end = np.asarray(parts.offsets[:-1]), np.asarray(parts.offsets[1:])
    place = (begin if index >= 0 else end).astype(np.int64) + index
    return parts.values.take(pa.array(place, mask=(place < begin) | (place >= end)))


def _length(kernel: Callable[..., Any]) -> Callable[..., Any]:
    return lambda text: kernel(text).cast(pa.int64())


TEXT_KERNELS: dict[str, Callable[..., Any]] = {
    f"str.{name}": _of_texts(kernel)
    for name, kernel in {
        "to_lowercase": pc.utf8_lower,
        "to_uppercase": pc.utf8_upper,
        "strip_chars": _strip(pc.utf8_trim_whitespace, pc.utf8_trim),
        "strip_chars_start": _strip(pc.utf8_ltrim_whitespace, pc.utf8_ltrim),
        "strip_chars_end": _strip(pc.utf8_rtrim_whitespace, pc.utf8_rtrim),
        "contains": _contains,
        "starts_with": lambda text, prefix: pc.starts_with(text, pattern=prefix),
        "ends_with": lambda text, suffix: pc.ends_with(text, pattern=suffix),
        "replace": _replace(1),
        "replace_all": _replace(None),
        "slice": _slice,
        "split_part": _split_part,
        "len_chars": _length(pc.utf8_length),
        "len_bytes": _length(pc.binary_length),
    }.items()
}
