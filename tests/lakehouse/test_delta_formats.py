"""Tables of Delta as other writers make them: deleted rows in vectors, mapped columns, partitions of each type."""

from __future__ import annotations

import json
import struct
import zlib
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from lakehouse_histories import NOON, read
from pyroaring import BitMap64

import uncombine as uc
from uncombine.errors import InvalidArgument, UnreadableFile


def log(path: Path, version: int, *actions: dict[str, Any]) -> None:
    """Write a commit as another writer would."""
    (path / "_delta_log").mkdir(parents=True, exist_ok=True)
    text = "\n".join(json.dumps(action) for action in ({"commitInfo": {"timestamp": version}}, *actions))
    (path / "_delta_log" / f"{version:020}.json").write_text(text)


def field(name: str, kind: Any, physical: str | None = None, number: int = 1) -> dict[str, Any]:
    mapped = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical} if physical else {}
    return {"name": name, "type": kind, "nullable": True, "metadata": mapped}


def made(fields: list[dict[str, Any]], features: list[str], **more: Any) -> list[dict[str, Any]]:
    schema = json.dumps({"type": "struct", "fields": fields})
    about = {"id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": schema}
    about |= {"partitionColumns": [], "configuration": {}, "createdTime": 0} | more
    protocol: dict[str, Any] = {"minReaderVersion": 3, "minWriterVersion": 7}
    protocol |= {"readerFeatures": features, "writerFeatures": features}
    return [{"protocol": protocol}, {"metaData": about}]


def added(path: Path, name: str, table: pa.Table, **more: Any) -> dict[str, Any]:
    file = path / name
    if not file.exists():
        path.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, file)
    about = {"path": name, "partitionValues": {}, "size": file.stat().st_size, "modificationTime": 0}
    stats = json.dumps({"numRecords": table.num_rows})
    return {"add": about | {"dataChange": True, "stats": stats} | more}


def vector(path: Path, name: str, deleted: list[int]) -> dict[str, Any]:
    """The description of deleted rows, by a file with one vector as the format has it."""
    bits = struct.pack("<I", 1681511377) + BitMap64(deleted).serialize()
    body = struct.pack(">I", len(bits)) + bits + struct.pack(">I", zlib.crc32(bits))
    (path / name).write_bytes(b"\x01" + body)
    return {
        "deletionVector": {
            "storageType": "p",
            "pathOrInlineDv": (path / name).absolute().as_uri(),
            "offset": 1,
            "sizeInBytes": len(bits),
            "cardinality": len(deleted),
        }
    }


def removed(action: dict[str, Any], **more: Any) -> dict[str, Any]:
    one = action["add"]
    return {"remove": {name: one[name] for name in ("path", "partitionValues", "size", "dataChange")} | more}


