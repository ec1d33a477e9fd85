"""Options about running: each has its values, and a wrong one is named."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"native": "always"}, "native= must be 'auto' or 'never', but is 'always'"),
        ({"files": True}, "files= must be 'auto' or 'never', but is True"),
        ({"shards": 0}, "shards= must be a whole number of at least 1, but is 0"),
        ({"shards": True}, "shards= must be a whole number of at least 1, but is True"),
        ({"shards": "8"}, "shards= must be a whole number of at least 1, but is '8'"),
        ({"wake": "no"}, "wake= must be True, False or None, but is 'no'"),
        ({"shard": 8}, "has no option 'shard': did you mean 'shards'?"),
    ],
)
def test_a_wrong_value_is_named(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        uc.Tuning(**options)
    assert says in str(refused.value)


def test_it_is_a_value() -> None:
    tuning = uc.Tuning(shards=8, wake=False)
    assert pickle.loads(pickle.dumps(tuning)) == tuning
    assert repr(tuning) == "Tuning(native='auto', files='auto', shards=8, wake=False)"


def test_it_goes_into_the_flow() -> None:
    flow = uc.flow([{"ts": 0}], tuning=uc.Tuning(shards=8, wake=False))
    assert (flow.settings.shards, flow.settings.wake) == (8, False)
    with pytest.raises(TypeMismatch, match=r"tuning= takes uc.Tuning\(...\), but was given 8"):
        uc.flow([{"ts": 0}], tuning=8)  # type: ignore[arg-type]
