"""Draws the pictures of the documents: `python docs/pictures.py`, or one part: `python docs/pictures.py nexmark`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
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

    figure = pyplot.figure(figsize=(15, 6), layout="constrained")
    return figure, figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2)


def spikes(page: dict[str, Any]) -> Figure:
    """The counts, with a triangle where a spike was said to start or stop."""
    from datetime import datetime

    script = [entry for entry in page["script"] if entry.input == "searches"][:-1]
    counts = uc.local.run(script, page["counted"](page["searches"]))
    figure = uc.plot.panes(counts, script, value="searches", title="searches in ten seconds")
    for row in page["result"].to_pylist():
        seen = datetime.fromisoformat(page["script"][row["step"]].at)
        style = {"marker": "^" if row["what"] == "start" else "v", "color": "black" if row["diff"] > 0 else "#c8262b"}
        figure.axes[0].plot(row["event_time"], seen, markersize=11, zorder=9, clip_on=False, **style)
    figure.axes[0].set_xlim(right=datetime.fromisoformat(page["at"](54)))
    figure.axes[0].set_ylim(top=datetime.fromisoformat(page["at"](88)))
    return figure


def unpopular_ads(page: dict[str, Any]) -> Figure:
    """The sessions on the left, the campaign on the right."""
    figure, left, right = pair()
    sessions = uc.local.run(page["script"], page["sessions"](page["clicks"]))
    together: dict[str, Any] = {"by": [], "datum": "ad"}
    uc.plot.panes(sessions, page["script"], value="clicks", title="clicks of sessions", ax=left, **together)
    uc.plot.panes(page["result"], page["script"], datum="ad", value="sessions", title="unpopular sessions", ax=right)
    return figure


def auctions(page: dict[str, Any]) -> Figure:
    """The prices of the auctions on the left, the average of a category on the right."""
    figure, left, right = pair()
    time = {"auctions": "opens", "bids": "ts"}
    prices = uc.local.run(page["script"], page["closing_prices"](page["auctions"], page["bids"]))
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


EXAMPLES: dict[str, Callable[[dict[str, Any]], Figure]] = {
    "spikes": spikes,
    "unpopular_ads": unpopular_ads,
    "auctions": auctions,
    "audit_log": audit_log,
}
"""Pictures of the worked examples, by page."""


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


def draw_examples(folder: Path) -> None:
    """Draw the worked examples, from the names that their pages define."""
    matplotlib.use("agg")
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from pages import names_of

    for name, draw in EXAMPLES.items():
        draw(names_of(ROOT / "docs" / "examples" / f"{name}.md")).savefig(folder / f"{name}.png", dpi=80)


MEASURED = re.compile(
    r"^\| (q\d+), (batch|a batch of [\d,]+ events) \|.*\| ([\d.]+) \|[^|]*\|[^|]*\| ([^|]+) \|$", re.MULTILINE
)
"""A row of the table of NEXMark: the query, the way, the ratio, and the other side."""


def nexmark_ratios(page: str) -> dict[str, dict[str, float]]:
    """The ratios of the table of NEXMark by way, and then by query."""
    part = page.partition("<!-- measured: nexmark_queries -->")[2].partition("<!-- end -->")[0]
    out: dict[str, dict[str, float]] = {}
    for query, way, ratio, other in MEASURED.findall(part):
        kind = "as a batch" if way == "batch" else "as a stream"
        against = "query 0, where Spark has no such query" if other.startswith("q0") else other
        out.setdefault(f"{kind}, against {against}", {})[query] = float(ratio)
    return out


def nexmark(ratios: dict[str, dict[str, float]]) -> Figure:
    """A panel for each way, with a bar for each query: shorter than the line is faster than the other side."""
    from matplotlib import pyplot

    queries = sorted({query for some in ratios.values() for query in some}, key=lambda query: int(query[1:]))
    figure, panels = pyplot.subplots(
        1, len(ratios), figsize=(4.1 * len(ratios), 1.2 + 0.28 * len(queries)), sharey=True, layout="constrained"
    )
    for axes, (title, some) in zip([panels] if len(ratios) == 1 else panels, ratios.items(), strict=True):
        for query, ratio in some.items():
            y = -queries.index(query)
            faster = ratio < 1 and "query 0" not in title
            axes.barh(y, ratio, color="#6abf7b" if faster else "#9aa9bd", height=0.7)
            axes.annotate(f"{ratio:g}", (ratio, y), (3, 0), textcoords="offset points", va="center", fontsize=8)
        axes.axvline(1, color="#333333", linewidth=1)
        axes.set_xlim(0, 1.18 * max(1, *some.values()))
        axes.set_title(title.replace(", ", ",\n", 1), fontsize=10, loc="left")
        axes.set_xlabel("our time / the other time", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_yticks([-i for i in range(len(queries))], queries)
    return figure


def draw_nexmark(folder: Path) -> None:
    """Draw the table of NEXMark in the page of benchmarks."""
    from matplotlib import pyplot

    matplotlib.use("agg")
    ratios = nexmark_ratios((ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8"))
    with pyplot.rc_context({"svg.fonttype": "none", "svg.hashsalt": "uncombine", "font.family": "sans-serif"}):
        nexmark(ratios).savefig(folder / "nexmark.svg", metadata={"Date": None})


if __name__ == "__main__":
    given, pictures = sys.argv[1:], ROOT / "docs" / "pictures"
    if given == ["nexmark"]:
        draw_nexmark(pictures)
    elif given:
        main(Path(given[0]), ())
    else:
        main(pictures)
        draw_examples(pictures)
        draw_nexmark(pictures)
