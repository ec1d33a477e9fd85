"""A program that reads a history of files as a stream of two batches, and ends at once."""

from __future__ import annotations

import sys
from pathlib import Path

import uncombine as uc


def main() -> None:
    folder = Path(sys.argv[1])
    source = uc.flow(
        uc.Files(folder / "in", max_files_per_batch=4), spark=uc.session(), streaming=True, watermark="1 day"
    )
    flow = source.window(uc.Fixed("1 day")).combine(n=uc.Count())
    writer = flow.write_stream(checkpoint=folder / "state").format("noop")
    writer.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main()
