"""The columnar operator against a model of it that goes row by row, over random transcripts."""

from __future__ import annotations

import pytest
from reference.compare import difference, listing, simplest
from reference.transcripts import transcript


def agree(first: int, last: int) -> None:
    for seed in range(first, last):
        script, options = transcript(seed)
        if difference(script, options) is not None:
            script, options = simplest(script, options)
            pytest.fail(f"seed {seed}\n{listing(script, options)}\n{difference(script, options)}", pytrace=False)


@pytest.mark.parametrize("first", range(0, 500, 50))
def test_transcripts_give_the_panes_of_the_model(first: int) -> None:
    agree(first, first + 50)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1_000, 21_000, 1_000))
def test_many_transcripts_give_the_panes_of_the_model(first: int) -> None:
    agree(first, first + 1_000)
