"""The drawing of a flow has the words of its explanation, in boxes inside the picture that do not cover each other."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import uncombine as uc

ROWS = [{"ts": 0, "k<b>": "a", "x": 1}]
SVG = "{http://www.w3.org/2000/svg}"


def joined() -> uc.Flow:
    slow = uc.flow(ROWS, name="slow", watermark="1 minute").where(uc.col("x") > 1)
    left = slow.window("1 hour", "early every 1 row").combine(by="k<b>", n=uc.Count())
    both = uc.union(a=uc.flow(ROWS), b=uc.flow(ROWS))
    right = both.window("1 hour").combine(by="k<b>", m=uc.CollectList(uc.col("x") + 100_000_000_000_000_000))
    return left.join(right, on="k<b>").rename(n="rows").window("1 day").combine(total=uc.Sum("rows"))


FLOWS = {
    "rows": lambda: uc.flow(ROWS),
    "times": lambda: (
        uc.flow(ROWS, time="x", time_format="ms", watermark="1 minute").window("1 day").combine(n=uc.Count())
    ),
    "steps": lambda: (
        uc.flow(ROWS).with_columns(y=uc.col("x") < 3).distinct("k<b>").window("1 minute").combine(n=uc.Count())
    ),
    "joined": joined,
}


@pytest.mark.parametrize("name", FLOWS)
def test_a_drawing_has_all_words_in_its_boxes(name: str) -> None:
    flow = FLOWS[name]()
    html = flow._repr_html_()
    svg = ElementTree.fromstring(html[html.index("<svg") : html.index("</svg>") + len("</svg>")])
    texts = [(text.findtext(f"{SVG}title") or "".join(text.itertext())).strip() for text in svg.iter(f"{SVG}text")]
    want = [line.strip() for line in flow.explain().splitlines()[1:] if "rows are combined" not in line]
    assert sorted(text.replace("\u00a0", " ") for text in texts) == sorted(want)
    boxes = [
        tuple(float(rect.get(side, "")) for side in ("x", "y", "width", "height")) for rect in svg.iter(f"{SVG}rect")
    ]
    wide, high = float(svg.get("width", "")), float(svg.get("height", ""))
    for x, y, width, height in boxes:
        assert 0 <= x <= x + width <= wide
        assert 0 <= y <= y + height <= high
    for (x, y, w, h), (x2, y2, w2, h2) in combinations(boxes, 2):
        assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y
    for text in svg.iter(f"{SVG}text"):
        at = float(text.get("x", "")), float(text.get("y", ""))
        assert any(x < at[0] < x + w and y < at[1] < y + h for x, y, w, h in boxes)
    arrows = sum("h8l-4" in path.get("d", "") for path in svg.iter(f"{SVG}path"))
    assert arrows == len(boxes) - 1, "a tree of boxes"


def test_a_drawing_says_how_the_flow_runs(spark: SparkSession) -> None:
    assert uc.flow(ROWS)._repr_html_().endswith("<p>runs in this process: flow.run()</p>")
    assert (
        uc.flow(pa.schema({"ts": pa.int64()}))._repr_html_().endswith("<p>runs in this process: flow.run(script)</p>")
    )
    assert uc.flow(ROWS, spark=spark)._repr_html_().endswith("<p>runs on Spark: flow.df</p>")
    rates = uc.flow(spark.readStream.format("rate").load(), time="timestamp", watermark="1 minute")
    assert rates._repr_html_().endswith("<p>runs on Spark: flow.write_stream(checkpoint=...)</p>")
