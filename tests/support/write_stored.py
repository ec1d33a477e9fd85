"""Writes the files of `tests/data/stored/`, with the library as it is in the environment:

    python tests/support/write_stored.py           # all of them
    python tests/support/write_stored.py columns   # only the lines of forms of combiners that have none yet
    python tests/support/write_stored.py deposits    # only the state with deposits
    python tests/support/write_stored.py seed        # only the seed of this format

Run the first only when a new version of a format begins, with the lowest version of Spark that is allowed, and keep
what was written before: files of older versions stay there for as long as they are to be read. Run the second for a new
combiner.
"""

from __future__ import annotations

import json
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import every
from stored import (
    ACCUMULATORS,
    BEFORE,
    CHECKPOINT,
    COLUMNS,
    COMBINERS,
    SCHEMA,
    batches,
    column_of,
    day,
    panes,
    unstored,
    write_batches,
)
from stored_deposits import DEPOSITS, stored_log
from stored_seeds import BEFORE as BEFORE_SEED
from stored_seeds import HISTORY, history_file, history_flow, seed_file, stored_flow, stored_script

import uncombine as uc
from uncombine.panes.state.seed import FORMAT


def pack(folder: Path, target: Path) -> None:
    """The files of a folder, without the checksums of Hadoop, which are left out as they are of local disks only."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix != ".crc":
                archive.write(path, path.relative_to(folder))


def write_columns(forms: Iterable[uc.Combiner], lines: Iterable[str] = ()) -> None:
    """Write the mark and the type of the stored column of each form, after lines that are there."""
    new = (f" {json.dumps(repr(form))}: {json.dumps(column_of(form))}" for form in forms)
    COLUMNS.write_text("{\n" + ",\n".join([*lines, *new]) + "\n}\n")


def write_deposits() -> None:
    """Write a state with deposits, as an operator alone stores it."""
    log, manifest = stored_log()
    with zipfile.ZipFile(DEPOSITS, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("manifest", manifest)
        for number, value in log.items():
            archive.writestr(str(number), value)


def write_seed() -> None:
    """Write the seed of a run in its middle, and that of a history, in the format of today."""
    with tempfile.TemporaryDirectory() as name:
        seed = stored_flow().run(stored_script()[:BEFORE_SEED]).seed(f"{name}/seed")
        pack(Path(seed.folder), seed_file(FORMAT))
        pack(Path(history_flow().seed(HISTORY, to=f"{name}/history").folder), history_file(FORMAT))


def main() -> None:
    if sys.argv[1:] == ["seed"]:
        write_seed()
        return
    if sys.argv[1:] == ["deposits"]:
        write_deposits()
        return
    if sys.argv[1:] == ["columns"]:
        write_columns(unstored(), [line.rstrip(",") for line in COLUMNS.read_text().splitlines()[1:-1]])
        return
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
            rows = spark.createDataFrame(day(number))
            accumulators = {name: uc.Accumulator(combiner, name, schema=rows) for name, combiner in COMBINERS.items()}
            stored = rows.groupBy("user").agg(
                *(a.add(*(a.combiner.bind(SCHEMA).columns or ["user"])) for a in accumulators.values())
            )
            stored.coalesce(1).write.parquet(str(work / "accumulators" / str(number)))
        pack(work / "accumulators", ACCUMULATORS)
        write_columns(every.ONE_OF_EACH.values())
        write_deposits()
        write_seed()
        spark.stop()


if __name__ == "__main__":
    main()
