"""Puts rows of the measured tables where README.md asks for them, and draws its pictures.

A question in README.md says which rows answer it, as `<!-- rows of spark: purchases, windows | sessions -->`: those of
`measured/spark.md` that begin so, up to `<!-- end -->`. `run.py --write` writes the measured tables and calls this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
MEASURED, README = HERE / "measured", HERE / "README.md"
PART = re.compile(r"(<!-- rows of (\w+): (.*?) -->\n).*?(<!-- end -->)", re.DOTALL)
HEAD = "| what | ours | the other | times as fast | the other is |\n|---|---:|---:|---:|---|\n"


@dataclass(frozen=True)
class Measured:
    """A row of a table: a name, and cells as they are printed."""

    what: str
    cells: tuple[str, ...]

    @property
    def seconds(self) -> tuple[float, float]:
        """Our time and the other one."""
        return _seconds(self.cells[0]), _seconds(self.cells[1])

    @property
    def times_as_fast(self) -> float:
        ours, other = self.seconds
        return other / (ours or other * float(self.cells[2]))  # a time that is printed as 0.00 is in the ratio still

    @property
    def against(self) -> str:
        return self.cells[-1]


def factor(value: float) -> str:
    """A factor as it is printed."""
    return f"{value:.{2 if value < 0.995 else 1 if value < 9.95 else 0}f}"


def measured(suite: str) -> Iterator[Measured]:
    """The rows of a suite as it was last measured."""
    path = MEASURED / f"{suite}.md"
    lines = path.read_text().splitlines() if path.exists() else []
    for line in lines:
        if line.startswith("| ") and not line.startswith("| what |"):
            what, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            yield Measured(what, tuple(cells))


def chosen(suite: str, beginnings: str) -> list[Measured]:
    """The rows that begin with one of these texts."""
    asked = tuple(beginning.strip() for beginning in beginnings.split("|"))
    return [row for row in measured(suite) if row.what.startswith(asked)]


def fill(text: str) -> str:
    """A page with the rows that it asks for."""
    return PART.sub(lambda found: f"{found[1]}{_rows(found[2], found[3])}{found[4]}", text)


def _rows(suite: str, beginnings: str) -> str:
    rows = chosen(suite, beginnings)
    if not rows:
        return "Not measured yet.\n"
    if len(rows[0].cells) == 5 and "," in rows[0].cells[0]:  # a curve
        head = "| what | sizes | seconds | exponent | memory | exponent |\n|---|---|---|---:|---|---:|\n"
        return head + "".join(f"| {row.what} | {' | '.join(row.cells)} |\n" for row in rows)
    return HEAD + "".join(
        f"| {' | '.join([row.what, *row.cells[:2], factor(row.times_as_fast), row.against])} |\n" for row in rows
    )


def _seconds(cell: str) -> float:
    value, unit = cell.split()
    return float(value) * {"s": 1.0, "ms": 1e-3}[unit]


def main() -> None:
    """Fill the page and draw the pictures."""
    from plots import draw

    README.write_text(fill(README.read_text()))
    draw(HERE / "pictures")


if __name__ == "__main__":
    main()
