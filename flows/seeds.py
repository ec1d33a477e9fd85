"""Seeds and the steps of a flow: whether a seed is of this flow, and the part of it for each step.

Guarded by tests/flows/test_seeds.py.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ..errors import StateMismatch
from ..panes.state.operator_state import OperatorState
from ..panes.state.seed import Seed, SeedFile, SeedStep
from ..panes.state.shard_seed import ShardSeed
from .fingerprint.differences import flow_changes, number_of, told_changes
from .fingerprint.flow import Fingerprint

_MODE = "mode was 'accumulating' and is 'retracting'"
"""The words for a flow whose last grouping a table has settled."""

PLACED = ("whole_keys", "near")
"""The facts of a step that say by which hashes its rows belong to shards."""

FREE = ("shards", *PLACED, "planned")
"""The parts of a fingerprint that a seed leaves free: how rows are divided among shards, and who lists files."""


def seed_steps(seed: Seed, now: Sequence[Fingerprint], same: Collection[str] = ()) -> list[ShardSeed | None]:
    """The part of a seed for each step of a flow; raises if it is of another flow.

    A step whose sources had had no rows has no part, and begins without state.
    """
    steps = {number_of(step.made_by): step for step in seed.steps}
    stored = [_laid_out(step, now[number - 1]) for number, step in steps.items() if number <= len(now)]
    told = told_changes([f"in stage {number_of(one)}: " for one in now], flow_changes(stored, now, same))
    if told or max(steps, default=0) > len(now):
        raise _other(seed, told or [f"it has {len(steps)} steps with state, and the flow has {len(now)}"])
    parts = [steps.get(number_of(one)) for one in now]
    pairs = zip(parts, now, strict=True)
    return [
        None if part is None else ShardSeed(seed.folder, step_under(part, made_by), _is_moved(part, made_by))
        for part, made_by in pairs
    ]


def _is_moved(step: SeedStep, now: Fingerprint) -> bool:
    """True if the rows of a step belong to shards by other hashes now."""
    return any(step.made_by.get(name) != now.get(name) for name in PLACED)


def under_lateness(state: OperatorState, before: Fingerprint, now: Fingerprint) -> OperatorState:
    """The state of a step that was written under one lateness, for that of now; earlier versions did not note it."""
    was, is_ = before.get("lateness"), now.get("lateness")
    return state if was is None or is_ is None else state.under(int(was), int(is_))


def step_under(step: SeedStep, now: Fingerprint) -> SeedStep:
    """A step of a seed under the lateness of now."""
    pieces = []
    for piece in step.pieces:
        state = OperatorState({}, watermark=piece.watermark, closed=piece.closed)
        pieces.append(replace(piece, closed=under_lateness(state, step.made_by, now).closed))
    return replace(step, pieces=tuple(pieces))


def corrections_of(seed: Seed, number: int) -> Sequence[SeedFile]:
    """The corrections of the step in this place, from 1 on."""
    return next((step.corrections for step in seed.steps if number_of(step.made_by) == number), ())


def _laid_out(step: SeedStep, now: Fingerprint) -> Fingerprint:
    """The fingerprint of a step as if its rows had been divided as they are now."""
    free = {name: value for name, value in step.made_by.items() if name not in FREE}
    return {**free, **{name: now[name] for name in FREE if name in now}}


def _other(seed: Seed, told: Sequence[str]) -> StateMismatch:
    if all(text.endswith(_MODE) for text in told):
        return StateMismatch(
            f"the seed {seed.folder!r} is of a flow whose mode is open, and a table needs panes that can be retracted: "
            "write mode='retracting' in window(), and make the seed again"
        )
    return StateMismatch(
        f"the seed {seed.folder!r} is of another flow, {'; '.join(told)}: start the flow that the seed was made of, or "
        "make a seed of this one from its history"
    )


__all__ = ["PLACED", "corrections_of", "seed_steps", "step_under", "under_lateness"]
