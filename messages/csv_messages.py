"""Messages that are a line of CSV.

Guarded by tests/messages/test_csv_messages.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..combiners.rows.plain_types import plain_schema
from ..errors import InvalidArgument, TypeMismatch
from ..files.text_files import CsvRows, require_csv_options
from ..files.unreadable_rows import BadRows, TextBlock, read_rows
from .message_format import Decoded, MessageFormat, reason_of

_SEVERAL = "it has an end of a line within it"


@dataclass(frozen=True)
class Csv(MessageFormat):
    r"""Each message is a line of CSV, whose values are the columns of a schema, in their order.

    A message is bad if it is empty, if it has more values or fewer, or if a value has not the type of its column. A
    message is one line, also where a value is quoted; an end of a line after it is no part of it.

    Parameters
    ----------
    schema
        The columns.
    delimiter
        The sign between values.
    null_values
        The texts that are null, unless they are quoted.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> columns = pa.schema({"n": pa.int64(), "who": pa.string()})
    >>> format = uc.messages.Csv(columns, delimiter=";")
    >>> format.decode(pa.array([b"1;ada", b'2;"b;c"\n', b"3"])).table.to_pylist()
    [{'n': 1, 'who': 'ada'}, {'n': 2, 'who': 'b;c'}]
    """

    schema: pa.Schema
    delimiter: str = ","
    null_values: Sequence[str] = ("",)

    def __post_init__(self) -> None:
        if not isinstance(self.schema, pa.Schema):
            raise TypeMismatch(f"Csv(schema) takes an Arrow schema of the columns, not {self.schema!r}")
        names = self.schema.names
        if not names or len(set(names)) < len(names):
            raise InvalidArgument(f"Csv(schema) takes columns of different names, at least one, not {names}")
        for field in self.schema:
            if pa.types.is_nested(field.type):
                raise InvalidArgument(f"column {field.name!r} of Csv(schema) is {field.type}, which no value of CSV is")
        if isinstance(self.null_values, str):
            raise TypeMismatch("null_values= of Csv(...) takes several texts, such as ['', 'NULL']")
        object.__setattr__(self, "null_values", tuple(self.null_values))
        object.__setattr__(self, "schema", plain_schema(self.schema).remove_metadata())
        require_csv_options(self._options)

    @property
    def _options(self) -> dict[str, object]:
        return {"delimiter": self.delimiter, "null_values": list(self.null_values)}

    def decode(self, values: pa.BinaryArray) -> Decoded:
        texts = [line.removesuffix(b"\n").removesuffix(b"\r") for line in values.to_pylist()]
        reasons: list[str | None] = [
            _SEVERAL if b"\n" in text or b"\r" in text else None if text.strip() else "it is empty" for text in texts
        ]
        places = np.array([place for place, reason in enumerate(reasons) if reason is None], np.int64)
        tables, left = [self.schema.empty_table()], list[pa.Table]()
        if len(places):
            data = b"\n".join([*(texts[place] for place in places), b""])
            block = TextBlock(data, 1, len(places), is_last=True)
            read = CsvRows(self.schema.names, self.schema, self._options)
            tables += [table.cast(self.schema) for table in read_rows(block, read, BadRows("", left.append))]
        for bad in left:
            for line, cause in zip(bad["line"].to_pylist(), bad["cause"].to_pylist(), strict=True):
                reasons[places[line - 1]] = cause or "it is no such line of CSV"
        is_bad = np.array([reason is not None for reason in reasons], np.bool_)
        told = [reason_of(reason) for reason in reasons if reason is not None]
        return Decoded(pa.concat_tables(tables), pa.array(~is_bad), pa.array(told, pa.string()))


__all__ = ["Csv"]
