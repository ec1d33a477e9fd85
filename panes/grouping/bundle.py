"""A bundle as its step uses it: good rows, and the cells that they make.

Guarded by tests/panes/grouping/test_properties.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..signals import SignalInput, Told, told
from ..state.hashes import key_hashes, lookup
from ..state.operator_state import OperatorState
from .cells import Cells
from .clocks import Clocks
from .compiled import CompiledGrouping
from .rows import Rows, good_rows, rounds
from .rows_to_cells import cells_of

NOTHING_TOLD = Told(bits=0, bad=np.empty(0, np.int64))
"""No signals."""


@dataclass(frozen=True)
class Signalled:
    """The rows or cells of a bundle, and the signals in it."""

    contents: pa.Table | Cells
    tables: Sequence[pa.Table]
    """The signals of each port after the first."""
    before: int
    """The number of rows of the first port, after which the places of signals are counted."""

    def told(self, inputs: Sequence[SignalInput], latest: int) -> Told:
        """The signals that are good; `latest` is the last time that a row may have."""
        found = told(inputs, self.tables, latest)
        return Told(bits=found.bits, bad=self.before + found.bad)


@dataclass(frozen=True)
class Bundle:
    """A bundle of rows, or of cells that were made elsewhere."""

    rows: Rows
    """The good rows; none where the bundle is of cells."""
    cells: Cells | None
    """The cells of the whole bundle; None where triggers are asked for each record, so that a round has its own."""
    told: Told = NOTHING_TOLD
    """The signals of the bundle."""

    @classmethod
    def of(cls, compiled: CompiledGrouping, contents: pa.Table | Cells, clocks: Clocks) -> Bundle:
        """The bundle of a step over these rows or cells."""
        if isinstance(contents, Cells):
            counted = contents.counted(clocks.output_watermark) if "latest" in compiled.grouping.extents else contents
            return cls(Rows.none(compiled.schema, contents.bad), counted)
        rows = good_rows(compiled.grouping, contents, clocks.now)
        each_record = compiled.grouping.granularity == "record"
        return cls(rows, None if each_record else cells_of(compiled, rows, clocks.output_watermark))

    def touched(self, compiled: CompiledGrouping, state: OperatorState) -> np.ndarray:
        """The hashes of the windows in the store that the bundle may concern, for `Store.take`."""
        count = len(self.rows) if self.cells is None else len(self.cells)
        if count == 0 or not (len(state.windows) or state.atoms):
            return np.empty(0, np.uint32)
        if compiled.grouping.window.merging:
            return lookup(key_hashes(self.rows.keys if self.cells is None else self.cells.keys, count))
        cells = cells_of(compiled, self.rows, state.output_watermark) if self.cells is None else self.cells
        return lookup(compiled.hashes(cells.keys, cells.start))

    def rounds(self, compiled: CompiledGrouping, clocks: Clocks) -> Iterator[tuple[Rows, Cells]]:
        """The rounds in which rows are taken in, each with its cells: the whole bundle, or one record of each key."""
        if self.cells is not None:
            if len(self.rows) or len(self.cells) or self.cells.unassigned:
                yield self.rows, self.cells
        elif len(self.rows):
            for rows in rounds(self.rows):  # a round may depend on the one before it, so they cannot be done at once
                yield rows, cells_of(compiled, rows, clocks.output_watermark)
