"""A tour of the library in a minute: `python -m uncombine.cli.demo`, or `make demo`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from textwrap import indent
from typing import Any

import pyarrow as pa

from .. import (
    AfterCount,
    AfterWatermark,
    AtPeriod,
    Count,
    Elements,
    Global,
    Max,
    Median,
    Punctuated,
    Repeatedly,
    Sessions,
    Sum,
    UncombineError,
    Watermark,
    col,
    flow,
    plot,
)
from .. import aggregate as grouped
from ..panes.showing import shown_rows

SCORES = pa.table(
    {
        "user": ["ada", "bob", "ada", "bob", "ada"],
        "score": [3.0, 5.0, 1e100, 0.1, 4.0],
    }
)


def _at(time: str) -> datetime:
    return datetime.fromisoformat(f"2016-01-20T{time}Z")


TEN = tuple(
    (score, _at(made), _at(seen))
    for score, made, seen in (
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
    )
)
"""Ten scores; each has the time at which it was made and the time at which it was seen."""

REPORTS = tuple(
    (_at(seen), _at(complete))
    for seen, complete in (
        ("12:05:50", "12:02:00"),
        ("12:07:30", "12:05:55"),
        ("12:08:10", "12:06:10"),
        ("12:09:30", "12:09:00"),
    )
)
"""Watermark reports: when each was seen, and the time up to which it declares the data complete.

The first report is wrong: the 9 is seen after it.
"""


def retraction() -> None:
    """Show a retraction: a row of weight -1."""
    _say("Scores by user, several combiners in one pass:")
    results: dict[str, Any] = {"n": Count(), "total": Sum("score", exact=True), "plain": Sum("score")}
    results["best"] = Max("score")
    _table(grouped(SCORES, by="user", **results))
    _say("The 1e100 was a mistake. The same row with weight -1 retracts it:")
    rows = pa.concat_tables([SCORES, SCORES.slice(2, 1)]).append_column("diff", pa.array([1] * 5 + [-1]))
    _table(grouped(rows, by="user", diff="diff", **results))
    _say("(`plain` is a fast float sum, which promises less: it lost the 3 and the 4 when it added 1e100.)")


def never_seen() -> None:
    """Show that retracted equals never seen, bit for bit."""
    _say("After a retraction the state of an exact combiner equals, bit for bit, the state without the row:")
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


def start() -> Any:
    """Start Spark, or end with a line that says what is missing."""
    _say("Now on Spark, which takes a few seconds to start ...")
    try:
        from ..sparkops.session import session

        return session("uncombine demo")
    except UncombineError as error:
        sys.exit(str(error))


def on_spark(spark: Any) -> Any:
    """The ten scores and the watermark reports as rows of a DataFrame."""
    rows = [{"score": score, "ts": made, "seen": seen} for score, made, seen in TEN]
    rows += [{"complete_until": complete, "seen": seen} for seen, complete in REPORTS]
    time = pa.timestamp("us", "UTC")
    schema = pa.schema({"score": pa.int64(), "ts": time, "seen": time, "complete_until": time})
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema))


def batch(scores: Any) -> None:
    """Show the sessions of all the data."""
    _say("Ten scores in sessions of one minute, computed in batch when all of them are there:")
    totals = flow(scores).window(Sessions("1 minute")).combine(total=Sum("score"))
    _show(totals.df.toArrow().sort_by("event_time"))


def replay(scores: Any) -> None:
    """Show the sessions as a stream saw them: early and late panes with retractions, and a second stage."""
    _say(
        "The same scores in the order in which a stream saw them. A session is shown each minute (early), when the\n"
        "watermark passes its end (on time), and for each late score. Each new pane retracts the pane before it:"
    )
    history = flow(scores, watermark=Punctuated("complete_until"), processing_time="seen")
    sessions = (
        history.replay()
        .window(
            Sessions("1 minute"),
            trigger=AfterWatermark(early=AtPeriod("1 minute"), late=AfterCount(1)),
            mode="retracting",
            on_time="non_empty",
            allowed_lateness="1 day",
        )
        .combine(total=Sum("score"))
    )
    panes = sessions.df.toArrow()
    _show(panes)
    _say("A second stage that reads these panes is corrected too. Here it finds the best session so far:")
    best = sessions.window(Global(), trigger=Repeatedly(AfterCount(1))).combine(sessions=Count(), best=Max("total"))
    _show(best.where(col("diff") > 0).df.toArrow())
    draw(panes)


def draw(panes: pa.Table) -> None:
    """Draw the panes into a file."""
    timed: list[tuple[datetime, Elements | Watermark]] = [
        (seen, Elements([{"ts": made, "score": score}], at=seen)) for score, made, seen in TEN
    ]
    timed += [(seen, Watermark(complete, at=seen)) for seen, complete in REPORTS]
    script = [entry for _, entry in sorted(timed, key=lambda pair: pair[0])]
    try:
        figure = plot.panes(panes, script, title="Sessions that merge and retract their earlier panes")
    except ImportError:
        _say("(With matplotlib installed this would also draw a picture.)")
        return
    folder = Path("out")
    folder.mkdir(exist_ok=True)
    figure.savefig(folder / "panes.png", dpi=110, bbox_inches="tight")
    _say(f"A picture of the sessions is in {folder / 'panes.png'}.")


def _show(panes: pa.Table) -> None:
    rows = []
    for row in panes.to_pylist():
        window, pane = row["window"], row["pane"]
        values = {name: value for name, value in row.items() if name not in ("window", "event_time", "diff", "pane")}
        rows.append(
            {
                "": "+" if row["diff"] > 0 else "-",
                "window": "all of time" if window is None else f"{window['start']:%H:%M:%S} - {window['end']:%H:%M:%S}",
                **values,
                "pane": pane["timing"].lower().replace("_", " ") if row["diff"] > 0 else "retracted",
            }
        )
        if pane["processing_time"] is not None and row["diff"] > 0:
            rows[-1]["shown at"] = f"{pane['processing_time']:%H:%M:%S}"
    _lines(rows)


def _lines(rows: Sequence[dict[str, Any]]) -> None:
    names = max(rows, key=len)
    _table(pa.table({name: [row.get(name) for row in rows] for name in names}))


def _table(table: pa.Table) -> None:
    print(indent(shown_rows(table).text(), "  ") + "\n")


def _say(text: str) -> None:
    print(text + "\n", flush=True)


def main() -> None:
    """Run all parts, one after the other."""
    retraction()
    never_seen()
    spark = start()
    try:
        scores = on_spark(spark)
        batch(scores)
        replay(scores)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
