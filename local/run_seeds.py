"""The seed of a run in this process, and a run that begins with one.

Guarded by tests/flows/test_seeds.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

import pyarrow as pa

from ..flows.fingerprint.flow import Fingerprint, Fingerprints
from ..flows.flow import Flow
from ..flows.graph import Graph, Step
from ..flows.seeds import seed_steps
from ..panes.shard.shard import Shard
from ..panes.state.seed import (
    Seed,
    SeedMaker,
    SeedStep,
    require_free,
    write_corrections,
    write_piece,
    write_seed,
)
from ..panes.watermarks.stored_watermarks import stored


def begun(flow: Flow, graph: Graph, shards: Mapping[Step, Shard], seed: Seed) -> dict[Step, Shard]:
    """The shards of a run, fresh ones, with the state of a seed."""
    out = dict[Step, Shard]()
    for step, part in zip(graph.steps, seed_steps(seed, _fingerprints(flow, graph)), strict=True):
        shard = shards[step]
        if part is None:
            out[step] = shard
            continue
        lift = step.stage.lift(step.schemas[0], 1, step.timed)
        state = part.state(shard.operator, 0, 1, partial(lift.routes, shard.operator))
        marks = part.watermarks(shard.watermarks.inputs, step.strategies, 0, 1)
        out[step] = replace(shard, state=state, watermarks=marks)
    return out


def seed_of(
    flow: Flow,
    graph: Graph,
    shards: Mapping[Step, Shard],
    maker: SeedMaker,
    folder: str,
    corrections: Mapping[Step, Iterable[pa.Table]] | None = None,
) -> Seed:
    """Write the state of a run as a seed; with corrections that of a run which nobody has seen."""
    require_free(folder)
    written = []
    for step, made_by in zip(graph.steps, _fingerprints(flow, graph), strict=True):
        shard = shards[step]
        marks = stored(shard.watermarks, step.strategies)
        piece, files = write_piece(folder, 0, shard.state, marks)
        panes = write_corrections(folder, 0, (corrections or {}).get(step, ()))
        written.append(SeedStep(made_by, (piece,), tuple(files), tuple(panes)))
    return write_seed(Seed(folder=folder, steps=tuple(written), maker=maker, corrects=corrections is not None))


def _fingerprints(flow: Flow, graph: Graph) -> list[Fingerprint]:
    of = Fingerprints(flow, graph)
    return [of(step, step.schemas, 1, True, 0) for step in graph.steps]


__all__ = ["begun", "seed_of"]
