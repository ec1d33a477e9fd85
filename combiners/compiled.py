"""Combiners compiled on the schema of their input: the parts, and the results from the parts' accumulators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ..errors import NotRetractable, require_column
from .algebra import Accumulators, Capability, Weights, weakest
from .parts import Part, PartRows, remedy_of
from .rows.columns import Column
from .rows.groups import Groups
from .rows.plain_types import as_plain, plain_schema, text_room

Finish: TypeAlias = Callable[[Sequence[Accumulators]], pa.Array]
"""Makes the results from the accumulators of the parts, in the order of the parts."""


AtOnce: TypeAlias = Callable[[Groups, Sequence[Column], np.ndarray], pa.Array]
"""Makes the results of each group of weighted rows, without accumulators."""

Whole: TypeAlias = Callable[[int, Sequence[pa.Array]], "pa.Scalar | None"]
"""Makes the result of one group from the number of its rows and the inputs of the first part, plain arrays in which
no null is that the part does not take. None declines: `add` and `finish` compute the result."""


@dataclass(frozen=True)
class ByRank:
    """The ranks of the values of which a result is made, for who can find values by rank without an accumulator."""

    quantiles: tuple[float, ...]
    """The parts of the way from the least value to the greatest: of n values, place q (n - 1)."""
    finish: Callable[[Sequence[tuple[pa.Array, pa.Array, np.ndarray]]], pa.Array]
    """Makes the results from the values below and above each place, and the part of the way between them."""


@dataclass(frozen=True)
class CompiledCombiner:
    """A combiner on a known schema: its parts, and `finish`, which makes the results from their accumulators."""

    parts: tuple[Part, ...]
    finish: Finish
    output: pa.DataType
    """The type of the results."""
    additive: bool = False
    """True if results add up, so that the difference of two is the result of the rows between them."""
    at_once: AtOnce | None = None
    """The same results from the rows of the only part, if all are there and no state is kept; None if that is no
    faster."""
    whole: Whole | None = None
    """The same result, to the last bit, from the rows of one group without weights, if all parts read the rows of the
    first; None if it is made of accumulators only."""
    by_rank: ByRank | None = None
    """The same results from the values of some ranks, of the only input of the only part."""
    counts_different: bool = False
    """True if the result is the number of different rows of the inputs of the only part."""

    @property
    def capability(self) -> Capability:
        """The promise on this schema; never less than the combiner's own capability."""
        return weakest([part.fn.capability for part in self.parts])


