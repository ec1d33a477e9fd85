"""The names of the transforms of flows, by which a user speaks of one.

Guarded by tests/flows/fingerprint/test_fingerprint.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..panes.transforms import Transform
from .flow import Flow


def transform_names(*flows: Flow) -> dict[int, str]:
    """The name of each transform, by its identity: its method, and its place in its flow among those of this method.

    A transform that several flows share has its name in the first of them.
    """
    names: dict[int, str] = {}
    for flow in flows:
        counts: dict[str, int] = {}
        own = dict[int, str]()
        for transform in _transforms_of(flow):
            if transform.word is not None and id(transform) not in own:
                counts[transform.word] = counts.get(transform.word, 0) + 1
                own[id(transform)] = f"{transform.word} {counts[transform.word]}"
        names = {**own, **names}
    return names


def _transforms_of(flow: Flow) -> Iterator[Transform]:
    """All transforms of a flow, in the order in which its rows meet them."""
    for one in flow.source.inputs:
        yield from _transforms_of(one)
    for stage in flow.stages:
        yield from stage.transforms
    yield from flow.transforms


__all__ = ["transform_names"]
