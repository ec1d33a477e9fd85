"""The columnar operator against a model of it that goes row by row, over random transcripts."""

from __future__ import annotations

import itertools

import pytest
from reference.compare import difference, listing, simplest
from reference.transcripts import transcript


def agree(first: int, last: int) -> None:
    """Through the local runner and through the loop of a shard."""
    for seed, shard in itertools.product(range(first, last), (False, True)):
        script, options = transcript(seed)
        way = seed if shard else None
        if difference(script, options, way) is not None:
            script, options = simplest(script, options, way)
            found = difference(script, options, way)
            pytest.fail(f"seed {seed}, shard {shard}\n{listing(script, options)}\n{found}", pytrace=False)


@pytest.mark.parametrize("first", range(0, 100, 50))
def test_transcripts_give_the_panes_of_the_model(first: int) -> None:
    agree(first, first + 50)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1_000, 21_000, 500))
def test_many_transcripts_give_the_panes_of_the_model(first: int) -> None:
    agree(first, first + 500)
