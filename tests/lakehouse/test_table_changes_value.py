"""The value that names a table: what it takes, what it refuses in a sentence, and what it never shows."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch


def test_a_repr_has_the_options_that_are_given_and_no_secret() -> None:
    table = "iceberg:postgresql://me:hunter22@host/db?warehouse=s3://box#shop.orders"
    changes = uc.TableChanges(table, start="earliest", columns="_commit_version")
    assert repr(changes).startswith("TableChanges(the Iceberg table 'shop.orders'")
    assert repr(changes).endswith("start='earliest', columns=('_commit_version',))")
    assert "hunter22" not in repr(changes) + changes.words
    assert repr(pickle.loads(pickle.dumps(changes))) == repr(changes)


@pytest.mark.parametrize(
    ("table", "options", "kind", "words"),
    [
        ("duckdb:shop.db#orders", {}, InvalidArgument, "keeps no versions"),
        ("/data/orders", {}, InvalidArgument, "takes 'delta:' and the path of a table"),
        (7, {}, TypeMismatch, "takes a text such as 'delta:/data/orders'"),
        ("delta:/t", {"start": "soon"}, InvalidArgument, "start= takes 'earliest', 'latest', a version, a time"),
        ("delta:/t", {"start": True}, InvalidArgument, "start= takes"),
        ("delta:/t", {"end": "earliest"}, InvalidArgument, "end= takes a version, a time, but was given 'earliest'"),
        ("delta:/t", {"columns": ["_commit"]}, InvalidArgument, "columns= has no column '_commit'"),
        ("delta:/t", {"max_versions_per_batch": 0}, InvalidArgument, "must be a whole number of at least 1"),
        ("delta:/t", {"ends": 1}, InvalidArgument, "did you mean 'end'"),
    ],
)
def test_what_it_does_not_take(table: Any, options: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        uc.TableChanges(table, **options)
