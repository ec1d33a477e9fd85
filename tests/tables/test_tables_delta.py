"""Live tables in Delta."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from live_tables import (
    NESTED,
    VALUES,
    adapted,
    batch_of,
    changes,
    finds,
    follows,
    holds,
    lacks_column,
    refuses,
    row,
    still_written,
    taken_over,
    writer_of,
)

import uncombine as uc
from uncombine.errors import InvalidArgument, TableMismatch, TableUnreachable
from uncombine.panes.state.seed import SeedMaker
from uncombine.tables import Changes, Layout
from uncombine.tables.delta import REFUSED

PLAIN = {name: found for name, found in VALUES.items() if not set(name) & set(REFUSED)}


def test_a_table_follows_the_batches(tmp_path: Path) -> None:
    assert follows(f"delta:{tmp_path}/t", 0) > 50


def test_a_table_refuses_what_does_not_fit(tmp_path: Path) -> None:
    refuses(f"delta:{tmp_path}/t")


def test_a_table_becomes_that_of_a_changed_flow(tmp_path: Path) -> None:
    adapted(f"delta:{tmp_path}/t")


def test_a_table_is_taken_over_from_the_maker_of_a_seed(tmp_path: Path) -> None:
    taken_over(f"delta:{tmp_path}/t")


def test_hard_names_and_values(tmp_path: Path) -> None:
    assert len(PLAIN) > 9
    holds(f"delta:{tmp_path}/a table 😀 #1", PLAIN | NESTED)
    finds(f"delta:{tmp_path}/keys")


def test_a_name_that_delta_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="no column 'a b', because its name has ' '"):
        writer_of(f"delta:{tmp_path}/t", Layout(pa.schema({"k": pa.int64(), "a b": pa.int64()}), ("k",)))


def test_a_column_that_somebody_drops(tmp_path: Path) -> None:
    writer = writer_of(f"delta:{tmp_path}/t")
    writer.start()
    writer.apply(0, batch_of(row("a", 1)))
    rest = DeltaTable(tmp_path / "t").to_pyarrow_table().drop_columns(["n"])
    write_deltalake(tmp_path / "t", rest, mode="overwrite", schema_mode="overwrite")
    lacks_column(f"delta:{tmp_path}/t", "n")


def test_two_writers_of_one_checkpoint(tmp_path: Path) -> None:
    """The other writer commits while this one merges."""
    one, other = writer_of(f"delta:{tmp_path}/t"), writer_of(f"delta:{tmp_path}/t")
    one.start(), other.start()
    assert one.apply(0, batch_of(row("a", 1)))
    given = batch_of(row("a", 1, -1), row("a", 2))

    calls = iter(range(9))

    def late() -> object:
        if next(calls) == 1:  # the merge reads the changes, after a look at their keys
            assert other.apply(1, batch_of(row("a", 1, -1), row("a", 3)))
        return given.batches()

    with pytest.raises(TableUnreachable, match="by another process at the same time"):
        one.apply(1, Changes(given.layout, given.rows, late))  # type: ignore[arg-type]
    assert not one.apply(1, given)
    assert one.read()["n"].to_pylist() == [3]


@pytest.mark.weekly
def test_a_wide_table_is_taken_over(tmp_path: Path) -> None:
    """The library sets no description of more than 4,000 characters."""
    wide = Layout(
        pa.schema({f"column {n} of many".replace(" ", "_"): pa.int64() for n in range(300)}), ("column_0_of_many",)
    )
    writer_of(f"delta:{tmp_path}/t", wide).start()
    first = writer_of(f"delta:{tmp_path}/t", wide)
    assert first.apply(0, changes(pa.table([[1]] * 300, wide.rows), wide))
    assert writer_of(f"delta:{tmp_path}/t", wide, owner="you").start(SeedMaker(owner="me", batch=0)) == -1
    assert first.read().num_rows == 1


def test_a_table_that_its_former_query_still_writes_is_refused(tmp_path: Path) -> None:
    still_written(f"delta:{tmp_path}/t")


def test_tables_of_others(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"k": [1]}))
    with pytest.raises(TableMismatch, match="has rows that were not written here"):
        writer_of(f"delta:{tmp_path}/t").start()
    with pytest.raises(TableMismatch, match="has rows that were not written here"):
        writer_of(f"delta:{tmp_path}/t").once(batch_of(row("a", 1)))
    with pytest.raises(TableMismatch, match="is gone"):
        writer_of(f"delta:{tmp_path}/other").read()


def test_a_flow_is_written_once(tmp_path: Path) -> None:
    scores = pa.table({"ts": [0, 1, 2], "user": ["ada", "bob", "ada"], "score": [3, 5, 4]})
    totals = uc.flow(scores).window(uc.Global()).combine(by="user", total=uc.Sum("score"))
    totals.to_table(f"delta:{tmp_path}/t")
    table = DeltaTable(tmp_path / "t")
    assert table.version() == 0
    assert sorted(table.to_pyarrow_table()["total"].to_pylist()) == [5, 7]
    with pytest.raises(TableMismatch):
        totals.to_table(f"delta:{tmp_path}/t")


def test_a_batch_is_one_commit_that_has_its_number(tmp_path: Path) -> None:
    writer = writer_of(f"delta:{tmp_path}/t")
    writer.start()
    for batch, given in enumerate([batch_of(row("a", 1), row("b", 1)), batch_of(), batch_of(row("b", 1, -1))]):
        writer.apply(batch, given)
        table = DeltaTable(tmp_path / "t")
        assert (table.version(), table.transaction_version("uncombine me")) == (batch + 1, batch)
    assert writer.files() == [str(Path(uri)) for uri in DeltaTable(tmp_path / "t").file_uris()]
