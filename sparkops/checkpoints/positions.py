"""A flow whose sources go on where a seed ends.

Files in an order of the library go on by themselves. Other sources of Spark are told by an option of their own. A query
needs its seed until its steps have stored it, and a start without it is refused as far as the files tell.

Guarded by tests/sparkops/checkpoints/test_checkpoint_seeds.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ...errors import InvalidArgument, StateMismatch
from ...flows.flow import Flow, leaves_of
from ...flows.graph import graph_of
from ...panes.state.seed import Seed, opened_seed
from ..files_input import FilesInput
from ..inputs import Input
from ..planners.file_offset import FileOffset
from ..planners.path_set import PathSet, hashes_of
from ..query_log import last_commit, last_plan
from ..restarts import stored_fingerprints
from .seeds import positions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def seed_at_start(flow: Flow, start: Seed | str | None, spark: SparkSession, checkpoint: str) -> Seed | None:
    """The seed with which a query starts; None without one, and as soon as each step has stored its part of it."""
    done = last_commit(spark, checkpoint)
    if start is None:
        if done < 0 <= last_plan(spark, checkpoint):
            _require_whole(flow, positions(spark, checkpoint, 0), checkpoint)
        return None
    if done >= 0 and len(stored_fingerprints(spark, checkpoint)) == len(graph_of(flow).steps):
        return None
    return opened_seed(start)


def started_at(flow: Flow, seed: Seed | None) -> Flow:
    """The flow, whose files begin after those that are in the state of a seed."""
    if seed is None or not seed.positions:
        return flow
    count = len(list(leaves_of(flow)))
    if count != len(seed.positions):
        raise StateMismatch(
            f"the seed {seed.folder!r} has the positions of {len(seed.positions)} sources, and the flow has {count}: "
            "give the seed of this flow"
        )
    return _started(flow, iter(seed.positions))


def _started(flow: Flow, positions: Iterator[str]) -> Flow:
    source = flow.source
    if source.inputs:
        inputs = tuple(_started(one, positions) for one in source.inputs)
        return replace(flow, source=replace(source, inputs=inputs))  # type: ignore[type-var]
    input = getattr(source, "input", None)
    position = next(positions)
    if not isinstance(input, Input):
        return flow
    return replace(flow, source=replace(source, input=_input_at(input, position)))  # type: ignore[type-var]


def _input_at(input: Input, position: str) -> Input:
    if not isinstance(input, FilesInput):
        return input.over(partial(_input_at, position=position))
    if input.planner is None:
        raise InvalidArgument(
            f"{input.describe()} are listed by Spark, whose new query knows nothing of those that the seed has read, "
            "and would read them again: give them an order, such as uc.Files(..., order='name')"
        )
    if input.planner.start:
        raise InvalidArgument(
            "the seed says which files are read already, and so does start= of uc.Files: leave one of them out"
        )
    offset = json.loads(position)
    FileOffset.of(offset)
    return replace(input, planner=input.planner.begun(offset))


def _require_whole(flow: Flow, planned: Sequence[str], checkpoint: str) -> None:
    """Raise if the first batch, which is not done, begins after files that a seed has read."""
    for (source, _), position in zip(leaves_of(flow), planned, strict=False):
        if isinstance(input := getattr(source, "input", None), Input):
            _require_whole_input(input, position, checkpoint)


def _require_whole_input(input: Input, position: str, checkpoint: str) -> Input:
    if not isinstance(input, FilesInput):
        return input.over(partial(_require_whole_input, position=position, checkpoint=checkpoint))
    if input.planner is not None:
        first, then = FileOffset.of(input.planner.begin()), FileOffset.of(json.loads(position))
        batch = PathSet(hashes_of(list(then.files)))
        if not (first.has(then.read.hashes) | batch.has(then.read.hashes)).all():
            raise StateMismatch(
                f"the first batch of the checkpoint {checkpoint!r} was begun with a seed and is not done: give start= "
                "again, at each start until a batch is done"
            )
    return input


__all__ = ["seed_at_start", "started_at"]
