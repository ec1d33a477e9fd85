"""Checks of tables, so that no computation sees a table of a damaged file that breaks its own layout.

Without them the second damaged Arrow file of the tests ends the process, with pyarrow 26.0.1.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt


def validated(table: pa.Table) -> pa.Table:
    """The table itself; raise `ArrowInvalid` if a column breaks its own layout or has values without a meaning.

    Offsets, indices of dictionaries, lengths and texts come from the file unchecked. A wrong one reads memory outside
    the table.

    >>> import pyarrow as pa
    >>> offsets = pa.py_buffer(np.array([0, 9, 1], np.int32))
    >>> wrong = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"a")])
    >>> validated(pa.table({"s": wrong}))
    Traceback (most recent call last):
    ...
    pyarrow.lib.ArrowInvalid: column 's': Offset invariant failure: offset for slot 1 out of bounds: 9 > 1
    """
    for name, column in zip(table.column_names, table.columns, strict=True):
        if len(column) != table.num_rows:
            raise pa.ArrowInvalid(f"column {name!r} has {len(column)} rows and its table {table.num_rows}")
        for chunk in column.chunks:
            try:
                _require_valid(chunk)
            except pa.ArrowException as error:
                reason = str(error).partition("\n")[0].removeprefix("In chunk 0: ").removeprefix("Invalid: ")
                raise pa.ArrowInvalid(f"column {name!r}: {reason}") from None
    return table


def _require_valid(array: pa.Array) -> None:
    """Raise unless an array is sound. Texts and dictionaries have checks faster than Arrow's own full check."""
    array.validate()
    if pt.is_string(array.type) and len(array):
        array.view(pa.binary()).validate(full=True)
        if not _ascii(array):
            array.validate(full=True)
    elif pt.is_dictionary(array.type):
        array.indices.validate(full=True)
        bounds = pc.min_max(array.indices)
        low, high = bounds["min"].as_py(), bounds["max"].as_py()
        if low is not None and not 0 <= low <= high < len(array.dictionary):
            raise pa.ArrowInvalid(
                f"an index is {low if low < 0 else high}, and there are {len(array.dictionary)} values"
            )
        _require_valid(array.dictionary)
    else:
        array.validate(full=True)


def _ascii(array: pa.Array) -> bool:
    _, offsets, data = array.buffers()
    if data is None:
        return True
    bounds = np.frombuffer(offsets, np.int32)[[array.offset, array.offset + len(array)]]
    used = np.frombuffer(data, np.int8)[bounds[0] : bounds[1]]
    return not len(used) or bool(used.min() >= 0)
