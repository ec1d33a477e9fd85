"""Random flows: local runs, replays, streams and the models of the rules give the same panes, counts and late rows."""

from __future__ import annotations

import pytest
from reference.flows.agree import difference, listing, shrunk
from reference.flows.draw import draw


def agree(first: int, last: int) -> None:
    for seed in range(first, last):
        case = draw(seed)
        if difference(case) is not None:
            case = shrunk(case)
            pytest.fail(f"{listing(case)}\n{difference(case)}", pytrace=False)


@pytest.mark.parametrize("first", range(0, 50, 10))
def test_all_ways_to_run_a_flow_agree(first: int) -> None:
    agree(first, first + 10)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1_000, 21_000, 200))
def test_all_ways_to_run_many_flows_agree(first: int) -> None:
    agree(first, first + 200)
