"""The parts of a version: files whose rows may be equal are together, and others apart."""

from __future__ import annotations

from uncombine.lakehouse.changed_files import ChangedFile, Part, parts_of


def file(path: str, weight: int, k: str | None = None) -> ChangedFile:
    return ChangedFile(path=path, weight=weight, size=3, partition={"k": k})


def test_files_of_one_partition_that_come_and_go_are_read_together() -> None:
    parts = parts_of([file("a", -1, "x"), file("b", 1, "x"), file("c", 1, "y"), file("d", 1, "y")], 4, 5)
    assert [[one.path for one in part.files] for part in parts] == [["a", "b"], ["c"], ["d"]]
    assert [(part.nets, part.size) for part in parts] == [(True, 6), (False, 3), (False, 3)]
    assert [Part.of_text(part.text) for part in parts] == parts


def test_a_feed_has_both_in_one_file() -> None:
    assert [part.nets for part in parts_of([file("a", 0), file("b", 0)], 1, 1)] == [True, True]
