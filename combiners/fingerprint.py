"""Hashes of multisets of rows, which do not depend on the order of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from .algebra import Accumulators, Capability, Weights
from .combiner import Combiner
from .compiled import CompiledCombiner
from .distinct_counts import as_inputs, inputs_of
from .input_types import Input, expression, input_type
from .parts import Part
from .rows.columns import Column
from .rows.group_sums import sum_int64
from .rows.groups import Groups
from .rows.hashing import hash_rows_128, require_hash, require_seed
from .states.vectors import VectorFn, int64s

_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)


@dataclass(frozen=True)
class HashSumFn(VectorFn):
    """The sums, modulo 2**64, of two hashes of each row times its weight."""

    arity: int
    seed: int = 0
    label = "fingerprint"

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return (pa.field("low", pa.int64()), pa.field("high", pa.int64()))

    @property
    def nullable(self) -> tuple[bool, ...]:
        return (True,) * self.arity

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        lanes = (lane.view(np.int64) for lane in hash_rows_128(columns, self.seed))
        return tuple(pa.array(sum_int64(groups, lane if weights is None else lane * weights)) for lane in lanes)


@dataclass(frozen=True, repr=False)
class Fingerprint(Combiner):
    """A hash of 128 bits, as 32 hexadecimal digits, that is equal for equal multisets of rows, in any order.

    Law: `Fingerprint(a + b) = Fingerprint(a) + Fingerprint(b)`, in each half modulo 2**64. Capability GROUP.
    Null is a value like another, NaN equals NaN, and -0.0 equals 0.0. No rows give zeros. With the same `seed` equal
    multisets have equal fingerprints, on every machine and in every version. Different multisets that nobody chose
    against the seed have equal fingerprints with a probability of about 2**-128.

    The sum of hashes as a hash of a multiset is that of Clarke et al., "Incremental multiset hash functions
    and their application to memory integrity checking", ASIACRYPT 2003 (there with a cryptographic hash).

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"half": [1, 1, 2, 2], "a": [1, 2, 2, 1], "b": ["x", None, None, "x"]})
    >>> f = uc.aggregate(t, by="half", rows=uc.Fingerprint(["a", "b"]))["rows"].to_pylist()
    >>> f[0] == f[1], f[0]
    (True, 'f114a33d22f9e44056c7ecb101517040')
    """

    input: Input | Sequence[Input]
    seed: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        require_seed(self.seed, "Fingerprint")
        object.__setattr__(self, "input", as_inputs(self.input, self))

    @property
    def capability(self) -> Capability:
        return Capability.GROUP

    def of(self, *inputs: Input) -> Combiner:
        return replace(self, input=inputs)

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        inputs = inputs_of(self.input)
        for one in inputs:
            require_hash(input_type(one, schema, self), self, one)
        part = Part(HashSumFn(len(inputs), self.seed), tuple(expression(one) for one in inputs))
        return CompiledCombiner(parts=(part,), finish=_to_hex, output=pa.string())


def _to_hex(parts: Sequence[Accumulators]) -> pa.Array:
    low, high = (int64s(a) for a in parts[0])
    halves = np.stack([high, low], axis=1).astype(">i8").view(np.uint8)
    digits = np.empty((len(low), 32), np.uint8)
    digits[:, ::2], digits[:, 1::2] = _DIGITS[halves >> 4], _DIGITS[halves & 15]
    offsets = pa.array(np.arange(0, 32 * len(low) + 1, 32), pa.int32())
    return pa.StringArray.from_buffers(len(low), offsets.buffers()[1], pa.py_buffer(digits))
