"""A grouping compiled on the schema of its input: one value, made once, that every part of a step reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...combiners import Plan
from ...combiners.algebra import Accumulators
from ...triggers import compile_trigger, percentiles
from ...triggers.leaf_nodes import SignalNode
from ...triggers.program import Fact, Node
from ...windows.grid import later
from ...windows.times import MIN_TIME
from ..state.hashes import key_hashes
from .grouping import Grouping
from .loaded_windows import BASE, EXTENT, Shape
from .pane_columns import output_schema, record_type


@dataclass(frozen=True)
class CompiledGrouping:
    """A grouping, and everything that follows from it and from the schema of its input."""

    grouping: Grouping
    schema: pa.Schema
    """The schema of the input."""
    plan: Plan
    """The combiners on that schema."""
    trigger: Node
    """The trigger as columns, asked for many windows at once."""
    percents: tuple[float, ...]
    """The percentiles of the watermark that the trigger waits for."""
    facts: tuple[Fact, ...]
    """The sums over rows that the trigger needs."""
    record: pa.StructType
    """The type of an outstanding pane."""
    shape: Shape
    """The columns of windows."""
    output_schema: pa.Schema
    since: Mapping[str, int] = field(default_factory=dict)
    """For each combiner that was added without a history: the start of the first windows of which it has all rows."""

    @classmethod
    def of(cls, grouping: Grouping, schema: pa.Schema) -> CompiledGrouping:
        """Compile a grouping; raises if it does not fit the schema."""
        plan = grouping.plan(schema)
        trigger = compile_trigger(grouping.effective_trigger)
        for place, node in enumerate(node for node in trigger.nodes() if isinstance(node, SignalNode)):
            node.bit = 1 << place
        facts = tuple({fact.name: fact for fact in trigger.facts()}.values())
        output, record = output_schema(grouping.by, plan, schema), record_type(grouping, plan)
        extents = {name: EXTENT[name] for name in grouping.extents}
        key_types = [field.type for field in output][: len(grouping.by)]
        outstanding = record if grouping.keeps_last else None
        shape = Shape(
            key_types=key_types,
            numbers={**BASE, **extents},
            trigger=trigger.columns(),
            acc_fields=plan.fields,
            record=outstanding,
        )
        percents = percentiles(grouping.effective_trigger)
        return cls(
            grouping=grouping,
            schema=schema,
            plan=plan,
            trigger=trigger,
            percents=percents,
            facts=facts,
            record=record,
            shape=shape,
            output_schema=output,
        )

    def expiry(self, end: np.ndarray) -> np.ndarray:
        """The expiry of windows that end then: the end and the allowed lateness."""
        lateness = int(self.grouping.allowed_lateness)
        return later(end, lateness) if lateness else end

    def results(self, start: np.ndarray, acc: Accumulators) -> list[pa.Array]:
        """The results of windows that start then: null of a combiner that has not all their rows."""
        results = self.plan.extract(acc)
        for at, name in enumerate(self.plan.compiled):
            if name in self.since:
                results[at] = pc.if_else(pa.array(self.lacks(name, start)), None, results[at])
        return results

    def lacks(self, name: str, start: np.ndarray) -> np.ndarray:
        """True for windows that start then if a combiner has not all their rows, since it was added later."""
        return start < self.since.get(name, MIN_TIME)

    def is_zero(self, start: np.ndarray, acc: Accumulators) -> np.ndarray:
        """True for windows that start then if the accumulators of all combiners that have all their rows are zero."""
        zero = self.plan.is_zero(acc, [name for name in self.plan.compiled if name not in self.since])
        for name in self.since:
            zero &= self.plan.is_zero(acc, [name]) | self.lacks(name, start)
        return zero

    def hashes(self, keys: Sequence[pa.Array], start: np.ndarray) -> np.ndarray:
        """The hashes by which windows are found: of the key, and of the start too where windows do not merge."""
        return key_hashes(keys, len(start), None if self.grouping.window.merging else start)
