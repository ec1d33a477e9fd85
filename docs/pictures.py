"""Draws the pictures of the documents: `python docs/pictures.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

import uncombine as uc

ROOT = Path(__file__).parents[1]
NAMES = ("allowed_lateness", "early_late_retracting", "sessions_retracting")


def main(folder: Path, names: tuple[str, ...] = NAMES) -> None:
    """Draw golden cases, all of them if none is named."""
    matplotlib.use("agg")
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from golden import cases

    folder.mkdir(parents=True, exist_ok=True)
    for case in cases():
        if names and case.name not in names:
            continue
        title = case.name.replace("_", " ")
        figure = uc.plot.panes(case.run(), case.script, time="event_time", value="sum", title=title)
        figure.savefig(folder / f"{case.name}.png", dpi=80)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures", () if len(sys.argv) > 1 else NAMES)
