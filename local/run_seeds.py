"""The seed of a run in this process, and a run that begins with one.

Guarded by tests/flows/test_seeds.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from ..flows.fingerprint.flow import Fingerprint, Fingerprints
from ..flows.flow import Flow
from ..flows.graph import Graph, Step
from ..flows.seeds import seed_steps
from ..panes.shard.shard import Shard
from ..panes.state.seed import Seed, SeedMaker, SeedStep, require_free, write_piece, write_seed
from ..panes.watermarks.stored_watermarks import OF_A_STEP, stored


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
        marks = part.watermarks(shard.watermarks.inputs, strategies_of(step), 0, 1)
        out[step] = replace(shard, state=state, watermarks=marks)
    return out


def seed_of(flow: Flow, graph: Graph, shards: Mapping[Step, Shard], run: str, folder: str) -> Seed:
    """Write the state of a run, with this id, as a seed."""
    require_free(folder)
    written = []
    for step, made_by in zip(graph.steps, _fingerprints(flow, graph), strict=True):
        shard = shards[step]
        marks = stored(shard.watermarks, strategies_of(step))
        piece, files = write_piece(folder, 0, shard.state, marks)
        written.append(SeedStep(made_by, (piece,), tuple(files)))
    return write_seed(Seed(folder=folder, steps=tuple(written), maker=SeedMaker(owner=run, batch=0)))


def strategies_of(step: Step) -> list[str]:
    """The watermark strategy of each input of a step, as text. Under another one the sources have other names."""
    leaves = (feed.leaf for feed in step.feeds)
    return [OF_A_STEP if leaf is None else repr(leaf.settings.strategy) for leaf in leaves]


def _fingerprints(flow: Flow, graph: Graph) -> list[Fingerprint]:
    of = Fingerprints(flow, graph)
    return [of(step, step.schemas, 1, True, 0) for step in graph.steps]


__all__ = ["begun", "seed_of", "strategies_of"]
