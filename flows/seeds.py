"""Seeds and the steps of a flow: whether a seed is of this flow, and the part of it for each step.

Guarded by tests/flows/test_seeds.py.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..errors import StateMismatch
from ..panes.state.seed import Seed, SeedStep, ShardSeed
from .fingerprint.differences import flow_changes, told_changes
from .fingerprint.flow import Fingerprint

LAYOUT = ("shards", "whole_keys", "near")
"""The parts of a fingerprint that say how rows are divided among shards, which a seed leaves free."""


def seed_steps(seed: Seed, now: Sequence[Fingerprint], same: Collection[str] = ()) -> list[ShardSeed]:
    """The part of a seed for each step of a flow; raises if it is of another flow."""
    number = len(now)
    if len(seed.steps) != number:
        raise _other(seed, [f"it has {len(seed.steps)} steps with state, and the flow has {number}"])
    stored = [_laid_out(step, one) for step, one in zip(seed.steps, now, strict=True)]
    told = told_changes([f"in stage {i}: " for i in range(1, number + 1)], flow_changes(stored, now, same))
    if told:
        raise _other(seed, told)
    return [ShardSeed(seed.folder, step) for step in seed.steps]


def _laid_out(step: SeedStep, now: Fingerprint) -> Fingerprint:
    """The fingerprint of a step as if its rows had been divided as they are now."""
    free = {name: value for name, value in step.made_by.items() if name not in LAYOUT}
    return {**free, **{name: now[name] for name in LAYOUT if name in now}}


def _other(seed: Seed, told: Sequence[str]) -> StateMismatch:
    return StateMismatch(
        f"the seed {seed.folder!r} is of another flow, {'; '.join(told)}: start the flow that the seed was made of, or "
        "make a seed of this one from its history"
    )


__all__ = ["seed_steps"]
