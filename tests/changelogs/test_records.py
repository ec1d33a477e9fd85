"""The messages of a topic, folded back into rows, beside the rows with weights that they were made of."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from uncombine.changelogs.records import RecordForm
from uncombine.errors import InvalidArgument

SCHEMA = pa.schema({"k": pa.string(), "n": pa.int64(), "diff": pa.int64()})


def histories(seed: int, batches: int) -> list[tuple[pa.Table, dict[str, int]]]:
    """Batches of changes of a table with a row for each key, in any order, and the table after each."""
    r, table, out = random.Random(seed), dict[str, int](), []
    for _ in range(batches):
        rows: list[dict[str, Any]] = []
        for _ in range(r.randrange(12)):
            k = r.choice("abcd")
            if k in table:
                rows.append({"k": k, "n": table.pop(k), "diff": -1})
            if r.random() < 0.7:
                table[k] = r.randrange(3)
                rows.append({"k": k, "n": table[k], "diff": 1})
        r.shuffle(rows)
        out.append((pa.Table.from_pylist(rows, SCHEMA), dict(table)))
    return out


def loads(text: bytes | None) -> Any:
    return None if text is None else json.loads(text)


def folded(name: str, table: dict[str, int], messages: pa.Table) -> dict[str, int]:
    """A table after the messages, as a system that has never heard of this library would read them."""
    table, weights = dict(table), Counter(table.items())
    for message in messages.to_pylist():
        key, value = loads(message["key"]), loads(message["value"])
        assert list(key) == ["k"]
        match name:
            case "kafka" if value is None:
                assert table.pop(key["k"]) is not None
            case "kafka" | "spark_update":
                table[key["k"]] = value["n"]
            case "debezium":
                if value is None:
                    assert key["k"] not in table
                    continue
                assert (value["before"] or {}).get("n") == table.pop(key["k"], None)
                if value["after"] is not None:
                    table[key["k"]] = value["after"]["n"]
            case _:
                weight = value["diff"] if name == "diff" else 1 if value["row_kind"][0] == "+" else -1
                weights[value["k"], value["n"]] += weight
    if name in ("diff", "flink"):
        assert set(weights.values()) <= {0, 1}
        return {k: n for (k, n), weight in weights.items() if weight}
    return table


@pytest.mark.parametrize("name", ["kafka", "debezium", "diff", "flink"])
@pytest.mark.parametrize("seed", range(10))
def test_a_reader_has_the_table_after_each_batch(name: str, seed: int) -> None:
    form, before = RecordForm.of(name, ("k",), "diff"), dict[str, int]()
    for rows, after in histories(seed, 20):
        messages = form(rows)
        assert folded(name, before, messages) == after
        if before == after:
            assert messages.num_rows == 0
        before = after


def test_rows_as_they_are_need_no_key_and_keep_their_number() -> None:
    rows = pa.table({"k": ["a", "a"], "n": [1, 1]})
    assert RecordForm.of(None, (), None)(rows).to_pylist() == [{"key": None, "value": b'{"k":"a","n":1}'}] * 2
    assert RecordForm.of("diff", (), None)(rows)["value"].to_pylist() == [b'{"k":"a","n":1,"diff":2}']
    assert RecordForm.of("debezium", (), None)(rows)["key"].null_count == 2


def test_forms_that_do_not_fit_are_refused() -> None:
    for changelog, words in (
        ("postgres", "has no changelog= 'postgres'"),
        (5, "takes one of 'debezium'"),
        (None, "can be"),
    ):
        with pytest.raises(InvalidArgument, match=words):
            RecordForm.of(changelog, ("k",), "diff")  # type: ignore[arg-type]
