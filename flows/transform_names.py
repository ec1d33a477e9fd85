"""The names of the transforms of a flow, by which a user speaks of one.

Guarded by tests/flows/fingerprint/test_fingerprint.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..panes.transforms import Transform
from .flow import Flow


def transform_names(flow: Flow) -> dict[int, str]:
    """The name of each transform of a flow, by its identity: its method, and its place among those of this method."""
    counts: dict[str, int] = {}
    names: dict[int, str] = {}
    for transform in _transforms_of(flow):
        if transform.word is not None and id(transform) not in names:
            counts[transform.word] = counts.get(transform.word, 0) + 1
            names[id(transform)] = f"{transform.word} {counts[transform.word]}"
    return names


def _transforms_of(flow: Flow) -> Iterator[Transform]:
    """All transforms of a flow, in the order in which its rows meet them."""
    for one in flow.source.inputs:
        yield from _transforms_of(one)
    for stage in flow.stages:
        yield from stage.transforms
    yield from flow.transforms


__all__ = ["transform_names"]
