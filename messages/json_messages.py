"""Messages that are objects of JSON.

Guarded by tests/messages/test_message_formats.py and tests/changelogs/test_changelogs_json.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..combiners.rows.plain_types import plain_schema
from ..errors import InvalidArgument, TypeMismatch
from .json_columns.json_faults import fault_of
from .json_columns.json_in import Texts
from .message_format import Decoded, MessageFormat, decoded

TOLD = 1000
"""The most bad messages of one call whose faults are told one by one; of the others it is said that they are bad."""


@dataclass(frozen=True)
class Json(MessageFormat):
    """Each message is an object of JSON, whose members are the columns of a schema.

    A member that a message lacks is null, and one that the schema lacks is not read. Whole numbers become times by the
    unit of their type, and texts as ISO 8601 has them; a text without a zone is in UTC. Bytes are texts in Base64. A
    message is bad if it is no object, or if a member has not the type of its column.

    Parameters
    ----------
    schema
        The columns.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> columns = pa.schema({"n": pa.int64(), "at": pa.timestamp("ms", "UTC")})
    >>> values = pa.array([b'{"n": 1, "at": "2024-05-01T12:00:00Z"}', b"[1]"])
    >>> uc.messages.Json(columns).decode(values).reasons.to_pylist()
    ['it is no object of JSON']
    """

    schema: pa.Schema

    def __post_init__(self) -> None:
        if not isinstance(self.schema, pa.Schema):
            raise TypeMismatch(f"Json(schema) takes an Arrow schema of the columns, not {self.schema!r}")
        names = self.schema.names
        if not names or len(set(names)) < len(names):
            raise InvalidArgument(f"Json(schema) takes columns of different names, at least one, not {names}")
        object.__setattr__(self, "schema", plain_schema(self.schema).remove_metadata())

    def decode(self, values: pa.BinaryArray) -> Decoded:
        rows, bad = Texts("value", self.schema)(pa.table({"value": values}))
        places = np.flatnonzero(bad)
        reasons = [fault_of(values[int(place)].as_py(), self.schema) for place in places[:TOLD]]
        return decoded(rows, bad, reasons + ["it is no such object of JSON"] * (len(places) - len(reasons)))


__all__ = ["Json"]
