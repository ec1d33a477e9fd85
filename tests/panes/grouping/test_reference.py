"""The columnar operator against the rules, over random transcripts, and in every way to run it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from reference.byrule.agree import disagreements
from reference.byrule.transcripts import transcripts
from reference.transcripts import transcript
from seeds import seeds

DRAWS = [transcript, transcripts]
BUNCH = 5
Draw = Callable[[int], tuple[list[Any], dict[str, Any]]]


def found_in(first: int, last: int, draw: Draw) -> list[str]:
    return [f"seed {seed}, {way}: {found}" for seed, way, _, _, found in disagreements(first, last, draw)]


@pytest.mark.parametrize("first", seeds(100, 400, step=BUNCH))
@pytest.mark.parametrize("draw", DRAWS)
def test_the_operator_does_what_the_rules_say(first: int, draw: Draw) -> None:
    assert found_in(first, first + BUNCH, draw) == []


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1_000, 21_000, 500))
@pytest.mark.parametrize("draw", DRAWS)
def test_the_operator_does_what_the_rules_say_over_many_transcripts(first: int, draw: Draw) -> None:
    assert found_in(first, first + 500, draw) == []
