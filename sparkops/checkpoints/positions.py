"""A flow whose sources go on where a seed ends.

Files in an order of the library go on by themselves. Other sources of Spark are told by an option of their own.

Guarded by tests/sparkops/checkpoints/test_checkpoint_seeds.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from ...errors import InvalidArgument, StateMismatch
from ...flows.flow import Flow, leaves_of
from ...panes.state.seed import Seed
from ..files_input import FilesInput
from ..inputs import Input
from ..planners.file_offset import FileOffset


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


__all__ = ["started_at"]
