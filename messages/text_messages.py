"""Messages that are one text, or bytes that nobody looks into.

Guarded by tests/messages/test_message_formats.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument
from .json_columns.json_texts import utf8_of
from .message_format import Decoded, MessageFormat, decoded


@dataclass(frozen=True)
class Text(MessageFormat):
    r"""Each message is a text in UTF-8; bytes that are none are bad.

    Parameters
    ----------
    name
        The name of the column.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> table, good, reasons = uc.messages.Text("line").decode(pa.array([b"one", b"\xff"]))
    >>> table.to_pylist(), reasons.to_pylist()
    ([{'line': 'one'}], ['it is no text in UTF-8'])
    """

    name: str = "value"

    def __post_init__(self) -> None:
        _require_name(self)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(self.name, pa.string())])

    def decode(self, values: pa.BinaryArray) -> Decoded:
        texts = utf8_of(values)
        bad = np.asarray(texts.is_null())
        return decoded(pa.table([texts], schema=self.schema), bad, ["it is no text in UTF-8"] * int(bad.sum()))


@dataclass(frozen=True)
class Bytes(MessageFormat):
    """Each message is its bytes; none is bad.

    Parameters
    ----------
    name
        The name of the column.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> uc.messages.Bytes().decode(pa.array([b"one"])).table.to_pylist()
    [{'value': b'one'}]
    """

    name: str = "value"

    def __post_init__(self) -> None:
        _require_name(self)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(self.name, pa.binary())])

    def decode(self, values: pa.BinaryArray) -> Decoded:
        return decoded(pa.table([values.cast(pa.binary())], schema=self.schema), np.zeros(len(values), np.bool_), [])


def _require_name(format: Text | Bytes) -> None:
    if not isinstance(format.name, str) or not format.name:
        raise InvalidArgument(f"{type(format).__name__}() takes the name of its column, not {format.name!r}")


__all__ = ["Bytes", "Text"]
