"""The board and the alert rules of docs/metrics: their names, and what a real Prometheus makes of them."""

from __future__ import annotations

import json
import math
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from streams import START, changed, read_stream, written

import uncombine as uc
from uncombine.metrics.instruments import INSTRUMENTS
from uncombine.sparkops.spark_private import await_events

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "metrics"
ENDINGS = ("_bucket", "_sum", "_count")
SCHEMA = pa.schema({"k": pa.string(), "ts": pa.timestamp("us", "UTC"), "d": pa.int64()})


def queries() -> list[tuple[str, str]]:
    """The queries of the board, each with the title of its panel."""
    panels = json.loads((FOLDER / "board.json").read_text())["panels"]
    return [(panel["title"], target["expr"]) for panel in panels for target in panel.get("targets", ())]


def metrics_in(text: str) -> set[str]:
    """The metrics of uncombine in a text, less the endings of a histogram."""
    labels = {label for instrument in INSTRUMENTS for label in instrument.labels}
    names = set(re.findall(r"\buncombine_\w+", text)) - labels
    histograms = {instrument.prometheus for instrument in INSTRUMENTS if instrument.kind == "histogram"}
    cut = {name.removesuffix(end) for name in names for end in ENDINGS if name.removesuffix(end) in histograms}
    return {name for name in names if not name.endswith(ENDINGS)} | cut


def test_the_board_has_every_metric_and_no_other() -> None:
    assert metrics_in(" ".join(query for _, query in queries())) == {i.prometheus for i in INSTRUMENTS}


def test_the_rules_have_no_other_metric() -> None:
    rules = (FOLDER / "alerts.yml").read_text()
    assert metrics_in(rules) <= {instrument.prometheus for instrument in INSTRUMENTS}
    alerts = set(re.findall(r"alert: (\w+)", rules))
    tests = (FOLDER / "alerts_test.yml").read_text()
    fired = set(re.findall(r"alertname: (\w+)\n +exp_alerts", tests))
    quiet = set(re.findall(r"alertname: (\w+)}", tests))
    assert alerts == fired == quiet


def test_panels_stand_beside_each_other() -> None:
    panels = json.loads((FOLDER / "board.json").read_text())["panels"]
    cells = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert len({panel["id"] for panel in panels}) == len(panels)


@pytest.mark.full
@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool tests the rules: apt-get install prometheus")
def test_the_rules_fire_when_they_should() -> None:
    ran = subprocess.run(
        ["promtool", "test", "rules", str(FOLDER / "alerts_test.yml")], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


Ask = Callable[[str], list[dict[str, Any]]]


def prometheus(folder: Path, target: str) -> Iterator[Ask]:
    """A Prometheus on loopback that reads the target twice a second; asks it for a query over the last ten minutes."""
    scrape = {"job_name": "uncombine", "static_configs": [{"targets": [target]}]}
    every = {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "1s"}
    config = {"global": every, "scrape_configs": [scrape], "rule_files": [str(FOLDER / "alerts.yml")]}
    (folder / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    server = subprocess.Popen(
        [*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    def ask(query: str) -> list[dict[str, Any]]:
        now = time.time()
        span = {"start": now - 600, "end": now, "step": "1"}
        url = f"http://127.0.0.1:{port}/api/v1/query_range?{urlencode({'query': query, **span})}"
        with urlopen(url, timeout=30) as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return found

    try:
        for _ in range(600):
            try:
                if ask("up"):  # it looks for its targets a while after it is ready
                    break
            except (URLError, OSError):
                pass
            time.sleep(0.1)
        yield ask
    finally:
        server.terminate()
        server.wait()


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="a real Prometheus is asked: apt-get install prometheus")
def test_every_query_of_the_board_has_data_of_a_real_run(spark: SparkSession, tmp_path: Path) -> None:
    minute = 60_000_000
    tables = [
        pa.Table.from_pylist([{"k": k, "ts": START + at * minute, "d": 1} for k, at in rows], SCHEMA)
        for rows in ([("a", 0), ("b", 30)], [("a", 0), ("b", 31), ("a", 28)], [("a", 29), ("b", 40)])
    ]
    place = written(tables, tmp_path / "in")
    flow = uc.flow(read_stream(spark, place, SCHEMA), watermark="1 minute", diff="d")
    hour = flow.window("1 minute", "each row", mode="retracting", allowed_lateness="10 minutes")
    counts = hour.combine(by="k", n=uc.Count())
    with changed(spark), uc.metrics.prometheus(0) as exporter:
        target = str(exporter).split()[-1].removeprefix("http://").removesuffix("/metrics")
        for ask in prometheus(tmp_path, target):
            live = counts.to_table(
                f"parquet:{tmp_path}/live", checkpoint=tmp_path / "c", trigger={"availableNow": True}
            )
            live.awaitTermination()
            await_events(spark)
            time.sleep(3)
            empty = []
            for title, query in queries():
                plain = query.replace("$__rate_interval", "10m").replace("$query", ".*")
                values = [float(value) for series in ask(plain) for _, value in series["values"]]
                if not any(map(math.isfinite, values)):
                    empty.append((title, plain, len(values)))
            rows = [float(value) for series in ask("uncombine_rows_in_total") for _, value in series["values"]]
    assert empty == []
    assert max(rows) == 7
