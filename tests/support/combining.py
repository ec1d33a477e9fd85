"""Tasks that draw whether they combine their rows. Small data are always combined, so tests draw the other way too."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from uncombine.combiners.rows import numbering
from uncombine.panes.grouping import lift
from uncombine.sparkops import wire


@contextmanager
def drawn_combining(seed: int, sharing: bool = False) -> Iterator[None]:
    """Lifts of this process combine the rows of a piece, or send them one by one: one of them always, or at random.

    The codes of keys are found by sorting, or in a hash table, and parcels cross the shuffle in parts, at random too.

    With `sharing`, windows of a key that start within a drawn time are in one shard. The shards of a result of
    `Global()` may show in its time.
    """
    draw = random.Random(seed)
    chance = draw.choice([0.0, 0.5, 1.0])
    near = draw.choice([None, 0, 1, 90_000_000, 86_400_000_000])
    part = draw.choice([40, 700, wire.PART_BYTES])

    def pays(keys: Any, assigned: Any, rows: int) -> bool:
        return random.Random(1000 * seed + rows).random() < chance  # the same in a second attempt of a task

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lift, "combining_pays", pays)
        coin = random.Random(seed)
        patch.setattr(numbering, "_mostly_differ", lambda values: len(values) > 0 and coin.random() < 0.5)
        patch.setattr(wire, "PART_BYTES", part)
        if sharing and near is not None:
            patch.setattr(lift.Lift, "near", near)
        yield
