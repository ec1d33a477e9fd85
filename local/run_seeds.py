"""The seed of a run in this process, and a run that begins with one.

Guarded by tests/flows/test_seeds.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

import pyarrow as pa

from ..errors import InvalidArgument
from ..flows.fingerprint.flow import Fingerprint, Fingerprints
from ..flows.flow import Flow
from ..flows.graph import Graph, Step
from ..flows.histories import micros_now
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
from ..windows.times import MAX_TIME, MIN_TIME, time_text


def begun(flow: Flow, graph: Graph, shards: Mapping[Step, Shard], seed: Seed) -> dict[Step, Shard]:
    """The shards of a run, fresh ones, with the state of a seed."""
    out = dict[Step, Shard]()
    for step, part in zip(graph.steps, seed_steps(seed, fingerprints(flow, graph)), strict=True):
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
    for step, made_by in zip(graph.steps, fingerprints(flow, graph), strict=True):
        panes = write_corrections(folder, 0, (corrections or {}).get(step, ()))
        written.append(replace(seed_step(step, shards[step], made_by, folder), corrections=tuple(panes)))
    return write_seed(Seed(folder=folder, steps=tuple(written), maker=maker, corrects=corrections is not None))


def require_reached(shards: Mapping[Step, Shard]) -> None:
    """Raise if a row has moved a watermark beyond what its source allows: all rows that come later would be late."""
    for step, shard in shards.items():
        for feed, marks in zip(step.feeds, shard.watermarks.inputs, strict=True):
            if feed.leaf is None or feed.leaf.settings.strategy is None:  # no row moves it
                continue
            if (ahead := feed.leaf.settings.max_future) is None:
                continue
            times = [time for time, _ in marks.sources.values() if time < MAX_TIME]  # those of a script may end
            reached = max(times, default=MIN_TIME) + feed.leaf.lag
            if reached > max(micros_now(), shard.watermarks.now) + int(ahead):
                raise InvalidArgument(
                    f"a row of the run has the time {time_text(reached)}, more than max_future={ahead} after now, so "
                    "all rows that come later would be late: run the flow without it, or give entries their at=, by "
                    "which such rows are bad, or give uc.flow() max_future=None"
                )


def seed_step(step: Step, shard: Shard, made_by: Fingerprint, folder: str) -> SeedStep:
    """Write the rows of a step into the folder of a seed."""
    piece, files = write_piece(folder, 0, shard.state, stored(shard.watermarks, step.strategies))
    return SeedStep(made_by, (piece,), tuple(files))


def fingerprints(flow: Flow, graph: Graph) -> list[Fingerprint]:
    """The fingerprint of each step, in one shard."""
    of = Fingerprints(graph, flow)
    return [of(step, step.schemas, 1, True, 0) for step in graph.steps]


__all__ = ["begun", "fingerprints", "require_reached", "seed_of", "seed_step"]
