"""Writes the stored state of this folder, with the library as it is in the environment:

    python tests/support/write_stored.py

Run it only when a new version of a format begins, with the lowest version of Spark that is allowed, and keep what was
written before: files of older versions stay here for as long as they are to be read.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from pathlib import Path

import every
from stored import ACCUMULATORS, BEFORE, CHECKPOINT, COLUMNS, COMBINERS, batches, column_of, day, panes, write_batches

import uncombine as uc
from uncombine.sparkops import accumulate


def pack(folder: Path, target: Path) -> None:
    """The files of a folder, without the checksums of Hadoop, which are left out as they are of local disks only."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix != ".crc":
                archive.write(path, path.relative_to(folder))


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        spark = uc.session("stored state", cores=2)
        tables = batches()
        write_batches(tables[:BEFORE], work / "rows", 0)
        panes(spark, work / "rows", work / "state" / "checkpoint")
        write_batches(tables, work / "all", 0)
        undisturbed = panes(spark, work / "all", work / "undisturbed")
        after = [line for line in undisturbed if json.loads(line)["batch"] >= BEFORE]
        (work / "state" / "panes.jsonl").write_text("".join(f"{line}\n" for line in after))
        pack(work / "state", CHECKPOINT)
        for number in (1, 2):
            stored = accumulate(spark.createDataFrame(day(number)), by="user", **COMBINERS)
            stored.coalesce(1).write.parquet(str(work / "accumulators" / str(number)))
        pack(work / "accumulators", ACCUMULATORS)
        lines = [f" {json.dumps(repr(form))}: {json.dumps(column_of(form))}" for form in every.ONE_OF_EACH.values()]
        COLUMNS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        spark.stop()


if __name__ == "__main__":
    main()