class CompiledPlan:
    """Named compiled combiners on one schema, as one thing to add, merge, uncombine and extract.

    `fields` are the accumulator columns of all the different parts, in the order of the parts.
    """

    def __init__(self, compiled: Mapping[str, CompiledCombiner], schema: pa.Schema) -> None:
        self.schema = plain_schema(schema)
        same = self.schema is schema
        self._cast = [] if same else [f.name for f in schema if f.type != self.schema.field(f.name).type]
        """The columns that come as a large type or as a view."""
        self.compiled = dict(compiled)
        self.parts: tuple[Part, ...] = tuple(
            dict.fromkeys(part for one in self.compiled.values() for part in one.parts)
        )
        self.columns: tuple[str, ...] = tuple(dict.fromkeys(name for part in self.parts for name in part.columns))
        for name in self.columns:
            require_column(name, self.schema.names, "the aggregation")
        self._slices: dict[Part, slice] = {}
        fields: list[pa.Field] = []
        for i, part in enumerate(self.parts):
            label = getattr(part.fn, "label", type(part.fn).__name__.lower())
            self._slices[part] = slice(len(fields), len(fields) + len(part.fn.fields))
            fields += [field.with_name(f"{i}.{label}.{field.name}") for field in part.fn.fields]
        self.fields: tuple[pa.Field, ...] = tuple(fields)

    @property
    def capability(self) -> Capability:
        """The promise of all the combiners together."""
        return weakest([one.capability for one in self.compiled.values()])

    @property
    def outputs(self) -> list[pa.Field]:
        """The result columns."""
        return [pa.field(name, one.output) for name, one in self.compiled.items()]

    def places_of(self, name: str) -> list[int]:
        """The places in `fields` of the accumulators that a combiner reads, part by part."""
        return [place for part in self.compiled[name].parts for place in self.places_of_part(part)]

    def places_of_part(self, part: Part) -> range:
        """The places in `fields` of the accumulators of a part."""
        place = self._slices[part]
        return range(place.start, place.stop)

    def require_retractable(self, why: str) -> None:
        """Raise `NotRetractable`, naming the combiner, unless all of them can retract rows."""
        for name, one in self.compiled.items():
            if one.capability is Capability.MONOID:
                raise NotRetractable(f"{name}= is a MONOID combiner and {why}: {remedy_of(one.parts)}")

    def add(self, groups: Groups, table: pa.Table | pa.RecordBatch, weights: Weights = None) -> Accumulators:
        """The accumulators of a table's rows."""
        rows = self.part_rows(groups, table, weights)
        with text_room:
            return tuple(a for part in self.parts for a in _added(part, rows))

    def results(self, groups: Groups, table: pa.Table | pa.RecordBatch, weights: Weights = None) -> list[pa.Array]:
        """The results of a table's rows, one column a combiner, as those of `extract` after `add`."""
        rows = self.part_rows(groups, table, weights)
        used = Counter(part for one in self.compiled.values() for part in one.parts)
        added: dict[Part, Accumulators] = {}
        out: list[pa.Array] = []
        with text_room:
            for one in self.compiled.values():
                if one.at_once is not None and weights is not None and used[one.parts[0]] == 1:
                    part_groups, columns, part_weights = rows.of(one.parts[0])
                    assert part_weights is not None
                    out.append(one.at_once(part_groups, columns, part_weights))
                    continue
                added |= {part: _added(part, rows) for part in one.parts if part not in added}
                out.append(one.finish([added[part] for part in one.parts]))
        return out

    def part_rows(self, groups: Groups, table: pa.Table | pa.RecordBatch, weights: Weights = None) -> PartRows:
        """The rows of a table as the parts read them."""
        if weights is not None and len(weights) and int(weights.min()) < 0:
            self.require_retractable("the input has negative weights")
        for name in self._cast:
            if name in self.columns:
                place = table.schema.get_field_index(name)
                table = table.set_column(place, name, as_plain(table[name], self.schema.field(name).type))
        return PartRows(groups, table, weights)

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        """The sums of the accumulators in each group."""
        with text_room:
            return tuple(a for part in self.parts for a in part.fn.merge(groups, accumulators[self._slices[part]]))

    @property
    def divisible(self) -> tuple[int, ...]:
        """The places of the columns whose accumulators may be kept in several parts."""
        return tuple(
            place
            for part in self.parts
            if part.fn.divisible
            for place in range(self._slices[part].start, self._slices[part].stop)
        )

    def merge_divisible(self, groups: Groups, columns: Accumulators) -> Accumulators:
        """The sums in each group of the divisible columns alone, in their order."""
        out: list[pa.Array] = []
        with text_room:
            for part in self.parts:
                if part.fn.divisible:
                    width = len(part.fn.fields)
                    out += part.fn.merge(groups, columns[len(out) : len(out) + width])
        return tuple(out)

    def of_part(self, part: Part, accumulators: Accumulators) -> Accumulators:
        """The columns of one part."""
        return accumulators[self._slices[part]]

    def zero(self, count: int) -> Accumulators:
        """`count` accumulators of no rows."""
        return tuple(a for part in self.parts for a in part.fn.zero(count))

    def is_zero(self, accumulators: Accumulators, names: Collection[str] | None = None) -> np.ndarray:
        """True where all GROUP parts, of some combiners, are zero; rounding leaves a residue in other parts."""
        zero = np.ones(len(accumulators[0]) if accumulators else 0, np.bool_)
        asked = None if names is None else {part for name in names for part in self.compiled[name].parts}
        for part in self.parts:
            if part.fn.capability is Capability.GROUP and (asked is None or part in asked):
                zero &= part.fn.is_zero(accumulators[self._slices[part]])
        return zero

    def negate(self, accumulators: Accumulators) -> Accumulators:
        """The inverse of each accumulator."""
        return tuple(a for part in self.parts for a in part.fn.negate(accumulators[self._slices[part]]))

    def uncombine(self, accumulators: Accumulators, others: Accumulators) -> Accumulators:
        """`accumulators - others`, row by row."""
        out: list[pa.Array] = []
        for part in self.parts:
            place = self._slices[part]
            out += part.fn.uncombine(accumulators[place], others[place])
        return tuple(out)

    def extract(self, accumulators: Accumulators) -> list[pa.Array]:
        """The results, one column a combiner."""
        with text_room:
            return [
                one.finish([accumulators[self._slices[part]] for part in one.parts]) for one in self.compiled.values()
            ]

    def extract_one(self, name: str, accumulators: Accumulators, places: pa.Array) -> pa.Array:
        """The results of one combiner, from the accumulators at these places."""
        one = self.compiled[name]
        with text_room:
            return one.finish([tuple(a.take(places) for a in self.of_part(part, accumulators)) for part in one.parts])


def _added(part: Part, rows: PartRows) -> Accumulators:
    """The accumulators of a part's rows."""
    groups, columns, weights = rows.of(part)
    return part.fn.add(groups, *columns, weights=weights)
