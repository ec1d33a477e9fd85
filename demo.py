"""What the library does, in a minute: `python -m uncombine.demo`, or `make demo`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from . import (
    AfterCount,
    AfterWatermark,
    AtPeriod,
    Clock,
    Count,
    Elements,
    Max,
    Median,
    Sessions,
    Sum,
    Watermark,
    local,
    plot,
)
from . import aggregate as grouped

SCORES = pa.table(
    {
        "user": ["ada", "bob", "ada", "bob", "ada"],
        "score": [3.0, 5.0, 1e100, 0.1, 4.0],
    }
)


def aggregate() -> None:
    """A grouped aggregate."""
    _say("Scores by user, several combiners in one pass:")
    _table(grouped(SCORES, by="user", n=Count(), total=Sum("score", exact=True), best=Max("score")))


def retraction() -> None:
    """A retraction: a row of weight -1."""
    _say("The 1e100 was a mistake. It comes again with weight -1, and is gone from all results:")
    mistake = SCORES.slice(2, 1)
    rows = pa.concat_tables([SCORES, mistake]).append_column("diff", pa.array([1] * 5 + [-1]))
    results = {"n": Count(), "total": Sum("score", exact=True), "plain": Sum("score"), "best": Max("score")}
    _table(grouped(rows, by="user", diff="diff", **results))
    _say("(`plain` is a fast float sum, which promises less: the 3 and the 4 drowned in 1e100 and went with it.)")


def never_seen() -> None:
    """Taken back equals never seen, bit for bit."""
    _say("What an exact combiner holds after a retraction is, bit for bit, what it would hold had the row never come:")
    for combiner in (Sum("score", exact=True), Max("score"), Median("score")):
        fn = combiner.bind(SCORES.schema)
        everything, mistake = fn.accumulate(SCORES), fn.accumulate(SCORES.slice(2, 1))
        without = fn.accumulate(pa.concat_tables([SCORES.slice(0, 2), SCORES.slice(3)]))
        corrected = fn.uncombine(everything, mistake)
        same = all(a.equals(b) for a, b in zip(corrected, without, strict=True))
        print(
            f"  {combiner!r:26} result {fn.result(everything)!r:>7} -> {fn.result(corrected)!r:>4}, equal state: {same}"
        )
    print()


def panes() -> None:
    """Sessions with early and late panes that take each other back."""
    _say("The same over time: sessions of one minute, shown each minute, on time, and for each late datum:")
    script = _script()
    result = local.run(
        script,
        window=Sessions("1 minute"),
        trigger=AfterWatermark(early=AtPeriod("1 minute"), late=AfterCount(1)),
        mode="retracting",
        on_time="non_empty",
        allowed_lateness="1 day",
        total=Sum("score"),
    )
    for row in result.to_pylist():
        window, pane = row["window"], row["pane"]
        sign = "+" if row["diff"] > 0 else "-"
        bounds = f"{window['start']:%H:%M:%S} - {window['end']:%H:%M:%S}"
        print(f"  {bounds}  {sign}{row['total']:<4}{pane['timing'] if row['diff'] > 0 else 'taken back'}")
    print()
    try:
        figure = plot.panes(result, script, title="Sessions that take back what they had shown")
    except ImportError:
        _say("(With matplotlib installed this would also draw a picture.)")
        return
    folder = Path("out")
    folder.mkdir(exist_ok=True)
    path = folder / "panes.png"
    figure.savefig(path, dpi=110, bbox_inches="tight")
    _say(f"A picture of it is in {path}.")


def _script() -> list[Elements | Watermark | Clock]:
    """Ten scores, with the time at which each was made and seen, and a watermark that is sometimes wrong."""
    data = [
        (5, "12:00:26", "12:05:19"),
        (7, "12:02:15", "12:05:39"),
        (3, "12:03:39", "12:06:13"),
        (4, "12:03:59", "12:06:39"),
        (3, "12:04:49", "12:06:52"),
        (8, "12:03:06", "12:07:06"),
        (3, "12:06:39", "12:07:19"),
        (9, "12:01:20", "12:08:19"),
        (8, "12:07:26", "12:08:39"),
        (1, "12:07:46", "12:08:52"),
    ]
    marks = [("12:05:50", "12:02:00"), ("12:07:30", "12:05:55"), ("12:08:10", "12:06:10"), ("12:09:30", "12:09:00")]
    timed: list[tuple[str, Elements | Watermark]] = [
        (seen, Elements([{"ts": _at(made), "score": score}], at=_at(seen))) for score, made, seen in data
    ]
    timed += [(seen, Watermark(_at(mark), at=_at(seen))) for seen, mark in marks]
    return [entry for _, entry in sorted(timed, key=lambda pair: pair[0])]


def _at(time: str) -> str:
    return f"2016-01-20T{time}Z"


def _say(text: str) -> None:
    print(text + "\n")


def _table(table: pa.Table) -> None:
    names = table.column_names
    rows = [names, *([str(value) for value in row.values()] for row in table.to_pylist())]
    widths = [max(len(row[i]) for row in rows) for i in range(len(names))]
    for row in rows:
        print("  " + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)))
    print()


PARTS: tuple[Callable[[], None], ...] = (aggregate, retraction, never_seen, panes)


def main() -> None:
    """All parts, one after the other."""
    for part in PARTS:
        part()


if __name__ == "__main__":
    main()
