"""Draws the pictures of the documents: `python docs/pictures.py`, or some: `python docs/pictures.py spikes`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib

import uncombine as uc

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]
NAMES = ("allowed_lateness", "early_late_retracting", "sessions_retracting")


def pair() -> tuple[Figure, Any, Any]:
    """A figure with two pictures side by side."""
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(13, 5.5), layout="constrained")
    return figure, figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2)


def spikes(page: dict[str, Any]) -> Figure:
    """The counts, with a triangle where a spike was said to start or stop."""
    from datetime import datetime

    script = page["script"][:-1]
    counts = page["counted"](page["searches"]).run(script)
    eclipse: dict[str, Any] = {"value": "searches", "where": {"language": "en", "word": "eclipse"}}
    figure = uc.plot.panes(counts, script, **eclipse, title="searches for eclipse in ten seconds")
    for row in page["result"].to_pylist():
        seen = datetime.fromisoformat(page["script"][row["step"]].at)
        style = {"marker": "^" if row["what"] == "start" else "v", "color": "black" if row["diff"] > 0 else "#c8262b"}
        figure.axes[0].plot(row["event_time"], seen, markersize=11, zorder=9, clip_on=False, **style)
    figure.axes[0].set_xlim(left=datetime.fromisoformat(page["at"](58)), right=datetime.fromisoformat(page["at"](114)))
    figure.axes[0].set_ylim(top=datetime.fromisoformat(page["at"](136)))
    return figure


def unpopular_ads(page: dict[str, Any]) -> Figure:
    """The sessions on the left, the campaign on the right."""
    figure, left, right = pair()
    sessions = page["sessions"](page["clicks"]).run(page["script"])
    together: dict[str, Any] = {"by": [], "datum": "ad"}
    uc.plot.panes(sessions, page["script"], value="clicks", title="clicks of sessions", ax=left, **together)
    uc.plot.panes(page["result"], page["script"], datum="ad", value="sessions", title="unpopular sessions", ax=right)
    return figure


def auctions(page: dict[str, Any]) -> Figure:
    """The prices of the auctions on the left, the average of a category on the right."""
    figure, left, right = pair()
    time = {"auctions": "opens", "bids": "ts"}
    prices = page["closing_prices"](page["auctions"], page["bids"]).run(page["script"])
    uc.plot.panes(
        prices, page["script"], time=time, by=[], datum="auction", value="price", title="prices of auctions", ax=left
    )
    art = {"where": {"category": "art"}, "value": "average", "title": "average of the category art"}
    result, script = page["result"], page["script"]
    uc.plot.panes(result, script, time=time, datum="auction", ax=right, **art)
    return figure


def audit_log(page: dict[str, Any]) -> Figure:
    """The entries, and the number of entries in each sealed minute."""
    options = {"datum": "text", "value": "entries", "title": "entries of sealed minutes"}
    return uc.plot.panes(page["sealed"], page["script"], **options)


def streaming_102(page: dict[str, Any]) -> Figure:
    """The panes of both watermarks side by side."""
    figure, left, right = pair()
    for name, marks, axes in (("perfect", "PERFECT", left), ("first", "GUESS", right)):
        title = "a perfect watermark" if name == "perfect" else "a guessed watermark"
        uc.plot.panes(page[name], page["played"](page[marks]), value="total", title=title, ax=axes)
    return figure


def watermark(page: dict[str, Any]) -> Figure:
    """Five rows, one of them late, and the watermark."""
    return uc.plot.watermark(page["script"], figsize=(9.0, 5.0))


def first_panes(page: dict[str, Any]) -> Figure:
    """The panes of the second lesson, the last of its runs."""
    return uc.plot.panes(page["panes"], page["script"], figsize=(9.0, 4.6))


def trigger_costs(page: dict[str, Any]) -> Figure:
    """The waits and panes of the triggers that the page compares."""
    return uc.plot.trigger_costs(page["runs"])


PICTURES: dict[str, tuple[str, Callable[[dict[str, Any]], Figure]]] = {
    "spikes": ("examples/spikes.md", spikes),
    "unpopular_ads": ("examples/unpopular_ads.md", unpopular_ads),
    "auctions": ("examples/auctions.md", auctions),
    "audit_log": ("examples/audit_log.md", audit_log),
    "streaming_102": ("examples/streaming_102.md", streaming_102),
    "first_panes": ("tutorial/2_windows_and_panes.md", first_panes),
    "watermark": ("explanation/watermarks.md", watermark),
    "trigger_costs": ("how-to/choose_a_trigger.md", trigger_costs),
}
"""Pictures of what pages run: the page, and the function that draws its names."""


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
        figure.savefig(folder / f"{case.name}.png", dpi=96)


def draw_pages(folder: Path, names: Sequence[str] = tuple(PICTURES)) -> None:
    """Draw what pages run, from the names that they define."""
    matplotlib.use("agg")
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from pages import names_of

    for name in names:
        page, draw = PICTURES[name]
        draw(names_of(ROOT / "docs" / page)).savefig(folder / f"{name}.png", dpi=96)


if __name__ == "__main__":
    given, pictures = sys.argv[1:], ROOT / "docs" / "pictures"
    if given and set(given) <= set(PICTURES):
        draw_pages(pictures, given)
    elif given:
        main(Path(given[0]), ())
    else:
        main(pictures)
        draw_pages(pictures)
