"""A change of a running query, as a program that a test kills: evolve the checkpoint, then start the changed query."""

from __future__ import annotations

import sys
from pathlib import Path

from evolved_queries import flow

import uncombine as uc


def main(folder: Path, url: str) -> None:
    spark = uc.session(cores=2)
    now = flow(spark, folder, n=uc.Count(), total=uc.Sum("x"))
    print("ready", flush=True)
    if not (folder / "new").exists():
        uc.evolve(folder / "old", now, to=folder / "new", history=str(folder / "in"))
    print("evolved", flush=True)
    trigger = {"availableNow": True}
    now.to_table(url, checkpoint=folder / "new", trigger=trigger).awaitTermination()
    print("done", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