def test_rows_in_deletion_vectors_are_not_there_and_those_that_come_into_one_are_retracted(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = pa.table({"id": [1, 2, 3, 4]})
    first = added(path, "a.parquet", table)
    some, more = vector(path, "one.bin", [1]), vector(path, "two.bin", [1, 3])
    log(path, 0, *made([field("id", "long")], ["deletionVectors"]), first)
    log(path, 1, removed(first), added(path, "a.parquet", table, **some))
    log(path, 2, removed(first, **some), added(path, "a.parquet", table, **more))
    url = f"delta:{path}"
    other = pa.table(QueryBuilder().register("t", DeltaTable(str(path))).execute("SELECT id FROM t"))
    assert sorted(other["id"].to_pylist()) == [1, 3]
    assert [(row["id"], row["diff"]) for row in read(url)] == [(1, 1), (3, 1)]
    assert [(row["id"], row["diff"]) for row in read(url, start=0)] == [(2, -1), (4, -1)]
    assert [(row["id"], row["diff"]) for row in read(url, start=1)] == [(4, -1)]
    assert len(read(url, end=0)) == 4


def test_columns_that_are_mapped_by_name_are_read_also_within_others(tmp_path: Path) -> None:
    path = tmp_path / "t"

    def inner(number: int) -> dict[str, Any]:
        fields = [field("a", "long", "col-a", number), field("new", "string", "col-n", number + 1)]
        return {"type": "struct", "fields": fields}

    many = {"type": "array", "elementType": inner(20), "containsNull": True}
    pairs = {"type": "map", "keyType": "string", "valueType": inner(30), "valueContainsNull": True}
    kinds = {"id": "long", "at": inner(10), "many": many, "pairs": pairs, "later": "double", "k": "string"}
    fields = [field(name, kind, f"col-{number}", number) for number, (name, kind) in enumerate(kinds.items(), 1)]
    old = pa.struct([("col-a", pa.int64())])
    stored = pa.table(
        {
            "col-1": [1, 2],
            "col-2": pa.array([{"col-a": 5}, None], old),
            "col-3": pa.array([[{"col-a": 6}, None], None], pa.list_(old)),
            "col-4": pa.array([[("x", {"col-a": 7})], None], pa.map_(pa.string(), old)),
        }
    )
    one = added(path, "a.parquet", stored, partitionValues={"col-6": "z"})
    about = {"configuration": {"delta.columnMapping.mode": "name"}, "partitionColumns": ["k"]}
    log(path, 0, *made(fields, ["columnMapping"], **about), one)
    for options in ({}, {"start": -1}):
        rows = read(f"delta:{path}", **options)
        assert rows == [
            {
                "id": 1,
                "at": {"a": 5, "new": None},
                "many": [{"a": 6, "new": None}, None],
                "pairs": [("x", {"a": 7, "new": None})],
                "later": None,
                "k": "z",
                "diff": 1,
            },
            {"id": 2, "at": None, "many": None, "pairs": None, "later": None, "k": "z", "diff": 1},
        ]


VALUES = {
    "day": date(2024, 5, 1),
    "at": datetime(2024, 5, 1, 12, 30, 15, 250_000, UTC),
    "n": -7,
    "x": 0.1,
    "d": Decimal("12.50"),
    "b": True,
    "s": "a=b/c %20ü",
}


@pytest.mark.parametrize("name", VALUES)
def test_partitions_of_each_type(tmp_path: Path, name: str) -> None:
    path, value = str(tmp_path / "t"), VALUES[name]
    write_deltalake(path, pa.table({"id": [1, 2], name: [value, None]}), partition_by=[name])
    DeltaTable(path).delete("id = 1")
    assert [row[name] for row in sorted(read(f"delta:{path}", end=0), key=lambda row: row["id"])] == [value, None]
    assert [(row[name], row["diff"]) for row in read(f"delta:{path}", start=0)] == [(value, -1)]


def test_times_without_a_zone_are_utc_as_those_of_files(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    naive = pa.array([datetime(1960, 1, 1, 1)], pa.timestamp("us"))
    write_deltalake(path, pa.table({"id": [1], "naive": naive, "zoned": naive.cast(pa.timestamp("us", "UTC"))}))
    (row,) = read(f"delta:{path}")
    assert row["naive"] == row["zoned"] == datetime(1960, 1, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("features", "more", "action", "words"),
    [
        (["typeWidening"], {}, {}, "needs readers with typeWidening"),
        (["columnMapping"], {"configuration": {"delta.columnMapping.mode": "id"}}, {}, "maps its columns by 'id'"),
        ([], {}, {"path": "file:///elsewhere/a.parquet"}, "has data files that are elsewhere"),
    ],
)
def test_what_is_not_understood_is_refused(
    tmp_path: Path, features: list[str], more: dict[str, Any], action: dict[str, Any], words: str
) -> None:
    path = tmp_path / "t"
    one = added(path, "a.parquet", pa.table({"id": [1]}))
    log(path, 0, *made([field("id", "long", "id" if "columnMapping" in features else None)], features, **more), one)
    if action:
        log(path, 1, {"add": one["add"] | action})
    with pytest.raises(InvalidArgument, match=words):
        read(f"delta:{path}", start=-1)


def test_a_file_of_another_type_is_no_row_of_nulls(tmp_path: Path) -> None:
    path = tmp_path / "t"
    one = added(path, "a.parquet", pa.table({"id": ["seven"]}))
    log(path, 0, *made([field("id", "long")], []), one)
    with pytest.raises(UnreadableFile, match=r"a.parquet of the Delta table .* cannot be read with the columns"):
        read(f"delta:{path}")


def test_a_file_that_goes_without_its_partition_is_looked_up(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(str(path), pa.table({"id": [1, 2], "k": ["a", "b"]}), partition_by=["k"])
    DeltaTable(str(path)).delete("k = 'a'")
    commit = path / "_delta_log/00000000000000000001.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        for name in ("partitionValues", "size", "extendedFileMetadata"):
            line.get("remove", {}).pop(name, None)
    commit.write_text("\n".join(map(json.dumps, lines)))
    assert [(row["k"], row["diff"]) for row in read(f"delta:{path}", start=0)] == [("a", -1)]


def test_no_path_of_a_log_leads_out_of_the_table(tmp_path: Path) -> None:
    path = tmp_path / "t"
    pq.write_table(pa.table({"id": [1]}), tmp_path / "secret.parquet")
    one = added(path, "a.parquet", pa.table({"id": [1]}))
    log(path, 0, *made([field("id", "long")], []), one)
    log(path, 1, {"add": one["add"] | {"path": "../secret.parquet"}})
    with pytest.raises(InvalidArgument, match="has data files that are elsewhere"):
        uc.flow(uc.TableChanges(f"delta:{path}", start=0), time=NOON)
