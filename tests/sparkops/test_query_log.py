"""The last batches that a checkpoint tells of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from uncombine.sparkops.query_log import last_commit, last_plan


def test_old_batches_may_be_deleted_while_they_are_listed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query that runs keeps the last hundred, and deletes another one with each batch."""
    readers = type(spark.read)
    load = readers.load
    (tmp_path / "commits").mkdir()
    for batch in (42, 43, 141):
        (tmp_path / "commits" / str(batch)).write_text("v1")

    def loaded(reader: Any, *args: Any, **options: Any) -> Any:
        df = load(reader, *args, **options)
        (tmp_path / "commits" / "42").unlink()
        return df

    monkeypatch.setattr(readers, "load", loaded)
    assert last_commit(spark, str(tmp_path)) == 141
    monkeypatch.undo()
    assert last_plan(spark, str(tmp_path)) == -1
