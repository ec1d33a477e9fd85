"""A format of messages: bytes, one value for each message, become rows of Arrow columns.

A format is a value. It knows its columns before it has seen a message, and each message is judged by itself: it is
good, and gives one row, or it is bad, and gives the reason. So `decode` of two parts is that of the whole, and no
message makes another one bad. The bytes of a message never raise. A registry that cannot be reached does, because the
message is not at fault.

Guarded by tests/messages/test_message_formats.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from ..errors import NamedOptions

LONGEST_REASON = 200
"""The most characters of a reason, which may have a value of the message in it."""


class Decoded(NamedTuple):
    r"""Messages that were decoded.

    >>> import pyarrow as pa, uncombine as uc
    >>> decoded = uc.messages.Text("line").decode(pa.array([b"one", b"\xff"]))
    >>> decoded.table.to_pylist(), decoded.good.to_pylist()
    ([{'line': 'one'}], [True, False])
    """

    table: pa.Table
    """One row for each good message, in the order of the messages."""
    good: pa.BooleanArray
    """True for a message that has a row."""
    reasons: pa.StringArray
    """The reason of each bad message, in the order of the messages."""


class MessageFormat(NamedOptions, ABC):
    """The form in which values stand in messages.

    >>> import pyarrow as pa, uncombine as uc
    >>> format = uc.messages.Json(pa.schema({"n": pa.int64()}))
    >>> table, good, reasons = format.decode(pa.array([b'{"n": 1}', b'{"n": "one"}', b"{"]))
    >>> table.to_pylist(), good.to_pylist()
    ([{'n': 1}], [True, False, False])
    """

    if TYPE_CHECKING:

        @property
        def schema(self) -> pa.Schema:
            """The columns of the rows. A format with a registry asks it, once, for those of its subject."""

    @abstractmethod
    def decode(self, values: pa.BinaryArray) -> Decoded:
        """The rows of messages, none of which is null; the columns are those of `schema`."""

    def settled(self, topic: str | None = None, part: str = "value") -> MessageFormat:
        """The format with its columns decided, for the values or the keys (`part="key"`) of a topic.

        A flow calls this once, where it is built. The format that it gives has the same columns in every process, also
        when a registry gets a new version in between.
        """
        return self


def decoded(table: pa.Table, bad: np.ndarray, reasons: Sequence[str]) -> Decoded:
    """The messages whose rows are in a table with one row for each message, of which the bad ones are left out.

    >>> import pyarrow as pa
    >>> decoded(pa.table({"n": [1, None]}), np.array([False, True]), ["no number"]).table.to_pylist()
    [{'n': 1}]
    """
    if bad.any():
        table = table.filter(pa.array(~bad))
    return Decoded(table, pa.array(~bad), pa.array([reason_of(reason) for reason in reasons], pa.string()))


def reason_of(error: object) -> str:
    r"""The words of an error about a message, short and fit to print.

    >>> reason_of("it begins with\n\x00")
    'it begins with'
    """
    text = str(error).partition("\n")[0]
    if not text.isprintable():
        text = text.encode("ascii", "backslashreplace").decode()
    return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}..."


__all__ = ["Decoded", "MessageFormat", "decoded", "reason_of"]
