"""Tables in several chunks, of which some have no rows: as a filter, or a concatenation, leaves them."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa


def in_chunks(table: pa.Table) -> pa.Table:
    """The same rows in chunks of different sizes, with empty ones before, between and after them."""
    none, cuts = table.slice(0, 0), sorted({0, table.num_rows // 3, table.num_rows // 2, table.num_rows})
    parts = [table.slice(start, stop - start) for start, stop in pairwise(cuts)]
    return pa.concat_tables([none, *(one for part in parts for one in (part, none))])
